"""Operator to site, whole, a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Placement:
    """Which sites run each operator (`(query, operator)`), the first being its home, and why."""

    sites: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def home(self, query: str, operator: str) -> str:
        """The site an operator runs on."""
        return self.sites[query, operator][0]

    def put(self, query: str, operator: str, site: str, reason: str = "") -> Placement:
        """The same placement with one operator put on a site."""
        where = (query, operator)
        return Placement({**self.sites, where: (site,)}, {**self.reasons, where: reason})

    def on(self, site: str) -> Iterator[tuple[str, str]]:
        """The operators that a site runs."""
        return (where for where, sites in self.sites.items() if site in sites)

    def as_json(self) -> dict[str, dict[str, list[str]]]:
        """`{query: {operator: [site]}}`, as the commands print it."""
        out: dict[str, dict[str, list[str]]] = {}
        for (query, operator), sites in self.sites.items():
            out.setdefault(query, {})[operator] = list(sites)
        return out
