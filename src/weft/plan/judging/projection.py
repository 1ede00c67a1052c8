"""What would a placement do to its queries? Projected latency and availability against what was promised.

Synergy §2.3.4: a record's time on a site is that of an M/M/1 queue, service / (1 - utilisation), with the load of
every operator there. Of a query two things are told: its slowest way from a source to a sink, which a promise is held
against, and the mean over its results, which planners minimise. Both are means over time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from weft.model import Dataflow, Deployment, Level, Operator, Outlet, Placement, Query, dataflow
from weft.plan.dataflow.rates import Rates, cost_ms, ideal_rates
from weft.plan.dataflow.shares import shares
from weft.plan.judging.potential import crossings
from weft.plan.network.paths import Path, Paths

# A stream of so many kbps weighs as much as one hop more, so that of placements nearly as good the one that sends less
# is taken.
HOP_KBPS = 25_000.0

IDEAL = "ideal"
MICRO_BATCH = "micro-batch"


Way = tuple[tuple[str, float], ...]
"""Steps to a result, each a site or `site to site`, and what it takes in ms."""


@dataclass(frozen=True, slots=True)
class Projection:
    """What a query may expect, by one of two models; None is without bound, or not known.

    `latency_ms` is what a promise is held against: the slowest way (ideal), or the promised quantile (micro-batch).
    `lost` is the share of records that full queues lose. Where the promise has levels, `level_ms` is the best that is
    kept, and `worth` what that is worth, 1 for the promise itself.
    """

    latency_ms: float | None
    availability: float
    admitted: bool
    reason: str
    mean_ms: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    model: str = IDEAL
    lost: float = 0.0
    level_ms: float | None = None
    worth: float = 1.0


def project(
    deployment: Deployment,
    placement: Placement,
    rates: Rates | None = None,
    *,
    hop_ms: float = 0.0,
    admit_hop_ms: float = 0.0,
) -> dict[str, Projection]:
    """The projection of every query of a whole placement; each stream between sites takes `hop_ms` more.

    With `admit_hop_ms` promises alone are held against latencies with such hops, as placement counts them.
    """
    used = rates or ideal_rates(deployment)
    busy = utilisation(deployment, placement, used)
    paths = Paths(deployment)
    found = {
        query.name: judged(query, *expected(deployment, query, placement, used, busy, paths, hop_ms))
        for query in deployment.queries
    }
    if not admit_hop_ms:
        return found
    return admitted_as(found, project(deployment, placement, used, hop_ms=admit_hop_ms))


def admitted_as(found: Mapping[str, Projection], counted: Mapping[str, Projection]) -> dict[str, Projection]:
    """Projections with the verdicts of others, which count more."""
    return {
        name: replace(
            one,
            admitted=counted[name].admitted,
            reason=counted[name].reason,
            level_ms=counted[name].level_ms,
            worth=counted[name].worth,
        )
        for name, one in found.items()
    }


def utilisation(deployment: Deployment, placement: Placement, rates: Rates) -> dict[str, float]:
    """Load over capacity of every site, from all operators placed on it; sites of capacity 0 only send."""
    load_ms = {site.name: 0.0 for site in deployment.sites}
    for stream, load in rates.load_ms.items():
        load_ms[placement.home(stream)] += load
    return {site.name: _share(load_ms[site.name], 1000.0 * site.capacity) for site in deployment.sites}


def _share(load_ms: float, room_ms: float) -> float:
    if not load_ms:
        return 0.0
    return load_ms / room_ms if room_ms else math.inf


def latency_total_ms(deployment: Deployment, projected: Mapping[str, Projection]) -> float | None:
    """Mean latencies of all queries by their weights; None where one has no bound."""
    total = 0.0
    for query in deployment.queries:
        mean_ms = projected[query.name].mean_ms
        if mean_ms is None:
            return None
        total += query.weight * mean_ms
    return total


def latency_objective(deployment: Deployment, placement: Placement, rates: Rates | None = None) -> float | None:
    """What planners with the latency objective minimise: mean latencies, hops, a little for what those carry."""
    hop_ms, used = deployment.control.place.hop_ms or 0.0, rates or ideal_rates(deployment)
    total = latency_total_ms(deployment, project(deployment, placement, used, hop_ms=hop_ms))
    if total is None or hop_ms == 0.0:
        return total
    sent = sum(kbps for start, end, kbps in crossings(deployment, placement, used) if start != end)
    return total + hop_ms / HOP_KBPS * sent


class PathsKnown(Protocol):
    """Who knows the way between two sites."""

    def between(self, start: str, end: str) -> Path | None:
        """The path, or None where there is none."""


def expected(
    deployment: Deployment, query: Query, placement: Placement, rates: Rates, busy: Mapping[str, float],
    paths: PathsKnown, hop_ms: float,
) -> tuple[Projection, str, Where]:  # fmt: skip
    """What a query may expect of sites that are so busy, why there is no bound, if so, and where time is spent."""
    flow = dataflow(deployment)
    steps = _Steps(deployment, flow, query.name, placement.homes, busy, paths, hop_ms)
    slowest, way = steps.slowest()
    latency_ms = slowest if math.isfinite(slowest) else None
    mean_ms = steps.mean_ms(rates) if latency_ms is not None else None
    sites = _sites(flow, query.name, placement.homes)
    availability = math.prod(1.0 - deployment.site(name).failure_probability for name in sites)
    lost = _lost(flow, query.name, placement.homes, busy)
    found = Projection(latency_ms, availability, True, "", mean_ms, lost=lost)
    full = _overloaded([name for name, _ in way if busy.get(name, 0.0) >= 1])
    most = max(way, key=lambda step: step[1], default=None)
    weakest = max(sites, key=lambda name: deployment.site(name).failure_probability, default=None)
    spent = "" if most is None else f"{most[1]:.1f} ms of it {'from' if ' to ' in most[0] else 'at'} {most[0]}"
    return found, full, Where(spent, weakest or "")


@dataclass(frozen=True, slots=True)
class Where:
    """Where most of a latency is spent, in words, and the site that is down most often; empty where not known."""

    latency: str = ""
    availability: str = ""


def judged(query: Query, found: Projection, unbound: str, where: Where | None = None) -> Projection:
    """Whether a query of which so much is expected is admitted, and why; `unbound` says why there is no latency."""
    latency_ms, promise = found.latency_ms, query.promise
    broken = _broken(query, latency_ms, found, unbound, where or Where())
    if broken:
        return replace(found, admitted=False, reason="; ".join(broken))
    if latency_ms is None:
        return replace(found, admitted=True, reason=f"{unbound}, but no latency was promised")
    level = promise.level(latency_ms) if promise.levels else None
    if level is None:
        return replace(found, admitted=True, reason=_kept(query, None))
    kept = _kept(query, None if level.latency_ms == promise.latency_ms else level)
    reason = f"{kept}, {latency_ms:.1f} ms expected" if level.latency_ms != promise.latency_ms else kept
    return replace(found, admitted=True, reason=reason, level_ms=level.latency_ms, worth=level.weight)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What every step to a query's results takes: the operators behind it at their sites, streams between them."""

    deployment: Deployment
    flow: Dataflow
    query: str
    homes: Mapping[str, str]
    busy: Mapping[str, float]
    paths: PathsKnown
    hop_ms: float

    def slowest(self) -> tuple[float, Way]:
        """The latency of the slowest way to a sink, infinite over a full site, and what each step of it takes."""
        done: dict[str, tuple[float, Way]] = {source.name: (0.0, ()) for source in self.deployment.sources}
        for node in self.flow.behind(self.query):
            home = self.homes[node.stream]
            arrivals = (self._further(*done[other], other, home, self._stream_ms(other, home)) for other in node.inputs)
            latency_ms, way = max(arrivals)
            visit_ms = self._visit_ms(node.operator, home)
            done[node.stream] = (latency_ms + visit_ms, (*way, (home, visit_ms)))
        ends = (
            self._further(*done[outlet.stream], outlet.stream, end, self._outlet_ms(outlet))
            for outlet in self.flow.outlets_of(self.query)
            for end in (outlet.site(self.flow, self.homes),)
        )
        # What others use of a query that is gone has no sink of its own.
        return max(ends, default=(0.0, ()))

    def _further(self, before_ms: float, way: Way, stream: str, end: str, more_ms: float) -> tuple[float, Way]:
        """A way by one stream longer."""
        start = self.flow.site_of(stream, self.homes)
        return before_ms + more_ms, (*way, (f"{start} to {end}", more_ms)) if start != end else way

    def mean_ms(self, rates: Rates) -> float:
        """The mean latency of results, each operator, stream and sink by the share of results that pass there."""
        part, node = shares(self.flow, self.query, rates), self.flow.node
        visits = sum(
            share * self._visit_ms(node(stream).operator, self.homes[stream])
            for stream, share in part.operators.items()
            if share > 0
        )
        streams = sum(share * self._stream_ms(name, self.homes[to]) for (name, to), share in part.streams.items())
        outlets = self.flow.outlets_of(self.query)
        ends = sum(share * self._outlet_ms(outlet) for outlet, share in zip(outlets, part.sinks, strict=True))
        return visits + streams + ends

    def _visit_ms(self, operator: Operator, home: str) -> float:
        site = self.deployment.site(home)
        if self.busy[site.name] >= 1 or not site.capacity:
            return math.inf
        return cost_ms(operator) / site.capacity / (1.0 - self.busy[site.name])

    def _stream_ms(self, stream: str, end: str) -> float:
        start = self.flow.site_of(stream, self.homes)
        path = self.paths.between(start, end)
        assert path is not None, f"a placement without a way from {start} to {end}"
        return path.delay_ms + self.hop_ms * (start != end)

    def _outlet_ms(self, outlet: Outlet) -> float:
        return self._stream_ms(outlet.stream, outlet.site(self.flow, self.homes))


