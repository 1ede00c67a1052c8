"""What will latencies be in the next minute? Foreseen rates through sites of some capacity, for any placement.

What a query's results took beside what is modelled (`waits.py`), or less, is its bias: the median of the last looks, by
which every expectation is moved, whatever the placement. That they took less is known only where operators run now:
elsewhere the model counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np

from weft.model import Deployment, Observed, Placement, Quantiles, dataflow
from weft.plan.dataflow.rates import Rates, ideal_rates
from weft.plan.foreseeing.waits import BUSY_MAX, Wait, after_step, into, ways_of, works
from weft.plan.network.paths import Paths
from weft.plan.observing.believed import believed
from weft.plan.observing.execution import Line, fitted
from weft.plan.observing.forecast import AUTO, SAMPLES_MAX, Forecast, forecast

T = TypeVar("T")

STEPS_MAX, PERIODS_MAX = 24, 240
BIAS_N = 3


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a placement: latencies of queries with a promise (ms) and use of sites, by step ahead."""

    latency_ms: Mapping[str, tuple[float, ...]]
    busy: Mapping[str, tuple[float, ...]]
    waits: Mapping[str, tuple[Wait, ...]]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What was foreseen at a moment, and what any placement would make of it."""

    deployment: Deployment
    step_s: float
    forecasts: Mapping[str, Forecast]
    rates: tuple[Rates, ...]
    into_per_s: tuple[Mapping[str, float], ...]
    waiting: Mapping[str, int]
    lines: Mapping[str, Line]
    bias_ms: Mapping[str, float]
    paths: Paths
    running: Placement

    @property
    def steps(self) -> int:
        """How many steps it looks ahead."""
        return len(self.rates)

    def expected(self, placement: Placement, stays: Expected | None = None) -> Expected:
        """Latencies at every step, were operators placed so from now on.

        `stays` is what is expected where nothing moves: of queries that a move has nothing to do with it holds as well.
        """
        work = works(self.deployment, placement, self.waiting, self.rates[0])
        known = placement.homes == self.running.homes
        bias = {name: ms if known else max(0.0, ms) for name, ms in self.bias_ms.items()}
        busy: dict[str, list[float]] = {site.name: [] for site in self.deployment.sites}
        waits: dict[str, list[Wait]] = {site.name: [] for site in self.deployment.sites}
        same = {} if stays is None else {name: stays.latency_ms[name] for name in self._untouched(placement)}
        latency: dict[str, list[float]] = {name: [] for name in self.bias_ms if name not in same}
        for rates, came in zip(self.rates, self.into_per_s, strict=True):
            used, waited = after_step(self.deployment, placement, rates, came, work, self.lines, self.step_s)
            for site in self.deployment.sites:
                busy[site.name].append(used[site.name])
                waits[site.name].append(waited[site.name])
            for name, values in latency.items():
                found = ways_of(self.deployment, name, placement, waited, self.paths)
                values.append(max(0.0, found.slowest_ms + bias[name]))
        return Expected({**same, **_tuples(latency)}, _tuples(busy), _tuples(waits))

    def _untouched(self, placement: Placement) -> list[str]:
        """The queries of which no operator runs at a site where something comes or goes."""
        before, then, flow = self.running.homes, placement.homes, dataflow(self.deployment)
        sites = {site for name in then if before[name] != then[name] for site in (before[name], then[name])}
        return [name for name in self.bias_ms if not any(before[node.stream] in sites for node in flow.behind(name))]

    def slack_ms(self, expected: Expected, query: str, step: int) -> dict[str, float]:
        """The time left at a step ahead on the slowest way through each operator of a query, where all stays."""
        promised_ms = self.deployment.query(query).promise.latency_ms
        waits = {name: values[step] for name, values in expected.waits.items()}
        found = ways_of(self.deployment, query, self.running, waits, self.paths)
        return found.slack_ms(math.inf if promised_ms is None else promised_ms, self.bias_ms[query])


def outlook(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str = AUTO
) -> Outlook:
    """What is foreseen after the last of some observations, each complete, for a horizon of so many seconds."""
    now = past[-1]
    periods = max(1, min(PERIODS_MAX, math.ceil(horizon_s / max(now.period_s, 1e-9) - 0.01)))
    steps = min(STEPS_MAX, periods)
    foreseen = _forecasts(deployment, past, periods, method)
    seen = believed(deployment, now)
    when = [round((at + 1) * periods / steps) - 1 for at in range(steps)]
    ahead = ({name: one.per_s[at] for name, one in foreseen.items()} for at in when)
    rates = tuple(ideal_rates(seen, per_s) for per_s in ahead)
    paths = Paths(deployment)
    lines = _lines(deployment, past, running)
    return Outlook(
        seen, horizon_s / steps, foreseen, rates, tuple(into(seen, one) for one in rates), _waiting(now), lines,
        _biases(deployment, past[-BIAS_N:], running, lines, paths), paths, running,
    )  # fmt: skip


def _tuples(part: Mapping[str, list[T]]) -> dict[str, tuple[T, ...]]:
    return {name: tuple(values) for name, values in part.items()}


def _forecasts(deployment: Deployment, past: Sequence[Observed], steps: int, method: str) -> dict[str, Forecast]:
    """What every source will give; any other may go ahead of it. A period without a rate counts as the one before."""
    series = {source.name: _series(source.name, past) for source in deployment.sources}
    lately = {name: np.asarray(rates[-SAMPLES_MAX:], float) for name, rates in series.items()}
    found = {}
    for name, own in lately.items():
        long = len(series[name])
        others = {other: rates for other, rates in lately.items() if other != name and len(series[other]) == long}
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


def _waiting(now: Observed) -> dict[str, int]:
    """The records that wait for every operator."""
    return {stream: one.backlog or 0 for stream, one in now.operators.items()}


def _lines(deployment: Deployment, past: Sequence[Observed], running: Placement) -> dict[str, Line]:
    """Of every site where that tells, how the time of records there went with the rate of all that came."""
    found = {}
    for site in deployment.sites:
        here = set(running.on(site.name))
        pairs = []
        for one in past:
            told = one.sites.get(site.name)
            if told is None or told.time_ms is None or (told.utilisation or 0.0) >= BUSY_MAX:
                continue
            if here <= set(one.operators) and _same_there(one, running, site.name):
                pairs.append((sum(one.operators[stream].in_per_s or 0.0 for stream in here), told.time_ms))
        line = fitted([rate for rate, _ in pairs], [stays for _, stays in pairs])
        if line is not None:
            found[site.name] = line
    return found


def _same_there(one: Observed, running: Placement, site: str) -> bool:
    """Whether a site ran what it runs now, as far as is known."""
    before = {stream for stream, home in one.homes.items() if home == site}
    return not one.homes or before == {stream for stream, home in running.homes.items() if home == site}


def _biases(
    deployment: Deployment, past: Sequence[Observed], running: Placement, lines: Mapping[str, Line], paths: Paths
) -> dict[str, float]:
    """What results of queries with a promise took more than is modelled, or less: the median of some periods.

    Nothing is known of it where operators run elsewhere than they did.
    """
    found: dict[str, list[float]] = {q.name: [] for q in deployment.queries if q.promise.latency_ms is not None}
    for one in past:
        if one.homes and one.homes != running.homes:
            continue  # it tells of another placement
        seen = believed(deployment, one)
        rates = ideal_rates(seen)
        work = works(seen, running, _waiting(one), rates)
        _, waits = after_step(seen, running, rates, into(seen, rates), work, lines, 0.0)
        for name, values in found.items():
            told = one.queries[name].latency_ms if name in one.queries else None
            most_ms = ways_of(seen, name, running, waits, paths).slowest_ms
            if told is not None and math.isfinite(most_ms):
                # Results that are through by now did not wait for all that has piled up since.
                steady = {site: Wait(wait.steady_ms) for site, wait in waits.items()}
                least_ms = ways_of(seen, name, running, steady, paths).slowest_ms
                took_ms = _quantile_ms(told, deployment.query(name).promise.quantile)
                values.append(took_ms - min(max(took_ms, least_ms), most_ms))
    return {name: median(values) if values else 0.0 for name, values in found.items()}


def _quantile_ms(told: Quantiles, share: float) -> float:
    """About the quantile of a promise, from those that are measured."""
    return float(np.interp(share, (0.5, 0.95, 0.99, 1.0), (told.p50, told.p95, told.p99, told.max)))
