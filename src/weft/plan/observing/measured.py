"""What do we know of operators that declare nothing? What the last run measured, put in the place of a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.model import Cost, Deployment, Operator, Source, Trace
from weft.plan.observing.history import History, Span

# Fewer spans tell nothing of change; of more, an hour of 5 s each.
SPANS_MIN, SPANS_MAX = 4, 720
Measured = Mapping[tuple[str, str], tuple[float | None, float | None]]


def with_measured(deployment: Deployment, measured: Measured) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment with costs and selectivities (by query, operator) where it has none, and what was taken."""
    taken: list[str] = []
    queries = []
    for query in deployment.queries:
        operators = []
        for operator in query.operators:
            filled, what = _filled(operator, *measured.get((query.name, operator.name), (None, None)))
            operators.append(filled)
            if what:
                taken.append(f"operator {query.name}.{operator.name}: {' and '.join(what)} as the last run measured")
        queries.append(replace(query, operators=tuple(operators)))
    return replace(deployment, queries=tuple(queries)), tuple(taken)


def _filled(operator: Operator, cost_ms: float | None, selectivity: float | None) -> tuple[Operator, list[str]]:
    what = []
    if operator.cost_ms is None and cost_ms is not None:
        operator = replace(operator, cost_ms=Cost("constant", (cost_ms,)))
        what.append(f"cost_ms {cost_ms:.4g}")
    # A join's selectivity is over the product of its inputs (Potential §2.2.1), which records in and out do not give.
    if operator.selectivity is None and selectivity is not None and len(operator.from_) == 1:
        operator = replace(operator, selectivity=selectivity)
        what.append(f"selectivity {selectivity:.4g}")
    return operator, what


def with_series(deployment: Deployment, history: History) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment with sources as traces of the rates that runs measured lately, and what was taken.

    Taken is what was measured last without a gap, in spans of one length; a trace that the file gives stays.
    """
    spans = _last_without_gap(history)
    if len(spans) < SPANS_MIN:
        return deployment, ()
    sources = tuple(_traced(source, spans) for source in deployment.sources)
    taken = tuple(
        f"source {new.name}: its rate over the last {spans[-1].end_s - spans[0].start_s:.0f} s, as measured"
        for old, new in zip(deployment.sources, sources, strict=True)
        if old is not new
    )
    return replace(deployment, sources=sources), taken


def _last_without_gap(history: History) -> list[Span]:
    found: list[Span] = []
    for span in reversed(history[-SPANS_MAX:]):
        length_s = span.end_s - span.start_s
        if found and not (
            abs(length_s - (found[-1].end_s - found[-1].start_s)) <= length_s / 4
            and abs(found[-1].start_s - span.end_s) <= length_s / 4
        ):
            break
        found.append(span)
    return found[::-1]


def _traced(source: Source, spans: list[Span]) -> Source:
    if isinstance(source.arrivals, Trace) or any(source.name not in span.rates_per_s for span in spans):
        return source
    period_s = (spans[-1].end_s - spans[0].start_s) / len(spans)
    return replace(source, arrivals=Trace(tuple(span.rates_per_s[source.name] for span in spans), period_s))
