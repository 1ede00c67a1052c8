"""What will latencies be in the next minute? Foreseen rates through sites of some capacity, for any placement.

Of a site two things are known: the time that records spend there at a steady rate (a line through what was measured
where that tells, else an M/M/1 queue), and the work that waits, which grows as long as more is asked than the site does
and shrinks when less is. A record waits for the greater of both. What a query's results took beside that, or less, is
its bias: the median of the last looks, by which every expectation is moved, whatever the placement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from weft.model import Deployment, Observed, Placement, Quantiles, dataflow
from weft.plan.dataflow.rates import Rates, cost_ms, ideal_rates
from weft.plan.judging.slack import Ways, ways
from weft.plan.network.paths import Paths
from weft.plan.observing.believed import believed
from weft.plan.observing.execution import Line, fitted
from weft.plan.observing.forecast import AUTO, Forecast, forecast

BUSY_MAX = 0.98  # beyond it a queue's mean is of a time longer than any look ahead
STEPS_MAX = 24
BIAS_N = 3


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a placement: latencies of queries with a promise (ms) and use of sites, by step ahead."""

    latency_ms: Mapping[str, tuple[float, ...]]
    busy: Mapping[str, tuple[float, ...]]
    waits_ms: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What was foreseen at a moment, and what any placement would make of it."""

    deployment: Deployment
    step_s: float
    forecasts: Mapping[str, Forecast]
    rates: tuple[Rates, ...]
    into_per_s: tuple[Mapping[str, float], ...]
    waiting_ms: Mapping[str, float]
    lines: Mapping[str, Line]
    bias_ms: Mapping[str, float]
    paths: Paths
    running: Placement

    @property
    def steps(self) -> int:
        """How many steps it looks ahead."""
        return len(self.rates)

    def expected(self, placement: Placement) -> Expected:
        """Latencies at every step, were operators placed so from now on."""
        work = _works(self.deployment, placement, self.waiting_ms)
        busy: dict[str, list[float]] = {site.name: [] for site in self.deployment.sites}
        waits: dict[str, list[float]] = {site.name: [] for site in self.deployment.sites}
        latency: dict[str, list[float]] = {name: [] for name in self.bias_ms}
        for rates, into in zip(self.rates, self.into_per_s, strict=True):
            used, waited = _sites(self.deployment, placement, rates, into, work, self.lines, self.step_s)
            for site in self.deployment.sites:
                busy[site.name].append(used[site.name])
                waits[site.name].append(waited[site.name])
            for name, bias_ms in self.bias_ms.items():
                found = _ways(self.deployment, name, placement, waited, self.paths)
                latency[name].append(max(0.0, found.slowest_ms + bias_ms))
        return Expected(*({name: tuple(values) for name, values in part.items()} for part in (latency, busy, waits)))

    def slack_ms(self, waits_ms: Mapping[str, Sequence[float]], query: str, step: int) -> dict[str, float]:
        """The time left at a step ahead on the slowest way through each operator of a query, where all stays."""
        promised_ms = self.deployment.query(query).promise.latency_ms
        waits = {name: values[step] for name, values in waits_ms.items()}
        found = _ways(self.deployment, query, self.running, waits, self.paths)
        return found.slack_ms(math.inf if promised_ms is None else promised_ms, self.bias_ms[query])


def outlook(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str = AUTO
) -> Outlook:
    """What is foreseen after the last of some observations, each complete, for a horizon of so many seconds."""
    now = past[-1]
    steps = max(1, min(STEPS_MAX, math.ceil(horizon_s / max(now.period_s, 1e-9))))
    foreseen = _forecasts(deployment, past, steps, method)
    seen = believed(deployment, now)
    ahead = ({name: one.per_s[at] for name, one in foreseen.items()} for at in range(steps))
    rates = tuple(ideal_rates(seen, per_s) for per_s in ahead)
    paths = Paths(deployment)
    lines = _lines(deployment, past, running)
    return Outlook(
        seen, horizon_s / steps, foreseen, rates, tuple(_into(seen, one) for one in rates), _waiting(seen, now), lines,
        _biases(deployment, past[-BIAS_N:], running, lines, paths), paths, running,
    )  # fmt: skip


def _forecasts(deployment: Deployment, past: Sequence[Observed], steps: int, method: str) -> dict[str, Forecast]:
    """What every source will give; any other may go ahead of it. A period without a rate counts as the one before."""
    series = {source.name: _series(source.name, past) for source in deployment.sources}
    found = {}
    for name, own in series.items():
        others = {other: rates for other, rates in series.items() if other != name and len(rates) == len(own)}
        one = forecast(own, steps, method, others)
        if one is not None:
            found[name] = one
    return found


def _series(source: str, past: Sequence[Observed]) -> list[float]:
    rates: list[float] = []
    for one in past:
        rate = one.sources[source].rate_per_s if source in one.sources else None
        if rate is not None or rates:
            rates.append(rates[-1] if rate is None else rate)
    return rates


def _into(deployment: Deployment, rates: Rates) -> dict[str, float]:
    """Records into every operator a second."""
    return {node.stream: sum(rates.per_s[name] for name in node.inputs) for node in dataflow(deployment).nodes}


def _waiting(deployment: Deployment, now: Observed) -> dict[str, float]:
    """The work that waits for every operator, in ms at capacity 1."""
    return {
        node.stream: (now.operators[node.stream].backlog or 0) * cost_ms(node.operator)
        for node in dataflow(deployment).nodes
        if node.stream in now.operators
    }


def _works(deployment: Deployment, placement: Placement, waiting_ms: Mapping[str, float]) -> dict[str, float]:
    work = {site.name: 0.0 for site in deployment.sites}
    for stream, waits in waiting_ms.items():
        work[placement.homes[stream]] += waits
    return work


def _sites(
    deployment: Deployment, placement: Placement, rates: Rates, into: Mapping[str, float], work_ms: dict[str, float],
    lines: Mapping[str, Line], step_s: float,
) -> tuple[dict[str, float], dict[str, float]]:  # fmt: skip
    """How busy sites are and how long records wait there after a step; `work_ms` that waits is brought up to then."""
    load_ms, per_s = ({site.name: 0.0 for site in deployment.sites} for _ in range(2))
    for stream, home in placement.homes.items():
        load_ms[home] += rates.load_ms.get(stream, 0.0)
        per_s[home] += into.get(stream, 0.0)
    busy, waits = {}, {}
    for site in deployment.sites:
        name, room_ms = site.name, 1000.0 * site.capacity
        if room_ms <= 0:
            busy[name] = waits[name] = math.inf if load_ms[name] > 0 else 0.0
            continue
        busy[name] = load_ms[name] / room_ms
        work_ms[name] = max(0.0, work_ms[name] + (load_ms[name] - room_ms) * step_s)
        waits[name] = max(
            work_ms[name] / site.capacity, _steady(name, busy[name], load_ms, per_s, site.capacity, lines)
        )
    return busy, waits


def _steady(
    site: str, busy: float, load_ms: Mapping[str, float], per_s: Mapping[str, float], capacity: float,
    lines: Mapping[str, Line],
) -> float:  # fmt: skip
    """How long a record waits at a site that keeps up with what comes."""
    if per_s[site] <= 0:
        return 0.0
    service_ms = load_ms[site] / per_s[site] / capacity
    line = lines.get(site)
    stays_ms = None if line is None or busy >= BUSY_MAX else line.at(per_s[site])
    if stays_ms is not None:
        return max(0.0, stays_ms - service_ms)
    used = min(busy, BUSY_MAX)
    return service_ms * used / (1.0 - used)


def _ways(
    deployment: Deployment, query: str, placement: Placement, waits_ms: Mapping[str, float], paths: Paths
) -> Ways:
    visits = {}
    for node in dataflow(deployment).behind(query):
        home = placement.homes[node.stream]
        capacity = deployment.site(home).capacity
        visits[node.stream] = waits_ms[home] + cost_ms(node.operator) / capacity if capacity > 0 else math.inf
    return ways(deployment, query, placement.homes, visits, paths)


def _lines(deployment: Deployment, past: Sequence[Observed], running: Placement) -> dict[str, Line]:
    """Of every site where that tells, how the time of records there went with the rate of all that came."""
    found = {}
    for site in deployment.sites:
        here = list(running.on(site.name))
        pairs = []
        for one in past:
            stays_ms = one.sites[site.name].time_ms if site.name in one.sites else None
            if stays_ms is not None and (one.sites[site.name].utilisation or 0.0) < BUSY_MAX:
                pairs.append((sum(one.operators[stream].in_per_s or 0.0 for stream in here), stays_ms))
        line = fitted([rate for rate, _ in pairs], [stays for _, stays in pairs])
        if line is not None:
            found[site.name] = line
    return found


def _biases(
    deployment: Deployment, past: Sequence[Observed], running: Placement, lines: Mapping[str, Line], paths: Paths
) -> dict[str, float]:
    """What results of queries with a promise took more than is modelled, or less: the median of some periods."""
    found: dict[str, list[float]] = {q.name: [] for q in deployment.queries if q.promise.latency_ms is not None}
    for one in past:
        seen = believed(deployment, one)
        rates = ideal_rates(seen)
        work = _works(seen, running, _waiting(seen, one))
        _, waits = _sites(seen, running, rates, _into(seen, rates), work, lines, 0.0)
        for name, values in found.items():
            told = one.queries[name].latency_ms if name in one.queries else None
            modelled_ms = _ways(seen, name, running, waits, paths).slowest_ms
            if told is not None and math.isfinite(modelled_ms):
                values.append(_quantile_ms(told, deployment.query(name).promise.quantile) - modelled_ms)
    return {name: median(values) if values else 0.0 for name, values in found.items()}


def _quantile_ms(told: Quantiles, share: float) -> float:
    """About the quantile of a promise, from those that are measured."""
    return float(np.interp(share, (0.5, 0.95, 0.99, 1.0), (told.p50, told.p95, told.p99, told.max)))
