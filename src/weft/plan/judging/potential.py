"""How strongly is each operator pulled elsewhere? Load, correlation and network potential of a placement.

Potential §3.2, as published: streams between operators count, sources and sinks do not; the load of a site includes
the operator's own. Times in ms, so that published weights fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from weft.model import Deployment, Placement, dataflow
from weft.plan.dataflow.arrivals import shape_of
from weft.plan.dataflow.rates import Rates, cost_ms, ideal_rates, output_rate
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.network.paths import Paths

# A variance below this share of the squared mean is rounding, not change.
STILL = 1e-18


@dataclass(frozen=True, slots=True)
class Potential:
    """The sums over all operators: each part unweighted, the total weighted."""

    load: float
    correlation: float
    network: float
    total: float


@dataclass(frozen=True, slots=True)
class Series:
    """Work asked of every operator (ms per second) in each period, and how long the periods are."""

    spans_s: tuple[float, ...]
    load_ms: dict[str, tuple[float, ...]]

    def mean(self, values: Sequence[float]) -> float:
        """The mean over time."""
        return sum(value * span for value, span in zip(values, self.spans_s, strict=True)) / sum(self.spans_s)


def potential(deployment: Deployment, placement: Placement) -> Potential:
    """The potential of a whole placement, by the deployment's own weights and overload penalty."""
    series = load_series(deployment)
    place = deployment.control.place
    load = _load(deployment, placement, series, place.overload_penalty)
    correlation = _correlation(deployment, placement, series)
    network = _network(deployment, placement)
    weights = place.weights
    total = weights.load * load + weights.correlation * correlation + weights.network * network
    return Potential(load, correlation, network, total)


def load_series(deployment: Deployment) -> Series:
    """Load over time (Potential §2.2.2): rates that are told ahead change it, all others stand for their mean."""
    rates = ideal_rates(deployment)
    shapes = {source.name: shape_of(source.arrivals) for source in deployment.sources if source.arrivals is not None}
    told = {name: shape.told for name, shape in shapes.items() if shape.told is not None}
    ends = {end for rates_told in told.values() for end in rates_told.ends_s()}
    moments = [0.0, *sorted(ends)] if ends else [0.0, 1.0]
    spans = tuple(end - start for start, end in pairwise(moments))
    load: dict[str, list[float]] = {stream: [] for stream in rates.load_ms}
    for start, span in zip(moments, spans, strict=False):
        middle_s = start + span / 2
        per_s = {
            source.name: told[source.name].at(middle_s) if source.name in told else rates.per_s[source.name]
            for source in deployment.sources
        }
        for node in dataflow(deployment).nodes:
            inputs = [per_s[stream] for stream in node.inputs]
            load[node.stream].append(cost_ms(node.operator) * sum(inputs))
            per_s[node.stream] = output_rate(node.operator, inputs)
    return Series(spans, {stream: tuple(values) for stream, values in load.items()})


def _load(deployment: Deployment, placement: Placement, series: Series, penalty: float) -> float:
    total = 0.0
    for site in deployment.sites:
        here = [stream for stream in series.load_ms if placement.home(stream) == site.name]
        if not here:
            continue
        asked_ms = sum(series.mean(series.load_ms[stream]) for stream in here)
        filled = asked_ms / (1000.0 * site.capacity) / site.quota
        total += len(here) * (filled if filled < 1 else 1 + penalty * (filled - 1))
    return total


def _correlation(deployment: Deployment, placement: Placement, series: Series) -> float:
    total = 0.0
    for site in deployment.sites:
        here = [stream for stream in series.load_ms if placement.home(stream) == site.name]
        sums = [sum(values) for values in zip(*(series.load_ms[stream] for stream in here), strict=True)]
        for stream in here if len(here) > 1 else []:
            own = series.load_ms[stream]
            total += correlation(series, own, [every - mine for every, mine in zip(sums, own, strict=True)])
    return total


def correlation(series: Series, first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation coefficient of two series over time; 0 where one of them does not change."""
    mean_1, mean_2 = series.mean(first), series.mean(second)
    variance_1 = series.mean([(value - mean_1) ** 2 for value in first])
    variance_2 = series.mean([(value - mean_2) ** 2 for value in second])
    if variance_1 <= STILL * mean_1**2 or variance_2 <= STILL * mean_2**2:
        return 0.0
    both = series.mean([(one - mean_1) * (two - mean_2) for one, two in zip(first, second, strict=True)])
    # Each root by itself: the product of two tiny variances would be nothing at all.
    return max(-1.0, min(1.0, both / (math.sqrt(variance_1) * math.sqrt(variance_2))))


def _network(deployment: Deployment, placement: Placement) -> float:
    """One copy per destination site, over every link of its least-delay path; a full link pulls harder."""
    paths = Paths(deployment)
    rates = ideal_rates(deployment)
    crossings: list[tuple[str, str]] = []
    kbps: dict[tuple[str, str], float] = {}
    flow, bytes_ = dataflow(deployment), record_bytes(deployment, rates)
    for node in flow.nodes:
        home = placement.home(node.stream)
        away = {placement.home(reader.stream) for reader in flow.readers(node.stream)} - {home}
        for end in sorted(away):
            path = paths.between(home, end)
            assert path is not None, f"a placement without a way from {home} to {end}"
            for way in pairwise(path.sites):
                crossings.append(way)
                sent = rates.per_s[node.stream] * bytes_[node.stream] * 8 / 1000
                kbps[way] = kbps.get(way, 0.0) + sent
    return math.fsum(_tension(paths, way, kbps[way]) for way in crossings)


def _tension(paths: Paths, way: tuple[str, str], kbps: float) -> float:
    link = paths.link(*way)
    full = 0.0 if link.bandwidth_kbps is None else kbps / link.bandwidth_kbps
    return link.delay_ms * max(1.0, full)


def crossings(deployment: Deployment, placement: Placement, rates: Rates) -> list[tuple[str, str, float]]:
    """Every stream with the sites of its ends and its kbps: sources and sinks that name a site included."""
    found: list[tuple[str, str, float]] = []
    flow, bytes_ = dataflow(deployment), record_bytes(deployment, rates)
    for query in deployment.queries:
        nodes, outlets = flow.owned(query.name), flow.outlets_of(query.name)
        reads = [(stream, placement.home(node.stream)) for node in nodes for stream in dict.fromkeys(node.inputs)]
        reads += [(outlet.stream, outlet.sink.site) for outlet in outlets if outlet.sink.site is not None]
        for stream, end in reads:
            found.append((flow.site_of(stream, placement.homes), end, rates.per_s[stream] * bytes_[stream] * 8 / 1000))
    return found
