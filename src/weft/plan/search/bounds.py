"""Which queries might break a promise of latency, and which of them have operators in common?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from weft.model import Dataflow, Deployment, Node, Query
from weft.plan.dataflow.rates import cost_ms
from weft.plan.network.path_tables import Ints
from weft.plan.search.arrays import NOTHING, STEADY

Bound = tuple[list[int], list[int], float]
"""A query's nodes in order, those where its results end, and the latency it was promised."""


def bounds(
    deployment: Deployment, flow: Dataflow, number: Mapping[str, int], nodes: Callable[[Query], list[int]],
    ends: Mapping[str, list[int]], far_ms: float,
) -> tuple[list[list[Bound]], Ints]:  # fmt: skip
    """Queries that might break a promise, those together that share operators, and each operator's group, else -1.

    `nodes` are the sources that a query's results rest on, `ends` where its results end, `far_ms` the longest way.
    """
    groups: list[list[Bound]] = []
    group_of = np.full(len(number), -1, np.int64)
    for query in deployment.queries:
        behind, promise_ms = flow.behind(query.name), query.promise.latency_ms
        if promise_ms is None or promise_ms >= _latest_ms(deployment, flow, query, behind, far_ms):
            continue
        operators = [number[node.stream] for node in behind]
        bound = (list(dict.fromkeys((*nodes(query), *operators, *ends[query.name]))), ends[query.name], promise_ms)
        shared = sorted({int(group_of[op]) for op in operators if group_of[op] >= 0})
        groups.append([*(one for at in shared for one in groups[at]), bound])
        for at in shared:
            group_of[group_of == at] = len(groups) - 1
            groups[at] = []
        group_of[operators] = len(groups) - 1
    kept = [at for at, group in enumerate(groups) if group]
    renumbered = {old: new for new, old in enumerate(kept)}
    return [groups[at] for at in kept], np.array([renumbered.get(int(at), -1) for at in group_of], np.int64)


def _latest_ms(deployment: Deployment, flow: Dataflow, query: Query, behind: Sequence[Node], far_ms: float) -> float:
    """The slowest way to a query's results wherever operators stand, short of overload."""
    slowest = min((site.capacity for site in deployment.sites if site.capacity > 0), default=NOTHING)
    done: dict[str, float] = {}
    for node in behind:
        before = max(done.get(other, 0.0) for other in node.inputs)
        done[node.stream] = before + far_ms + cost_ms(node.operator) / slowest * 2.0 / (1.0 - STEADY)
    return max((done.get(outlet.stream, 0.0) for outlet in flow.outlets_of(query.name)), default=0.0) + far_ms
