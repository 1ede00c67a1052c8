"""What is observed live? What was counted and measured since the last look, as one value."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Protocol

from weft.bodies.live.meter import Latencies, Meter
from weft.model import (
    Deployment,
    MachineState,
    Observed,
    ObservedOperator,
    ObservedQuery,
    ObservedSite,
    ObservedSource,
    Quantiles,
    Query,
    dataflow,
    observed_of,
    sink_name,
)
from weft.plan.judging.promises import judged, kept
from weft.protocol import counting

PERIOD_S_MIN = 0.5  # of a shorter one rates would tell nothing


class Counting(Protocol):
    """What observing needs of a run's progress."""

    def operators(self) -> Mapping[str, Mapping[str, Any]]:
        """Records in and out, selectivity and cost of every operator that has run, by `query.operator`."""

    def waiting(self) -> Mapping[str, int]:
        """Records that wait in channels and at sources, by the operator that will take them."""

    def state_kb(self) -> Mapping[str, float]:
        """The size of their state, by operator."""

    def used_s(self, site: str) -> float:
        """CPU seconds that a site's tasks have taken so far."""


class Observer:
    """Tells what was measured since it last looked; the first look only begins, and finds everything missing."""

    def __init__(
        self, deployment: Deployment, meter: Meter, machine: Callable[[str], MachineState | None] = lambda site: None
    ) -> None:
        self.deployment = deployment
        self.meter = meter
        self._machine = machine
        self._then_s: float | None = None
        self._period_s = 0.0
        self._counts: dict[Hashable, float] = {}
        self._spans: dict[str, int] = {}
        self._looked: dict[str, tuple[float, float]] = {}

    def observe(self, at_s: float, progress: Counting, lost: Collection[str]) -> Observed:
        """What was measured up to `at_s` seconds of flow; `lost` are the sites that are down."""
        now_s = time.monotonic()
        self._period_s = 0.0 if self._then_s is None else now_s - self._then_s
        self._then_s = now_s
        found, waiting, sizes = progress.operators(), progress.waiting(), progress.state_kb()
        sources = {one.name: self.meter.source(one.name) for one in self.deployment.sources}
        # A site that is asked too much takes long batches: what it takes in a period tells nothing of what comes.
        came = {name: self.meter.came(name) for name in sources}
        rates = {name: ObservedSource(self._source_per_s(name, count, lost)) for name, count in came.items()}
        operators = {
            stream: self._operator(stream, found.get(stream, {}), waiting.get(stream, 0), sizes.get(stream))
            for query in self.deployment.queries
            for stream in (f"{query.name}.{operator.name}" for operator in query.operators)
        }
        sites = {one.name: self._site(one.name, one.capacity, progress, lost) for one in self.deployment.sites}
        queries = {query.name: self._query(query, sources) for query in self.deployment.queries}
        return observed_of(self.deployment, round(at_s, 3), round(self._period_s, 3), rates, operators, sites, queries)

    def _new(self, what: Hashable, count: float) -> float | None:
        """How much a count has grown since the last look; None where there was none, or no time has passed."""
        before = self._counts.get(what)
        self._counts[what] = count
        if before is None or self._period_s < PERIOD_S_MIN:
            return None
        return counting.came(before, count)

    def _source_per_s(self, name: str, count: float, lost: Collection[str]) -> float | None:
        """What a source gives a second, between the moments at which its site looked.

        A busy machine tells late: by the moments at which that is heard a source would give nothing, then twice as
        much. None where nothing new was told. A site that is lost tells nothing, and nothing is taken there.
        """
        heard_per_s, looked_ms = self._per_s(("source", name), count), self.meter.looked_ms.get(name)
        if not looked_ms or self.deployment.source(name).site in lost:
            return heard_per_s
        then = self._looked.get(name)
        if then is not None and looked_ms - then[0] < 1000 * PERIOD_S_MIN:
            return None
        self._looked[name] = (looked_ms, count)
        if then is None:
            return None
        return round(counting.came(then[1], count) / (looked_ms - then[0]) * 1000, 6)

    def _per_s(self, what: Hashable, count: float | None) -> float | None:
        new = None if count is None else self._new(what, count)
        return None if new is None else round(new / self._period_s, 6)

    def _operator(
        self, stream: str, found: Mapping[str, Any], waiting: int, state_kb: float | None
    ) -> ObservedOperator:
        return ObservedOperator(
            in_per_s=self._per_s(("in", stream), found.get("records_in")),
            out_per_s=self._per_s(("out", stream), found.get("records_out")),
            cost_ms=found.get("cost_ms"),
            selectivity=found.get("selectivity"),
            backlog=waiting,
            state_kb=state_kb,
        )

    def _site(self, name: str, capacity: float, progress: Counting, lost: Collection[str]) -> ObservedSite:
        used = self._per_s(("used", name), progress.used_s(name))
        share = None if used is None else (used / capacity if capacity else 0.0)
        up = name not in lost
        machine = self._machine(name) if up else None
        return ObservedSite(None if share is None else round(share, 6), up, machine=machine)

    def _query(self, query: Query, sources: Mapping[str, int]) -> ObservedQuery:
        sinks = [sink_name(query, sink) for sink in query.sinks]
        given = self._new(("given", query.name), sum(self.meter.sinks.get(name, 0) for name in sinks))
        read = dataflow(self.deployment).sources_of(query.name)
        taken = [self._new((query.name, name), sources[name]) for name in read]
        latencies = Latencies()
        for name in sinks:
            spans, self._spans[name] = self.meter.spans_since(name, self._spans.get(name, 0))
            latencies.spans.extend(spans)
        summary = latencies.summary()
        quantile_ms = None if summary is None else latencies.quantile(query.promise.quantile)
        records_in = None if None in taken else round(sum(one or 0.0 for one in taken))
        late = round(self._new(("late", query.name), self.meter.late_of_query(query)) or 0.0)
        held = kept(judged(query.promise, quantile_ms, records_in or 0, late, None))
        return ObservedQuery(
            records_in=records_in,
            records_out=None if given is None else round(given),
            latency_ms=None if summary is None else Quantiles(**summary),
            promise_kept=held,
        )
