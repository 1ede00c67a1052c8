"""Which links does a record cross? Least-delay paths; only links that can hold it up are entered one by one."""

from __future__ import annotations

import numpy as np

from weft.model import Deployment, Link, PartitionAt
from weft.plan.paths import Paths

NS_PER_MS = 1_000_000


class Ways:
    """The way between every two sites: one delay where nothing on it is limited, else its links in order."""

    def __init__(self, deployment: Deployment, sites: list[str]) -> None:
        self._at = {name: i for i, name in enumerate(sites)}
        self.delay_ns = np.full((len(sites), len(sites)), -1, np.int64)
        self.links: dict[int, list[int]] = {}
        self.link_delay_ns: list[int] = []
        self.ns_per_byte: list[float] = []
        self.names: list[tuple[str, str]] = []
        self.gates: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[str, str], int] = {}
        self._direct = self._fastest(deployment)
        cuts = [what.partition for what in deployment.scenario if isinstance(what, PartitionAt)]
        self._cut = {pair for a, b in cuts for pair in ((a, b), (b, a))}
        self._paths = Paths(deployment)
        for start in sites:
            for end in sites:
                self._add(start, end)

    def between_ns(self, start: str, end: str) -> int:
        """The delay from one site to another; -1 where no way leads."""
        return int(self.delay_ns[self._at[start], self._at[end]])

    @staticmethod
    def _fastest(deployment: Deployment) -> dict[tuple[str, str], Link]:
        direct: dict[tuple[str, str], Link] = {}
        for link in deployment.links:
            for pair in [(link.from_, link.to)] + ([] if link.oneway else [(link.to, link.from_)]):
                if pair not in direct or link.delay_ms < direct[pair].delay_ms:
                    direct[pair] = link
        return direct

    def _add(self, start: str, end: str) -> None:
        path = self._paths.between(start, end)
        if path is None:
            return
        pairs = list(zip(path.sites, path.sites[1:], strict=False))
        delays_ns = [round(self._direct[pair].delay_ms * NS_PER_MS) for pair in pairs]
        self.delay_ns[self._at[start], self._at[end]] = sum(delays_ns)
        rows: list[int] = []
        if (start, end) in self._cut and (start, end) not in pairs:
            rows.append(self._gate(start, end))
        for pair in pairs:
            if pair in self._cut:
                rows.append(self._gate(*pair))
            rows.append(self._row(*pair))
        if any(self._limited(row) for row in rows):
            self.links[self._at[start] * len(self._at) + self._at[end]] = rows

    def _limited(self, row: int) -> bool:
        return self.ns_per_byte[row] > 0 or row in self.gates.values()

    def _row(self, start: str, end: str) -> int:
        if (start, end) not in self._rows:
            link = self._direct[start, end]
            # 1 kbps is 1000 bits a second.
            per_byte = 0.0 if link.bandwidth_kbps is None else 8e6 / max(link.bandwidth_kbps, 1e-9)
            self._rows[start, end] = self._new(round(link.delay_ms * NS_PER_MS), per_byte, start, end)
        return self._rows[start, end]

    def _gate(self, start: str, end: str) -> int:
        """A door between two sites that a partition shuts; shut for both ways at once."""
        if (start, end) not in self.gates:
            self.gates[start, end] = self._new(0, 0.0, start, end)
        return self.gates[start, end]

    def _new(self, delay_ns: int, per_byte: float, start: str, end: str) -> int:
        self.link_delay_ns.append(delay_ns)
        self.ns_per_byte.append(per_byte)
        self.names.append((start, end))
        return len(self.names) - 1
