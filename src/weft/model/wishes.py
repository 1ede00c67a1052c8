"""What may be asked of a running deployment? Each wish says why, and on whose behalf; one at a time becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.model.placement import Placement
from weft.model.queries import Query
from weft.model.sharing import Sharing

By = Literal["person", "scenario", "file", "failover", "promise", "relief", "balance", "scale", "place"]
"""Who asks: somebody at a terminal, the scenario, a file that has changed, or a rule."""


@dataclass(frozen=True, slots=True)
class MoveTo:
    """Operators, named by their streams, each to a site, in one change; what orders their records goes along."""

    homes: Mapping[str, str]
    reason: str = "asked for"
    by: By = "person"


@dataclass(frozen=True, slots=True)
class Replace:
    """Every operator to where another placement has it, in one change."""

    placement: Placement
    reason: str = "a better placement"
    by: By = "place"


@dataclass(frozen=True, slots=True)
class ScaleTo:
    """An operator to run as instances at these sites, the first being its home."""

    stream: str
    sites: tuple[str, ...]
    reason: str = "asked for"
    by: By = "scale"


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What ran at a site that is gone, named by streams, to run at other sites; nothing is waited for there."""

    site: str
    homes: Mapping[str, str]
    reason: str = "its site is gone"
    by: By = "failover"


@dataclass(frozen=True, slots=True)
class AddQuery:
    """Queries more, which may read one another's streams; their operators at these sites, named by streams.

    Where they share among one another, `sharing` has them as written, and which streams stand for which.
    """

    queries: tuple[Query, ...]
    homes: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    reason: str = "the query is new"
    by: By = "file"
    sharing: Sharing | None = None

    @property
    def written(self) -> tuple[Query, ...]:
        """The queries as written."""
        return self.queries if self.sharing is None else self.sharing.written


@dataclass(frozen=True, slots=True)
class RemoveQuery:
    """A query less; its results stay."""

    query: str
    reason: str = "the query is gone from the file"
    by: By = "file"


Wish = MoveTo | Replace | ScaleTo | TakeOver | AddQuery | RemoveQuery


SPOKEN = {"file": "person", "failover": "heal", "promise": "relief"}
"""As whose wish a change is told of, where that is another word: who changes the file is a person."""


def plain_wish(wish: Wish) -> dict[str, Any]:
    """A wish in plain values, by its verb."""
    match wish:
        case MoveTo(homes=homes):
            return {"move": dict(homes)}
        case Replace(placement=placement):
            return {"replace": dict(placement.homes)}
        case ScaleTo(stream=stream, sites=sites):
            return {"scale": stream, "to": list(sites)}
        case TakeOver(site=site, homes=homes):
            return {"take_over": site, "to": dict(homes)}
        case AddQuery(queries=queries):
            return {"add": [query.name for query in queries]}
        case RemoveQuery(query=query):
            return {"remove": query}
