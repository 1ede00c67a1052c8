"""What follows from a deployment before anything happens: record sizes, work still ahead."""

from __future__ import annotations

from collections.abc import Mapping

from weft.bodies.twin.setup.routes import Ways
from weft.model import Dataflow, Deployment
from weft.plan.dataflow.rates import cost_ms, joins

NS_PER_MS = 1_000_000


def record_bytes(flow: Dataflow) -> dict[str, float]:
    """Records keep the size of what they were made from; a join's are as large as both together."""
    size = {name: source.record_bytes for name, source in flow.sources.items()}
    for node in flow.nodes:
        inputs = [size[stream] for stream in node.inputs]
        size[node.stream] = sum(inputs) if joins(node.operator) else max(inputs)
    return size


def work_left_ns(deployment: Deployment, flow: Dataflow, homes: Mapping[str, str], ways: Ways) -> dict[str, int]:
    """Mean work and link delay from an operator to its farthest sink: what least slack takes off the deadline."""
    capacity = {site.name: site.capacity for site in deployment.sites}
    left: dict[str, int] = {}
    for node in reversed(flow.nodes):
        here = homes[node.stream]
        after = [(homes[one.stream], left[one.stream]) for one in flow.readers(node.stream)]
        after += [(outlet.sink.site, 0) for outlet in flow.shown(node.stream) if outlet.sink.site]
        rest = max((max(0, ways.between_ns(here, there)) + more for there, more in after), default=0)
        work = cost_ms(node.operator) * NS_PER_MS / capacity[here] if capacity[here] else 0.0
        left[node.stream] = round(work) + rest
    return left
