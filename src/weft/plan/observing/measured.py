"""What do we know of operators that declare nothing? What the last run measured, put in the place of a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weft.model import Cost, Deployment, Operator

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
