"""How much work is asked? Ideal rates cascaded from the sources (P1), and the load they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.model import Deployment, Operator, dataflow
from weft.model.queries import COST_MS_DEFAULT, SELECTIVITY_DEFAULT
from weft.plan.dataflow.arrivals import shape_of
from weft.spec import gathers

RESULTS_EXPECTED = 0.1
"""Results for each record of an aggregate that says nothing, where batches are projected (decision 019): the geometric
mean over the aggregates of the examples is 0.093."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Records per second of every stream, load (ms of work per second) of what makes it, and what was assumed."""

    per_s: dict[str, float]
    load_ms: dict[str, float]
    warnings: tuple[str, ...]


def ideal_rates(deployment: Deployment, foreseen: Mapping[str, float] | None = None) -> Rates:
    """Potential §2.2.1: source rates through selectivities; a join's selectivity is over the product of its inputs.

    `foreseen` are rates of sources in place of those that the deployment has.
    """
    per_s: dict[str, float] = {}
    load_ms: dict[str, float] = {}
    warnings: list[str] = []
    for source in deployment.sources:
        if foreseen is not None and source.name in foreseen:
            per_s[source.name] = foreseen[source.name]
        elif source.arrivals is None:
            per_s[source.name] = 0.0
            warnings.append(f"source {source.name}: no arrivals declared, its load is taken as 0")
        else:
            per_s[source.name] = shape_of(source.arrivals).mean_per_s
    for node in dataflow(deployment).nodes:
        operator, inputs = node.operator, [per_s[stream] for stream in node.inputs]
        assumed = [f"cost_ms {COST_MS_DEFAULT}"] if operator.cost_ms is None else []
        if operator.selectivity is None:
            expected = f" ({RESULTS_EXPECTED} where batches are projected)" if gathers(operator) else ""
            assumed.append(f"selectivity {SELECTIVITY_DEFAULT}{expected}")
        if assumed:
            warnings.append(f"operator {node.stream}: {' and '.join(assumed)} assumed, none declared")
        load_ms[node.stream] = cost_ms(operator) * sum(inputs)
        per_s[node.stream] = output_rate(operator, inputs)
    return Rates(per_s, load_ms, tuple(warnings))


def cost_ms(operator: Operator) -> float:
    """The mean work per record, assumed where it is not declared."""
    return COST_MS_DEFAULT if operator.cost_ms is None else operator.cost_ms.mean_ms


def joins(operator: Operator) -> bool:
    """Whether an operator joins two streams, so that each of its records is made of one of either."""
    return operator.window is not None and len(operator.from_) == 2


def output_rate(operator: Operator, inputs: list[float]) -> float:
    """Records per second out of an operator for the given rates in."""
    selectivity = SELECTIVITY_DEFAULT if operator.selectivity is None else operator.selectivity
    if joins(operator):
        return selectivity * inputs[0] * inputs[1]
    return selectivity * sum(inputs)
