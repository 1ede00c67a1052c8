"""Which way does every stream take, all at once? Delays between all sites, and the links of each path, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weft.model import Deployment
from weft.plan.network.paths import Paths

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# From this many sites on, compiling costs less than walking.
COMPILED_FROM = 48


@dataclass(frozen=True, slots=True)
class PathTables:
    """Delays of least-delay paths (infinite where there is none), who may send to whom, and the steps of each path.

    A way is one direction of a link; `before[a, b]` is the site before b on the path from a, -1 where there is none.
    """

    delay_ms: Floats
    allowed: Bools
    before: Ints
    way_of: dict[tuple[int, int], int]
    way_delay_ms: Floats
    way_kbps: Floats

    def steps(self) -> tuple[Ints, Ints]:
        """The ways of every path, one after another: those of a to b from `starts[a * n + b]` on."""
        n = len(self.delay_ms)
        starts = np.zeros(n * n + 1, np.int64)
        ways: list[int] = []
        for a in range(n):
            for b in range(n):
                if a != b and self.before[a, b] >= 0:
                    ways.extend(self._path(a, b))
                starts[a * n + b + 1] = len(ways)
        return starts, np.array(ways, np.int64)

    def _path(self, start: int, end: int) -> list[int]:
        path: list[int] = []
        while end != start:
            step = int(self.before[start, end])
            path.append(self.way_of[step, end])
            end = step
        return path[::-1]


def ways(deployment: Deployment, compiled_from: int = COMPILED_FROM) -> PathTables:
    """All paths of a deployment, the same as `Paths` gives one by one; compiled from so many sites on."""
    names = [site.name for site in deployment.sites]
    rank = {name: at for at, name in enumerate(names)}
    paths = Paths(deployment)
    links: dict[tuple[int, int], tuple[float, float]] = {}
    for link in deployment.links:
        for one, two in ((link.from_, link.to), (link.to, link.from_))[: 1 if link.oneway else 2]:
            chosen = paths.link(one, two)
            width = np.inf if chosen.bandwidth_kbps is None else chosen.bandwidth_kbps
            links[rank[one], rank[two]] = (chosen.delay_ms, width)
    way_of = {pair: at for at, pair in enumerate(sorted(links))}
    delays, before = _all(names, links) if len(names) >= compiled_from else _few(names, paths, rank)
    ordered = [links[pair] for pair in way_of]
    return PathTables(
        delays,
        np.isfinite(delays) & _tree(deployment, rank),
        before,
        way_of,
        np.array([delay for delay, _ in ordered], np.float64),
        np.array([width for _, width in ordered], np.float64),
    )


def _few(names: list[str], paths: Paths, rank: dict[str, int]) -> tuple[Floats, Ints]:
    delays = np.full((len(names), len(names)), np.inf)
    before = np.full((len(names), len(names)), -1, np.int64)
    for a, start in enumerate(names):
        for b, end in enumerate(names):
            path = paths.between(start, end)
            if path is not None:
                delays[a, b] = path.delay_ms
                for one, two in pairwise(path.sites):
                    before[a, rank[two]] = rank[one]
    return delays, before


def _all(names: list[str], links: dict[tuple[int, int], tuple[float, float]]) -> tuple[Floats, Ints]:
    from weft.plan.network.all_pairs import least_delays

    n = len(names)
    alphabetical = np.empty(n, np.int64)
    alphabetical[np.argsort(np.array(names))] = np.arange(n)
    starts = np.zeros(n + 1, np.int64)
    for one, _ in links:
        starts[one + 1] += 1
    pairs = sorted(links)
    ends = np.array([two for _, two in pairs], np.int64)
    costs = np.array([links[pair][0] for pair in pairs], np.float64)
    return least_delays(np.cumsum(starts), ends, costs, alphabetical)


def _tree(deployment: Deployment, rank: dict[str, int]) -> Bools:
    """N1 for all pairs: up its own tree, and from the root on to sites that name no parent either."""
    parents = {site.name: site.parent for site in deployment.sites}
    roots = np.array([site.parent is None for site in deployment.sites])
    allowed = np.tile(roots, (len(rank), 1))
    for name, at in rank.items():
        above: str | None = name
        while above is not None:
            allowed[at, rank[above]] = True
            above = parents[above]
    return allowed
