"""Operator to site, whole, a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the operator behind each stream (`query.operator`) runs, and why.

    `homes` are the sites they run on, `instances` further sites of running copies that share the load, `backups` sites
    of replicas kept for failure.
    """

    homes: Mapping[str, str] = field(default_factory=dict)
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def home(self, stream: str) -> str:
        """The site that the operator of a stream runs on; KeyError where it is not placed."""
        return self.homes[stream]

    def sites_of(self, stream: str) -> tuple[str, ...]:
        """The home of an operator, then its instances, then its backups."""
        return (self.homes[stream], *self.instances.get(stream, ()), *self.backups.get(stream, ()))

    def put(self, stream: str, site: str, reason: str = "") -> Placement:
        """The same placement with one operator at home on a site, where it then has no other copy."""
        return Placement(
            {**self.homes, stream: site},
            _without(self.instances, stream, site),
            _without(self.backups, stream, site),
            {**self.reasons, stream: reason},
        )

    def on(self, site: str) -> Iterator[str]:
        """The streams whose operators a site runs, or keeps a backup of."""
        return (stream for stream in self.homes if site in self.sites_of(stream))

    def as_json(self) -> dict[str, dict[str, list[str]]]:
        """`{query: {operator: [site]}}`, the home first, as the commands print it."""
        out: dict[str, dict[str, list[str]]] = {}
        for stream in self.homes:
            query, _, operator = stream.partition(".")
            out.setdefault(query, {})[operator] = list(self.sites_of(stream))
        return out


def _without(copies: Mapping[str, tuple[str, ...]], stream: str, site: str) -> Mapping[str, tuple[str, ...]]:
    """Copies of operators, less the one of a stream on a site."""
    if site not in copies.get(stream, ()):
        return copies
    return {**copies, stream: tuple(other for other in copies[stream] if other != site)}
