"""What follows from a deployment before anything happens: order, streams read, record sizes, work still ahead."""

from __future__ import annotations

from weft.bodies.twin.setup.routes import Ways
from weft.model import Deployment, Operator, Query
from weft.plan.dataflow.graph import topological
from weft.plan.dataflow.rates import cost_ms, joins

NS_PER_MS = 1_000_000
Reads = dict[tuple[str, str], list[str]]


def ordered(deployment: Deployment) -> list[tuple[Query, Operator]]:
    """Operators, each after everything it reads."""
    order = []
    for query in deployment.queries:
        own = {operator.name: operator for operator in query.operators}
        order += [(query, own[name]) for name in topological(query)]
    return order


def reads_of(deployment: Deployment) -> Reads:
    """The streams that each operator reads, by their global names."""
    reads = {}
    for query in deployment.queries:
        own = {operator.name for operator in query.operators}
        for operator in query.operators:
            names = [f"{query.name}.{name}" if name in own else name for name in operator.from_]
            reads[query.name, operator.name] = names
    return reads


def record_bytes(deployment: Deployment, order: list[tuple[Query, Operator]], reads: Reads) -> dict[str, float]:
    """Records keep the size of what they were made from; a join's are as large as both together."""
    size = {source.name: source.record_bytes for source in deployment.sources}
    for query, operator in order:
        inputs = [size[stream] for stream in reads[query.name, operator.name]]
        size[f"{query.name}.{operator.name}"] = sum(inputs) if joins(operator) else max(inputs)
    return size


def work_left_ns(deployment: Deployment, homes: dict[tuple[str, str], str], ways: Ways) -> dict[tuple[str, str], int]:
    """Mean work and link delay from an operator to its farthest sink: what least slack takes off the deadline."""
    capacity = {site.name: site.capacity for site in deployment.sites}
    left: dict[tuple[str, str], int] = {}
    for query in deployment.queries:
        for name in reversed(topological(query)):
            here = homes[query.name, name]
            after = [(homes[query.name, one.name], left[query.name, one.name]) for one in query.consumers(name)]
            after += [(sink.site, 0) for sink in query.sinks if sink.from_ == name and sink.site]
            rest = max((max(0, ways.between_ns(here, there)) + more for there, more in after), default=0)
            work = cost_ms(query.operator(name)) * NS_PER_MS / capacity[here] if capacity[here] else 0.0
            left[query.name, name] = round(work) + rest
    return left
