"""What should planners believe? A deployment with what was measured, or is foreseen, in place of what it declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.model import Constant, Cost, Deployment, Observed, Operator, Poisson, Query, Source


def believed(deployment: Deployment, observed: Observed, forecast: Mapping[str, float] | None = None) -> Deployment:
    """The deployment with measured costs and selectivities, and sources at their measured or foreseen rates.

    `forecast` says how many records a second a source is expected to give; it wins over what was measured. What is
    neither measured nor foreseen stays as declared. A site that is down has no capacity.
    """
    rates = {name: one.rate_per_s for name, one in observed.sources.items()} | dict(forecast or {})
    down = {name for name, one in observed.sites.items() if not one.up}
    return replace(
        deployment,
        sources=tuple(_source(source, rates.get(source.name)) for source in deployment.sources),
        queries=tuple(_query(query, observed, rates) for query in deployment.queries),
        sites=tuple(replace(site, capacity=0.0) if site.name in down else site for site in deployment.sites),
    )


def _source(source: Source, rate_per_s: float | None) -> Source:
    """A source at a rate; one that swings stands where it is now, not where it will be."""
    if rate_per_s is None:
        return source
    return replace(source, arrivals=(Poisson if isinstance(source.arrivals, Poisson) else Constant)(rate_per_s))


def _query(query: Query, observed: Observed, rates: Mapping[str, float | None]) -> Query:
    return replace(query, operators=tuple(_operator(query, one, observed, rates) for one in query.operators))


def _operator(query: Query, operator: Operator, observed: Observed, rates: Mapping[str, float | None]) -> Operator:
    found = observed.operators.get(f"{query.name}.{operator.name}")
    if found is None:
        return operator
    if found.cost_ms is not None:
        operator = replace(operator, cost_ms=Cost("constant", (found.cost_ms,)))
    if found.selectivity is None:
        return operator
    if operator.window is None or len(operator.from_) != 2:
        return replace(operator, selectivity=found.selectivity)
    # A join's selectivity is over the product of its inputs (Potential §2.2.1): the same results, from the sum.
    inside = {one.name for one in query.operators}
    streams = [f"{query.name}.{name}" if name in inside else name for name in operator.from_]
    inputs = [_rate(stream, observed, rates) for stream in streams]
    if None in inputs or 0 in inputs:
        return operator
    first, second = (rate or 0.0 for rate in inputs)
    return replace(operator, selectivity=found.selectivity * (first + second) / (first * second))


def _rate(stream: str, observed: Observed, rates: Mapping[str, float | None]) -> float | None:
    made = observed.operators.get(stream)
    return rates.get(stream) if made is None else made.out_per_s
