"""How large are the records of each stream? The same for planners and the twin."""

from __future__ import annotations

from weft.model import Deployment, dataflow
from weft.plan.dataflow.rates import Rates, joins


def record_bytes(deployment: Deployment, rates: Rates) -> dict[str, float]:
    """How many bytes a record of each stream has: a join's as many as both its inputs', others' as theirs.

    Where several streams are united, that is their mean by rates: what links carry in the long run is then right.
    """
    sizes = {source.name: source.record_bytes for source in deployment.sources}
    for node in dataflow(deployment).nodes:
        if joins(node.operator):
            sizes[node.stream] = sum(sizes[other] for other in node.inputs)
            continue
        weights = [rates.per_s[other] for other in node.inputs]
        if not any(weights):
            weights = [1.0] * len(weights)
        total = sum(sizes[other] * weight for other, weight in zip(node.inputs, weights, strict=True))
        sizes[node.stream] = total / sum(weights)
    return sizes
