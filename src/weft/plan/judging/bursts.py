"""What would a placement do to its queries where streams come in bursts? Stretch by stretch, and a word on all of them.

Synergy §2.3.4 takes each segment for a regular stream, with the queue it would have in the long run. That is endless
where a burst asks more than a site does, however short, and forgets what a burst leaves behind. Here queues go on from
stretch to stretch, on sites and on links alike: what waits grows by what comes, and shrinks by what an M/M/1 queue of
that length lets go (Rider 1976); in a long segment that ends at the published value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from weft.model import Constant, Deployment, Placement, Project, dataflow
from weft.plan.dataflow.rates import Rates, ideal_rates
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.judging.batch_costs import BatchCosts
from weft.plan.judging.batch_projection import project_on_spark
from weft.plan.judging.projection import (
    MICRO_BATCH,
    Projection,
    Where,
    admitted_as,
    expected,
    judged,
    project,
    utilisation,
)
from weft.plan.judging.signatures import Combined, Floats, combined, declared
from weft.plan.network.paths import Path, Paths

LOOKED_AT = 60
"""So many stretches are projected whole: of more, some that stand for others as busy."""
ON_SPARK = 8
STRETCH_S_ON_SPARK = 1.0
"""Shorter stretches are evened out by micro-batches."""
STEPS_MAX = 400

Resource = str | tuple[str, str]
"""A site, or two sites that a link leads between."""


def waiting(use: Sequence[float], step_s: float, service_s: float) -> Floats:
    """The mean number of records at a queue in each stretch, given its use there; the last goes on into the first.

    dL/dt = (use - L / (1 + L)) / service. Endless where it is used up in the mean.
    """
    if float(np.mean(use)) >= 1.0 or service_s <= 0:
        return np.full(len(use), math.inf if service_s > 0 else 0.0)
    if len(use) == 1 or math.isinf(step_s):
        return np.array([one / (1.0 - one) for one in use])
    many = min(STEPS_MAX, max(1, math.ceil(4 * step_s / service_s)))
    dt = step_s / many / service_s
    length, found = 0.0, np.zeros(len(use))
    for _ in range(2):
        for at, asked in enumerate(use):
            total = 0.0
            for _ in range(many):
                # The new length by the implicit step, which neither swings nor falls below nothing.
                ahead = length + dt * asked
                b = ahead - 1.0 - dt
                length = (b + math.sqrt(b * b + 4.0 * ahead)) / 2.0
                total += length
            found[at] = total / many
    return found


def project_bursts(
    deployment: Deployment, placement: Placement, costs: BatchCosts | None, by: Project
) -> dict[str, Projection]:
    """The projection of every query: a mean, a quantile or the greatest of its latencies over all stretches."""
    signatures = {one.name: declared(one.arrivals) for one in deployment.sources if one.arrivals is not None}
    if costs is not None:
        return _on_spark(deployment, placement, costs, combined(signatures, STRETCH_S_ON_SPARK), by)
    looks = _looks(deployment, placement, combined(signatures))
    found = _ideal(deployment, placement, looks, 0.0, by)
    hop_ms = deployment.control.place.hop_ms
    return found if not hop_ms else admitted_as(found, _ideal(deployment, placement, looks, hop_ms, by))


@dataclass(frozen=True, slots=True)
class _Look:
    """A stretch: its rates, how long queues are, and for how many stretches as busy it stands."""

    rates: Rates
    lengths: Mapping[Resource, float]
    many: int


@dataclass(frozen=True, slots=True)
class _Slowed:
    """Paths on which records also wait to be sent, and are sent: as long as a record and those before it take."""

    paths: Paths
    more_ms: Mapping[tuple[str, str], float]

    def between(self, start: str, end: str) -> Path | None:
        path = self.paths.between(start, end)
        if path is None:
            return None
        more_ms = sum(self.more_ms.get(way, 0.0) for way in pairwise(path.sites))
        return replace(path, delay_ms=path.delay_ms + more_ms) if more_ms else path


def _looks(deployment: Deployment, placement: Placement, found: Combined) -> list[_Look]:
    """The stretches that are looked at, with the queues of all sites and links in them."""
    rates = [ideal_rates(deployment, _at(found, at)) for at in range(len(found))]
    queues: dict[Resource, Floats] = {}
    used = [utilisation(deployment, placement, one) for one in rates]
    for site in deployment.sites:
        here = [stream for stream, home in placement.homes.items() if home == site.name]
        taken = sum(_taken(deployment, one, here) for one in rates)
        load_ms = sum(one.load_ms[stream] for one in rates for stream in here)
        if load_ms and taken:
            service_s = load_ms / taken / 1000.0 / site.capacity if site.capacity else math.inf
            queues[site.name] = waiting([one[site.name] for one in used], found.step_s, service_s)
    sent = [_sent(deployment, placement, one) for one in rates]
    for way in dict.fromkeys(way for one in sent for way in one):
        width_kbps = Paths(deployment).link(*way).bandwidth_kbps
        if width_kbps is not None:
            kbps = [one.get(way, (0.0, 0.0))[0] for one in sent]
            per_s = sum(one.get(way, (0.0, 0.0))[1] for one in sent)
            if per_s:
                queues[way] = waiting([one / width_kbps for one in kbps], found.step_s, sum(kbps) / per_s / width_kbps)
    return [
        _Look(rates[at], {key: float(one[at]) for key, one in queues.items()}, many)
        for at, many in _standing(sum(queues.values(), np.zeros(len(found))), LOOKED_AT)
    ]


def _ideal(
    deployment: Deployment, placement: Placement, looks: Sequence[_Look], hop_ms: float, by: Project
) -> dict[str, Projection]:
    regular, paths, flow = project(deployment, placement), Paths(deployment), dataflow(deployment)
    seen: dict[str, list[tuple[Projection, str, Where, float]]] = {query.name: [] for query in deployment.queries}
    for look in looks:
        # How busy a site of a regular stream would be that has such a queue: so all else is as for those.
        busy = {site.name: _busy(look.lengths.get(site.name, 0.0)) for site in deployment.sites}
        sent = _sent(deployment, placement, look.rates)
        more_ms = {
            way: kbps
            / per_s
            / (paths.link(*way).bandwidth_kbps or math.inf)
            * 1000.0
            * (1.0 + look.lengths.get(way, 0.0))
            for way, (kbps, per_s) in sent.items()
            if per_s
        }
        for query in deployment.queries:
            records = look.many * sum(look.rates.per_s[name] for name in flow.sources_of(query.name))
            said = expected(deployment, query, placement, look.rates, busy, _Slowed(paths, more_ms), hop_ms)
            seen[query.name].append((*said, records))
    told = {}
    for query in deployment.queries:
        every = seen[query.name]
        weights = [records for *_, records in every]
        means = [_finite(one.mean_ms) for one, *_ in every]
        latencies = [_finite(one.latency_ms) for one, *_ in every]
        worst = every[int(np.argmax(latencies))]
        latency_ms, mean_ms = statistic(latencies, weights, by), statistic(means, weights, Project("mean"))
        found = replace(regular[query.name], latency_ms=_bound(latency_ms), mean_ms=_bound(mean_ms))
        told[query.name] = judged(query, found, worst[1] or "a site is overloaded", worst[2])
    return told


def _on_spark(
    deployment: Deployment, placement: Placement, costs: BatchCosts, found: Combined, by: Project
) -> dict[str, Projection]:
    """By micro-batches: each stretch as if its rates stayed."""
    loads = np.array([sum(ideal_rates(deployment, _at(found, at)).load_ms.values()) for at in range(len(found))])
    looks, weights = [], []
    for at, many in _standing(loads, ON_SPARK):
        sources = tuple(
            source if source.name not in found.rates_per_s else replace(source, arrivals=_even(found, source.name, at))
            for source in deployment.sources
        )
        looks.append(project_on_spark(replace(deployment, sources=sources), placement, costs))
        weights.append(many * sum(float(one[at]) for one in found.rates_per_s.values()))
    told = {}
    for query in deployment.queries:
        seen = [look[query.name] for look in looks]
        latencies = [_finite(one.latency_ms) for one in seen]
        worst = seen[int(np.argmax(latencies))]
        more = {
            key: _bound(statistic([_finite(getattr(one, key)) for one in seen], weights, Project("mean")))
            for key in ("mean_ms", "p50_ms", "p95_ms")
        }
        latency_ms = _bound(statistic(latencies, weights, by))
        whole = replace(worst, latency_ms=latency_ms, model=MICRO_BATCH, level_ms=None, worth=1.0, **more)  # type: ignore[arg-type]
        told[query.name] = judged(query, whole, "in its bursts records come faster than this machine takes them")
    return told


def statistic(values: Sequence[float], weights: Sequence[float], by: Project) -> float:
    """A mean, a quantile or the greatest of values, by their weights; what weighs nothing does not count."""
    found = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0)
    if not found:
        return max(values, default=0.0)
    if by.statistic == "maximum":
        return found[-1][0]
    total = sum(weight for _, weight in found)
    if by.statistic == "mean":
        return sum(value * weight for value, weight in found) / total
    below = 0.0
    for value, weight in found:
        below += weight
        if below >= by.quantile * total * (1 - 1e-12):
            return value
    return found[-1][0]


def _standing(busy: Floats, most: int) -> list[tuple[int, int]]:
    """Stretches to look at, and for how many each stands: of neighbours in order the busiest."""
    order = np.argsort(busy, kind="stable")
    groups = np.array_split(order, min(most, len(order)))
    return [(int(group[-1]), len(group)) for group in groups]


def _at(found: Combined, at: int) -> dict[str, float]:
    return {name: float(one[at]) for name, one in found.rates_per_s.items()}


def _even(found: Combined, source: str, at: int) -> Constant:
    return Constant(float(found.rates_per_s[source][at]))


def _taken(deployment: Deployment, rates: Rates, streams: Sequence[str]) -> float:
    """Records a second that operators take."""
    node = dataflow(deployment).node
    return sum(rates.per_s[name] for stream in streams for name in node(stream).inputs)


def _sent(deployment: Deployment, placement: Placement, rates: Rates) -> dict[tuple[str, str], tuple[float, float]]:
    """What every link carries: kbps, and records a second; one copy of a stream for each site that reads it."""
    flow, bytes_, paths = dataflow(deployment), record_bytes(deployment, rates), Paths(deployment)
    ends = {(stream, placement.home(node.stream)) for node in flow.nodes for stream in node.inputs}
    ends |= {(one.stream, one.site(flow, placement.homes)) for one in flow.outlets}
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for stream, end in sorted(ends):
        path = paths.between(flow.site_of(stream, placement.homes), end)
        for way in pairwise(path.sites if path is not None else ()):
            kbps, per_s = found.get(way, (0.0, 0.0))
            found[way] = (kbps + rates.per_s[stream] * bytes_[stream] * 8 / 1000, per_s + rates.per_s[stream])
    return found


def _busy(length: float) -> float:
    return 1.0 if math.isinf(length) else length / (1.0 + length)


def _finite(value: float | None) -> float:
    return math.inf if value is None else value


def _bound(value: float) -> float | None:
    return value if math.isfinite(value) else None
