"""Which share of a query's results passes each operator and each stream?

A result's latency runs from the record that let it be emitted. Operators answer the records of all their inputs, so
each input counts by its rate, and so does each sink. With these shares the mean latency of a query's results is a sum
over operators and streams: what each adds, times its share. For a join with a window this is a guess: there either side
lets half of the results be emitted, and the younger of two records counts. Where a query reads a stream of another,
the operators behind that stream count as its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.model import Dataflow
from weft.plan.dataflow.rates import Rates

# What is silent, or of no known rate, still counts a little: results may come that way.
SILENT_PER_S = 1e-6


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a query's results, which add up to 1 over its sinks: by what makes a stream, by stream and reader."""

    operators: dict[str, float]
    streams: dict[tuple[str, str], float]
    sinks: tuple[float, ...]


def shares(flow: Dataflow, query: str, rates: Rates) -> Shares:
    """How results come about, from the sinks back to the sources."""
    outlets, nodes = flow.outlets_of(query), flow.behind(query)
    sinks = _parts([rates.per_s[outlet.stream] + SILENT_PER_S for outlet in outlets])
    operators = {node.stream: 0.0 for node in nodes}
    for outlet, part in zip(outlets, sinks, strict=True):
        if outlet.stream in operators:
            operators[outlet.stream] += part
    streams: dict[tuple[str, str], float] = {}
    for node in reversed(nodes):
        inputs = tuple(dict.fromkeys(node.inputs))
        for other, part in zip(inputs, _parts([rates.per_s[one] + SILENT_PER_S for one in inputs]), strict=True):
            streams[other, node.stream] = operators[node.stream] * part
            if other in operators:
                operators[other] += operators[node.stream] * part
    return Shares(operators, streams, sinks)


def _parts(rates: list[float]) -> tuple[float, ...]:
    total = sum(rates)
    return tuple(rate / total for rate in rates)
