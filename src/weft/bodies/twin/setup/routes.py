"""Which links does a record cross? Least-delay paths; only links that can hold it up are entered one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.columns import Ints
from weft.bodies.twin.loop.pointers import compiled
from weft.model import Deployment, PartitionAt
from weft.plan.network.path_tables import ways as all_ways

NS_PER_MS = 1_000_000
COMPILED_FROM = 12  # sites; for fewer, loading what is compiled takes longer than walking
DELAY_MS_MAX = 1e10  # four months; the longest path still fits 64 bits


@compiled
def add_up(before: Any, step_ns: Any, step_limited: Any, delay_ns: Any, limited: Any) -> None:
    """The whole delay of every path (-1 where there is none), and whether something on it can hold a record up."""
    n = before.shape[0]
    for start in range(n):
        for end in range(n):
            at, total, held = end, 0, False
            while at != start and before[start, at] >= 0:
                step = before[start, at]
                total += step_ns[step, at]
                held = held or step_limited[step, at]
                at = step
            delay_ns[start, end] = total if at == start else -1
            limited[start, end] = held and at == start


class Ways:
    """The way between every two sites: one delay where nothing on it is limited, else its links in order."""

    def __init__(self, deployment: Deployment, sites: list[str]) -> None:
        self._sites = sites
        self._at = {name: i for i, name in enumerate(sites)}
        self.links: dict[int, list[int]] = {}
        self.link_delay_ns: list[int] = []
        self.ns_per_byte: list[float] = []
        self.names: list[tuple[str, str]] = []
        self.gates: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[int, int], int] = {}
        cuts = [what.partition for what in deployment.scenario if isinstance(what, PartitionAt)]
        self._cut = {(self._at[a], self._at[b]) for pair in cuts for a, b in (pair, pair[::-1])}
        found = all_ways(deployment, COMPILED_FROM)
        self._kbps, self._before = found.way_kbps, found.before
        self._way_of = found.way_of
        n = len(sites)
        self._step_ns: Ints = np.zeros((n, n), np.int64)
        step_limited = np.zeros((n, n), np.bool_)
        for pair, way in found.way_of.items():
            self._step_ns[pair] = round(min(found.way_delay_ms[way], DELAY_MS_MAX) * NS_PER_MS)
            step_limited[pair] = np.isfinite(found.way_kbps[way]) or pair in self._cut
        self.delay_ns: Ints = np.empty((n, n), np.int64)
        limited = np.empty((n, n), np.bool_)
        add_up(self._before, self._step_ns, step_limited, self.delay_ns, limited)
        for pair in self._cut:
            limited[pair] |= self.delay_ns[pair] >= 0
        for start, end in np.argwhere(limited).tolist():
            self.links[start * n + end] = self._entered(start, end)

    def between_ns(self, start: str, end: str) -> int:
        """The delay from one site to another; -1 where no way leads."""
        return int(self.delay_ns[self._at[start], self._at[end]])

    def _entered(self, start: int, end: int) -> list[int]:
        pairs: list[tuple[int, int]] = []
        at = end
        while at != start:
            step = int(self._before[start, at])
            pairs.append((step, at))
            at = step
        rows: list[int] = []
        if (start, end) in self._cut and (start, end) not in pairs:
            rows.append(self._gate(start, end))
        for pair in reversed(pairs):
            if pair in self._cut:
                rows.append(self._gate(*pair))
            rows.append(self._row(*pair))
        return rows

    def _row(self, start: int, end: int) -> int:
        if (start, end) not in self._rows:
            kbps = float(self._kbps[self._way_of[start, end]])
            # 1 kbps is 1000 bits a second.
            per_byte = 8e6 / max(kbps, 1e-9) if np.isfinite(kbps) else 0.0
            self._rows[start, end] = self._new(int(self._step_ns[start, end]), per_byte, start, end)
        return self._rows[start, end]

    def _gate(self, start: int, end: int) -> int:
        """A door between two sites that a partition shuts; shut for both ways at once."""
        pair = self._sites[start], self._sites[end]
        if pair not in self.gates:
            self.gates[pair] = self._new(0, 0.0, start, end)
        return self.gates[pair]

    def _new(self, delay_ns: int, per_byte: float, start: int, end: int) -> int:
        self.link_delay_ns.append(delay_ns)
        self.ns_per_byte.append(per_byte)
        self.names.append((self._sites[start], self._sites[end]))
        return len(self.names) - 1
