"""What reached the sinks, and when: exact while it fits, to 12 significant bits beyond."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weft.bodies.twin.loop.columns import Floats, Ints

EXACT_MAX = 4_000_000
BITS_KEPT = 12
SERIES_N = 100


@dataclass(slots=True)
class Latencies:
    """Latencies of one query in ns."""

    n: int = 0
    total: int = 0
    greatest: int = 0
    chunks: list[Ints] = field(default_factory=list)
    kept: int = 0
    values: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, latencies: Ints) -> None:
        """Takes some more, in ascending order."""
        self.n += len(latencies)
        # In two parts: a day times a hundred thousand records is beyond 64 bits.
        self.total += (int((latencies >> 20).sum()) << 20) + int((latencies & 0xFFFFF).sum())
        self.greatest = max(self.greatest, int(latencies[-1]))
        self.chunks.append(latencies)
        self.kept += len(latencies)
        if self.kept > EXACT_MAX:
            self._fold()

    def _fold(self) -> None:
        fresh = np.concatenate(self.chunks)
        bits = np.maximum(0, np.frexp(fresh.astype(np.float64))[1] - BITS_KEPT)
        rounded = (fresh >> bits) << bits
        values, inverse = np.unique(np.concatenate([self.values, rounded]), return_inverse=True)
        counts = np.bincount(inverse, weights=np.concatenate([self.counts, np.ones(len(rounded))]))
        self.values, self.counts = values, counts.astype(np.int64)
        self.chunks, self.kept = [], 0

    def quantile(self, share: float) -> int | None:
        """The least latency that this share of the records does not exceed (nearest rank)."""
        if self.n == 0:
            return None
        rank = max(0, int(np.ceil(share * self.n)) - 1)
        if len(self.values) == 0:
            if len(self.chunks) > 1:
                self.chunks = [np.sort(np.concatenate(self.chunks))]
            return int(self.chunks[0][rank])
        self._fold() if self.chunks else None
        return int(self.values[np.searchsorted(np.cumsum(self.counts), rank, side="right")])

    def summary(self) -> dict[str, float] | None:
        """Mean, quantiles and maximum in ms; None where nothing arrived."""
        if self.n == 0:
            return None
        values = {"mean": self.total / self.n}
        values |= {f"p{q}": float(self.quantile(q / 100) or 0) for q in (50, 95, 99)}
        values["max"] = float(self.greatest)
        return {name: round(value / 1e6, 6) for name, value in values.items()}


class Measures:
    """Hears of every record that reaches a sink."""

    def __init__(self, query_of_sink: list[int], queries: int, until_ns: int) -> None:
        self._query_of_sink = np.array(query_of_sink or [0], np.int64)
        self.series_ns = -(-until_ns // SERIES_N)
        self.latencies = [Latencies() for _ in range(queries)]
        self.series_sum: Floats = np.zeros((queries, SERIES_N))
        self.series_count: Ints = np.zeros((queries, SERIES_N), np.int64)
        self.busy: list[tuple[int, Ints]] = []
        self.since_ns = 0
        self.born_before: dict[str, int] = {}
        self.records: list[tuple[Ints, Ints, Ints]] | None = None
        self.listeners: list[list[tuple[Ints, Ints]]] = []
        """To each is added which queries' results came with which latencies."""
        self.started_ns: int | None = None
        self.after_start = [Latencies() for _ in range(queries)]
        """Latencies of results whose records were born after the start, where a run has one."""

    def take(self, sink: Ints, time: Ints, latency: Ints) -> None:
        """Some records."""
        query = self._query_of_sink[sink]
        if self.records is not None:
            self.records.append((sink.copy(), time.copy(), latency.copy()))
        for listener in self.listeners:
            listener.append((query, latency.copy()))
        if self.started_ns is not None:
            later = time - latency >= self.started_ns
            self._share_out(query[later], latency[later], self.after_start)
        queries = len(self.latencies)
        place = query * SERIES_N + time // self.series_ns
        shape, size = (queries, SERIES_N), queries * SERIES_N
        self.series_count += np.bincount(place, minlength=size).reshape(shape)
        self.series_sum += np.bincount(place, weights=latency, minlength=size).reshape(shape)
        self._share_out(query, latency, self.latencies)

    @staticmethod
    def _share_out(query: Ints, latency: Ints, into: list[Latencies]) -> None:
        # Small numbers are sorted by their digits: several times as fast as sorting by both keys at once.
        narrow = query.astype(np.uint16) if len(into) <= 1 << 16 else query
        grouped = latency[np.argsort(narrow, kind="stable")]
        ends = np.cumsum(np.bincount(query, minlength=len(into))).tolist()
        start = 0
        for one, end in zip(into, ends, strict=True):
            if end > start:
                one.add(np.sort(grouped[start:end]))
            start = end

    def forget(self, at_ns: int, born: dict[str, int]) -> None:
        """Counts begin anew."""
        self.latencies = [Latencies() for _ in self.latencies]
        self.after_start = [Latencies() for _ in self.latencies]
        self.since_ns, self.born_before = at_ns, born
