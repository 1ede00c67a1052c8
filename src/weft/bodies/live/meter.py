"""How is it doing? Counts and latencies gathered from commits, at no cost to the records."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.bodies.live.counts import Counts
from weft.bodies.live.uptime import Uptime
from weft.model import Deployment, Query, dataflow, late_name, sink_name
from weft.plan.judging.promises import judged, kept
from weft.protocol.reporting import Committed

RECENT_S = 10.0
LATENCIES_MAX = 4096
STARTING = 3  # batches of each fragment that belong to the start: code is compiled, Python processes begin

Spans = npt.NDArray[np.float64]


@dataclass(slots=True)
class Latencies:
    """End-to-end latencies as spans of (least, greatest, records); the newest are kept where there are too many."""

    spans: deque[tuple[float, float, int]] = field(default_factory=lambda: deque(maxlen=LATENCIES_MAX))

    def add(self, low_ms: float, high_ms: float, rows: int) -> None:
        """Records whose latencies lie evenly between two values."""
        self.spans.append((max(0.0, low_ms), max(0.0, high_ms), rows))

    def summary(self) -> dict[str, float] | None:
        """Mean, quantiles and maximum over records; None before the first."""
        if not self.spans:
            return None
        low, high, rows = np.array(self.spans).T
        values = {"mean": float(((low + high) / 2 * rows).sum() / rows.sum())}
        values |= {f"p{q}": _quantile(low, high, rows, q / 100) for q in (50, 95, 99)}
        values["max"] = float(high.max())
        return {name: round(value, 1) for name, value in values.items()}

    def quantile(self, share: float) -> float:
        """The latency that this share of the records does not exceed, each span taken as even."""
        low, high, rows = np.array(self.spans).T
        return _quantile(low, high, rows, share)


def _quantile(low: Spans, high: Spans, rows: Spans, share: float) -> float:
    wanted = share * rows.sum()
    wide = np.maximum(high - low, 1e-9)
    least, greatest = float(low.min()), float(high.max())
    for _ in range(40):
        middle = (least + greatest) / 2
        if (rows * np.clip((middle - low) / wide, 0.0, 1.0)).sum() < wanted:
            least = middle
        else:
            greatest = middle
    return greatest


class Meter:
    """Hears of every commit and every batch; gives the numbers that people and programs ask for.

    Records in, out and bad are those of all runs of one state; rates and latencies are of this run.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.commits = 0
        self.counts = Counts()
        self.uptime = Uptime()
        self.timed: dict[tuple[str, str], int] = {}
        self.at_source: dict[tuple[str, str], int] = {}  # of timed sources: records that wait to be taken
        self.looked_ms: dict[str, float] = {}  # of timed sources: when that was so, by the clock of the site that reads
        self.bad: dict[tuple[str, str], int] = {}
        self.sinks: dict[str, int] = {}
        self.late: dict[str, int] = {}  # by where they were put down or counted
        self._came: dict[str, int] = {}
        self._given: dict[str, int] = {}
        self._latencies: dict[str, Latencies] = {}
        self._spans: dict[str, int] = {}
        self._recent: dict[str, deque[tuple[float, int]]] = {}
        self._born: dict[str, deque[float]] = {}  # of the oldest record of each span, beside `_latencies`
        self._batches: dict[str, dict[int, float]] = {}  # of each fragment: when its first ones were committed
        self._lock = threading.Lock()

    def committed(self, commit: Committed, ago_s: float = 0.0) -> None:
        """A segment or sink batch is there for good, since so many seconds."""
        with self._lock:
            self.commits += 1
            if commit.late:
                self._left_out(commit.stream, commit.rows_total)
            begun = self._batches.setdefault(commit.fragment, {})
            if len(begun) < STARTING:
                begun[commit.batch] = commit.committed_ms
            if not commit.sink or commit.late:
                return
            self._holds(commit.stream, commit.rows_total)
            self._given[commit.stream] = self._given.get(commit.stream, 0) + commit.rows
            recent = self._recent.setdefault(commit.stream, deque())
            recent.append((time.monotonic() - ago_s, commit.rows))
            while recent and recent[0][0] < time.monotonic() - RECENT_S:
                recent.popleft()
            if commit.rows and commit.birth_ms is not None:
                first, last = commit.birth_ms
                latencies = self._latencies.setdefault(commit.stream, Latencies())
                latencies.add(commit.committed_ms - last, commit.committed_ms - first, commit.rows)
                self._born.setdefault(commit.stream, deque(maxlen=LATENCIES_MAX)).append(first)
                self._spans[commit.stream] = self._spans.get(commit.stream, 0) + 1

    def forget(self, queries: Collection[str]) -> None:
        """Nothing is known of queries that went: ones of these names that come are counted anew."""
        with self._lock:
            for held in (self.sinks, self.late, self._given, self._latencies, self._spans, self._recent, self._born):
                for name in [name for name in held if name.partition(".")[0] in queries]:
                    del held[name]
            self.counts.forget(queries)

    def holds(self, sink: str, rows_total: int) -> None:
        """A sink holds so many records already: those of runs before this one."""
        with self._lock:
            self._holds(sink, rows_total)

    def _holds(self, sink: str, rows_total: int) -> None:
        self.sinks[sink] = max(rows_total, self.sinks.get(sink, 0))  # a look may be older than the last commit

    def left_out(self, place: str, rows_total: int) -> None:
        """A watermark has left out so many records by now, those of runs before this one included."""
        with self._lock:
            self._left_out(place, rows_total)

    def _left_out(self, place: str, rows_total: int) -> None:
        self.late[place] = max(rows_total, self.late.get(place, 0))

    def given(self, query: Query) -> int:
        """Results of this run alone."""
        with self._lock:
            return sum(self._given.get(sink_name(query, sink), 0) for sink in query.sinks)

    def spans_since(self, sink: str, before: int) -> tuple[list[tuple[float, float, int]], int]:
        """Latencies of a sink's results after the first `before` commits that had any, and how many have by now."""
        with self._lock:
            count = self._spans.get(sink, 0)
            held = self._latencies.get(sink, Latencies()).spans
            return list(islice(held, max(0, len(held) - (count - before)), None)), count

    def rate_per_s(self, sink: str) -> float:
        """Records per second that a sink was given lately."""
        with self._lock:
            recent = self._recent.get(sink)
            if not recent:
                return 0.0
            since = time.monotonic() - RECENT_S
            return sum(rows for moment, rows in recent if moment >= since) / RECENT_S

    def query(self, query: Query) -> dict[str, Any]:
        """A query's numbers as the commands print them."""
        names = [sink_name(query, sink) for sink in query.sinks]
        with self._lock:
            spans = [span for name in names for span in self._latencies.get(name, Latencies()).spans]
            records_out = sum(self.sinks.get(name, 0) for name in names)
        latencies = Latencies(deque(spans))
        quantile_ms = latencies.quantile(query.promise.quantile) if spans else None
        records_in = sum(self.source(name) for name in dataflow(self.deployment).sources_of(query.name))
        late = self.late_of_query(query)
        promise = judged(query.promise, quantile_ms, records_in, late, self.uptime.share(query.name))
        return {
            "latency_ms": latencies.summary(),
            "after_start_ms": self.after_start(query),
            "records_in": records_in,
            "records_out": records_out,
            "dropped": late,  # live, nothing is dropped but what comes too late
            "late": late,
            "bad_records": sum(self.bad_of(name) for name in dataflow(self.deployment).sources_of(query.name)),
            "results": "at least once" if self._may_double(query) else "each once",
            "promise": promise,
            "promise_kept": kept(promise),
        }

    def _may_double(self, query: Query) -> bool:
        """Whether a crash may let readers of a query's results find some of them twice."""
        return any(sink.at_least_once for sink in query.sinks)

    def late_of(self, stream: str, own: bool = False) -> int:
        """Records that a watermark has left out of what an operator (`query.operator`) gives.

        What is divided off an operator made of several has its part of those, unless `own` is asked for.
        """
        flow, places = dataflow(self.deployment), {f"{stream}.late"}
        if flow.makes(stream) and not own:
            places |= {late_name(whole, stream) for whole in flow.node(stream).inputs}
        within = f"{stream}.late."
        with self._lock:
            return sum(rows for name, rows in self.late.items() if name in places or name.startswith(within))

    def late_of_query(self, query: Query) -> int:
        """Records that watermarks have left out on the way to a query's results, in other queries that it reads too."""
        return sum(self.late_of(node.stream) for node in dataflow(self.deployment).behind(query.name))

    def start_ended_ms(self) -> float:
        """When every fragment had ended its first batches, on the clock of births; 0 before any batch ended."""
        with self._lock:
            return max((max(begun.values()) for begun in self._batches.values() if begun), default=0.0)

    def after_start(self, query: Query) -> dict[str, float] | None:
        """As `latency_ms`, of results whose records were all born after the start; None where there are none."""
        since_ms = self.start_ended_ms()
        names = [sink_name(query, sink) for sink in query.sinks]
        with self._lock:
            both = [(self._born[name], self._latencies[name].spans) for name in names if name in self._born]
            spans = [span for births, held in both for born, span in zip(births, held, strict=True) if born >= since_ms]
        return Latencies(deque(spans)).summary()

    def births(self, query: Query) -> list[tuple[float, float, float, int]]:
        """Of each commit with results: when their first and last record were born, when it came (ms), how many results.

        Of this run alone, the newest where there are too many.
        """
        names = [sink_name(query, sink) for sink in query.sinks]
        with self._lock:
            return [
                (born, born + high - low, born + high, rows)
                for name in names
                if name in self._born
                for born, (low, high, rows) in zip(self._born[name], self._latencies[name].spans, strict=True)
            ]

    def source(self, name: str) -> int:
        """Records that a source has offered; fragments that read it side by side see the same ones."""
        timed = [rows for (_, source), rows in list(self.timed.items()) if source == name]
        return max([self.counts.records_of(name), *timed])

    def came(self, name: str) -> int:
        """Records that have come from a source, those that no batch has taken yet too."""
        reached = {key for key in (*self.timed, *self.at_source) if key[1] == name}
        timed = [self.timed.get(key, 0) + self.at_source.get(key, 0) for key in reached]
        # What is taken and what waits are looked at one after the other: a batch between them is missing for a moment.
        self._came[name] = max([self.counts.records_of(name), *timed, self._came.get(name, 0)])
        return self._came[name]

    def bad_of(self, name: str) -> int:
        """Bad records that were left out of a source."""
        return max([self.counts.bad_of(name), *(rows for (_, source), rows in self.bad.items() if source == name)])
