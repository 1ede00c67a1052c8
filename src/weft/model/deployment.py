"""The whole: everything one deployment file says."""

from __future__ import annotations

from dataclasses import dataclass

from weft.model.control import Control
from weft.model.queries import Query, Source
from weft.model.running import Channels, Spark, Store, shared_spark
from weft.model.scenario import Happening
from weft.model.sharing import Sharing
from weft.model.sites import Link, Site


@dataclass(frozen=True, slots=True)
class Deployment:
    """All that stands in a file; `folder` is where its relative paths start, `desk` where the desk listens.

    `sharing` tells what of the queries as written is made by another, where that was looked for and found.
    """

    sites: tuple[Site, ...]
    sources: tuple[Source, ...]
    queries: tuple[Query, ...]
    links: tuple[Link, ...] = ()
    control: Control = Control()
    scenario: tuple[Happening, ...] = ()
    folder: str = "."
    store: Store = Store()
    spark: Spark = Spark()
    channels: Channels = Channels()
    desk: str | None = None
    keys: str | None = None
    sharing: Sharing | None = None

    def site(self, name: str) -> Site:
        """The site of that name; KeyError where there is none."""
        for site in self.sites:
            if site.name == name:
                return site
        raise KeyError(name)

    def source(self, name: str) -> Source:
        """The source of that name; KeyError where there is none."""
        for source in self.sources:
            if source.name == name:
                return source
        raise KeyError(name)

    def query(self, name: str) -> Query:
        """The query of that name; KeyError where there is none."""
        for query in self.queries:
            if query.name == name:
                return query
        raise KeyError(name)

    def shared_spark(self) -> tuple[Spark, tuple[str, ...]]:
        """The Spark of a run in one process, its master named, and what its sites cannot agree upon."""
        return shared_spark(self.spark, {site.name: site.spark for site in self.sites})
