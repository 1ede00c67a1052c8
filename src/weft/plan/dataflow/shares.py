"""Which share of a query's results passes each operator and each stream?

A result's latency runs from the record that let it be emitted. Operators answer the records of all their inputs, so
each input counts by its rate, and so does each sink. With these shares the mean latency of a query's results is a sum
over operators and streams: what each adds, times its share. For a join with a window this is a guess: there either side
lets half of the results be emitted, and the younger of two records counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Query
from weft.plan.dataflow.graph import stream_of, topological
from weft.plan.dataflow.rates import Rates

# What is silent, or of no known rate, still counts a little: results may come that way.
SILENT_PER_S = 1e-6


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a query's results, which add up to 1 over its sinks: streams are pairs of a name and its reader."""

    operators: dict[str, float]
    streams: dict[tuple[str, str], float]
    sinks: tuple[float, ...]


def shares(query: Query, rates: Rates) -> Shares:
    """How results come about, from the sinks back to the sources."""
    sinks = _parts([_rate(query, rates, sink.from_) for sink in query.sinks])
    operators = {operator.name: 0.0 for operator in query.operators}
    for sink, part in zip(query.sinks, sinks, strict=True):
        if sink.from_ in operators:
            operators[sink.from_] += part
    streams: dict[tuple[str, str], float] = {}
    for name in reversed(topological(query)):
        inputs = tuple(dict.fromkeys(query.operator(name).from_))
        for other, part in zip(inputs, _parts([_rate(query, rates, other) for other in inputs]), strict=True):
            streams[other, name] = operators[name] * part
            if other in operators:
                operators[other] += operators[name] * part
    return Shares(operators, streams, sinks)


def _rate(query: Query, rates: Rates, name: str) -> float:
    return rates.per_s[stream_of(query, name)] + SILENT_PER_S


def _parts(rates: list[float]) -> tuple[float, ...]:
    total = sum(rates)
    return tuple(rate / total for rate in rates)
