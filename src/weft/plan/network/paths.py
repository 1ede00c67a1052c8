"""Which way does a stream take, and why is there none? Least delay over links; the tree rule (N1) binds children."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

from weft.model import Deployment, Link


@dataclass(frozen=True, slots=True)
class Path:
    """The links a stream crosses from one site to another, and what they add up to."""

    sites: tuple[str, ...]
    delay_ms: float
    bandwidth_kbps: float | None = None
    emulate: bool = False


class Paths:
    """All least-delay paths of a deployment; a missing key means that no way leads there."""

    def __init__(self, deployment: Deployment) -> None:
        self._parents = {site.name: site.parent for site in deployment.sites}
        self._ways: dict[str, dict[str, Link]] = {site.name: {} for site in deployment.sites}
        for link in deployment.links:
            self._add(link.from_, link.to, link)
            if not link.oneway:
                self._add(link.to, link.from_, link)
        self._from: dict[str, dict[str, Path]] = {}

    def _add(self, start: str, end: str, link: Link) -> None:
        there = self._ways[start].get(end)
        if there is None or link.delay_ms < there.delay_ms:
            self._ways[start][end] = link

    def between(self, start: str, end: str) -> Path | None:
        """The least-delay path, or None where there is none."""
        if start not in self._from:
            self._from[start] = self._least(start)
        return self._from[start].get(end)

    def link(self, start: str, end: str) -> Link:
        """The link that leads from a site to its neighbour; KeyError where there is none."""
        return self._ways[start][end]

    def _least(self, start: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        # Of ways with the same delay the one over fewer links, then the first by name.
        waiting: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (start,))]
        while waiting:
            delay_ms, hops, sites = heapq.heappop(waiting)
            here = sites[-1]
            if here in found:
                continue
            links = [self._ways[a][b] for a, b in pairwise(sites)]
            widths = [link.bandwidth_kbps for link in links if link.bandwidth_kbps is not None]
            found[here] = Path(sites, delay_ms, min(widths, default=None), any(link.emulate for link in links))
            for there, link in self._ways[here].items():
                if there not in found:
                    heapq.heappush(waiting, (delay_ms + link.delay_ms, hops + 1, (*sites, there)))
        return found

    def tree_allows(self, start: str, end: str) -> bool:
        """N1: a stream flows only up its tree, and from the root on to sites that name no parent either."""
        above: str | None = start
        while above is not None:
            if above == end:
                return True
            above = self._parents[above]
        return self._parents[end] is None

    def why_not(self, start: str, end: str) -> str | None:
        """The reason a stream may not flow between two sites, or None where it may."""
        if not self.tree_allows(start, end):
            return f"streams flow only up to parents (tree rule), and {end} is none of {start}'s"
        if self.between(start, end) is None:
            return f"no path of links leads from {start} to {end}"
        return None
