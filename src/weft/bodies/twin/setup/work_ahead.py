"""How much work is still ahead of a record, on the way from an operator to its farthest sink?"""

from __future__ import annotations

from collections.abc import Mapping

from weft.bodies.twin.setup.routes import Ways
from weft.model import Dataflow, Deployment
from weft.plan.dataflow.rates import cost_ms

NS_PER_MS = 1_000_000


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