def _sites(flow: Dataflow, query: str, homes: Mapping[str, str]) -> list[str]:
    """The sites without which a query does not run: those of its sources, its sinks and the operators behind it."""
    used = {flow.sources[name].site for name in flow.sources_of(query)}
    used |= {homes[node.stream] for node in flow.behind(query)}
    used |= {outlet.site(flow, homes) for outlet in flow.outlets_of(query)}
    return sorted(used)


def _lost(flow: Dataflow, query: str, homes: Mapping[str, str], busy: Mapping[str, float]) -> float:
    """The share of records that queues which may drop lose on full sites."""
    queues = [(node.operator.queue, busy[homes[node.stream]]) for node in flow.behind(query)]
    return max(
        (1.0 - 1.0 / used for queue, used in queues if queue is not None and queue.when_full == "drop" and used > 1),
        default=0.0,
    )


def _broken(query: Query, latency_ms: float | None, found: Projection, unbound: str, where: Where) -> list[str]:
    """Each promise that would break: by how much, where, and the nearest that could be kept."""
    promise, reasons, availability, lost = query.promise, [], found.availability, found.lost
    if promise.latency_ms is not None and latency_ms is None:
        reasons.append(unbound)
    elif promise.latency_ms is not None and latency_ms is not None and promise.level(latency_ms) is None:
        last_ms = promise.levels[-1].latency_ms if promise.levels else promise.latency_ms
        what = "last level of" if promise.levels else "promised"
        at = f", {where.latency}" if where.latency else ""
        reasons.append(
            f"latency {latency_ms:.1f} ms is above the {what} {last_ms:g} ms by {latency_ms - last_ms:.1f} ms{at}; "
            f"latency_ms: {math.ceil(latency_ms)} could be kept"
        )
    if promise.availability is not None and availability < promise.availability:
        at = f", most often down is {where.availability}" if where.availability else ""
        least = math.floor(availability * 10_000) / 10_000
        reasons.append(
            f"availability {availability:.4g} is below the promised {promise.availability:g} by "
            f"{promise.availability - availability:.4g}{at}; availability: {least:g} could be kept"
        )
    if promise.loss is not None and lost > promise.loss:
        reasons.append(
            f"full queues lose {lost:.1%} of records, promised were at most {promise.loss:.1%}; "
            f"loss: {math.ceil(lost * 1000) / 1000:g} could be kept"
        )
    return reasons


def _overloaded(sites: list[str]) -> str:
    names = list(dict.fromkeys(sites))
    return f"site {', '.join(names)} is overloaded" if len(names) < 2 else f"sites {', '.join(names)} are overloaded"


def _kept(query: Query, level: Level | None) -> str:
    promise = query.promise
    latency = (
        "latency" if level is None else f"latency at the level of {level.latency_ms:g} ms (worth {level.weight:g})"
    )
    given = {latency: promise.latency_ms, "availability": promise.availability, "loss": promise.loss}
    promised = [name for name, value in given.items() if value is not None]
    return f"keeps its promised {' and '.join(promised)}" if promised else "nothing was promised"
