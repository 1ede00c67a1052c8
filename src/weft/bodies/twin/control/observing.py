"""What is observed in the twin? Every period of virtual time, between two events, from counts that the plane keeps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

import numpy as np

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import CONTROLLER
from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.plane import Plane
from weft.bodies.twin.records import names_of
from weft.model import (
    Deployment,
    Observed,
    ObservedOperator,
    ObservedQuery,
    ObservedSite,
    ObservedSource,
    Placement,
    Quantiles,
    Query,
    dataflow,
    observed_of,
)
from weft.plan.dataflow.rates import cost_ms
from weft.plan.judging.promises import judged, kept
from weft.protocol import Effect
from weft.protocol.control import Consider, Rounds
from weft.protocol.counting import came

NS_PER_S = 1_000_000_000


class Steered(Protocol):
    """What observing needs of steering."""

    carrier: Carrier

    def up(self, site: str) -> bool: ...
    def running(self) -> Placement: ...


class Observing:
    """Measures a run every period, and hands on what was measured."""

    def __init__(
        self, deployment: Deployment, plane: Plane, steered: Steered, period_s: float, seen: Callable[[Observed], None]
    ) -> None:
        self.deployment, self.plane, self.steered, self.seen = deployment, plane, steered, seen
        self._period_ns = max(1, round(period_s * NS_PER_S))
        self._then_ns = 0
        self._counts: dict[Hashable, int] = {}
        self._recent: list[tuple[c.Ints, c.Ints]] = []
        plane.measures.listeners.append(self._recent)
        steered.carrier.at(self._period_ns, self._look)

    def _look(self) -> None:
        now_ns = self.steered.carrier.now_ns
        self.steered.carrier.at(now_ns + self._period_ns, self._look)
        self.seen(self._observed(now_ns))
        self._then_ns = now_ns

    def _observed(self, now_ns: int) -> Observed:
        period_s = (now_ns - self._then_ns) / NS_PER_S
        plane, layout = self.plane, self.plane.layout
        born = {name: self._new(("born", name), plane.get(k, c.BORN)) for name, k in layout.sources.items()}
        sources = {name: ObservedSource(records / period_s) for name, records in born.items()}
        operators = {
            f"{query.name}.{operator.name}": self._operator((query.name, operator.name), period_s)
            for query in self.deployment.queries
            for operator in query.operators
        }
        busy = plane.settle(now_ns)
        sites = {name: self._site(name, int(busy[at]), period_s, operators) for at, name in enumerate(layout.sites)}
        return observed_of(self.deployment, now_ns / NS_PER_S, period_s, sources, operators, sites, self._queries(born))

    def _new(self, what: Hashable, count: int) -> int:
        """How much a count has grown since the last period."""
        before = self._counts.get(what, 0)
        self._counts[what] = count
        return came(before, count)

    def _site(self, name: str, busy_ns: int, period_s: float, operators: dict[str, ObservedOperator]) -> ObservedSite:
        used = self._new(("busy", name), busy_ns) / (period_s * NS_PER_S)
        # Little: records times the time each was there, over the records that came.
        stayed_ns = self._new(("area", name), round(self.plane.area(self.plane.layout.sites[name])))
        came_n = period_s * sum(operators[stream].in_per_s or 0.0 for stream in self.steered.running().on(name))
        return ObservedSite(used, self.steered.up(name), stayed_ns / came_n / 1e6 if came_n else None)

    def _operator(self, key: tuple[str, str], period_s: float) -> ObservedOperator:
        plane = self.plane
        first = plane.layout.operators[key]
        told = self.deployment.query(key[0]).operator(key[1])
        served, emitted = plane.get(first, c.ENDED), plane.get(first, c.NUMBER)
        return ObservedOperator(
            in_per_s=self._new(("in", key), plane.total(key, c.ARRIVED)) / period_s,
            out_per_s=self._new(("out", key), emitted) / period_s,
            cost_ms=cost_ms(told),
            selectivity=emitted / served if served else None,
            backlog=plane.total(key, c.WAITS),
            state_kb=told.state_kb,
        )

    def _queries(self, born: dict[str, int]) -> dict[str, ObservedQuery]:
        self.plane.flush()
        found = {}
        for number, query in enumerate(self.deployment.queries):
            parts = [latency[which == number] for which, latency in self._recent]
            latencies = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
            records_in = sum(born[name] for name in dataflow(self.deployment).sources_of(query.name))
            found[query.name] = self._query(query, latencies, records_in)
        self._recent.clear()
        return found

    def _query(self, query: Query, latencies: c.Ints, records_in: int) -> ObservedQuery:
        dropped = sum(
            self._new(("dropped", query.name, node.stream), self.plane.total(names_of(node.stream), c.DROPPED))
            for node in dataflow(self.deployment).behind(query.name)
        )
        quantile_ms = _quantile_ms(latencies, query.promise.quantile)
        held = kept(judged(query.promise, quantile_ms, records_in, dropped, None))
        return ObservedQuery(records_in, len(latencies), _quantiles(latencies), held)


def _quantile_ms(latencies: c.Ints, share: float) -> float | None:
    """The least latency that this share of the results does not exceed."""
    return float(latencies[max(0, int(np.ceil(share * len(latencies))) - 1)]) / 1e6 if len(latencies) else None


def _quantiles(latencies: c.Ints) -> Quantiles | None:
    if not len(latencies):
        return None
    p50, p95, p99 = (_quantile_ms(latencies, share) or 0.0 for share in (0.5, 0.95, 0.99))
    return Quantiles(float(latencies.mean()) / 1e6, p50, p95, p99, float(latencies[-1]) / 1e6)


class Advising:
    """Tells the controller what was observed, and lets rules look at it."""

    def __init__(self, rounds: Rounds, steered: Steered) -> None:
        self.rounds, self.steered = rounds, steered

    def seen(self, observed: Observed) -> None:
        """A period was measured."""
        for fact in self.rounds.measured(observed, self.steered.running()):
            self.steered.carrier.take(CONTROLLER, fact)

    def perform(self, name: str, effect: Effect) -> None:
        """Does what the controller asks for."""
        if isinstance(effect, Consider):
            for fact in self.rounds.considered(effect.number):
                self.steered.carrier.feed(name, fact)
        self.rounds.told(effect)
