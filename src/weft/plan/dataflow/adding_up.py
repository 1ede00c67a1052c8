"""Do a query's records add up? Where nothing gathers or multiplies them, each is a result, dropped, or filtered."""

from __future__ import annotations

from collections.abc import Mapping

from weft.model import Deployment, Query, dataflow
from weft.spec import only_filters


def adds_up(deployment: Deployment, query: Query) -> bool:
    """Whether each record of a query's sources can come to one result at most, on one way."""
    flow = dataflow(deployment)
    behind = {node.stream: node for node in flow.behind(query.name)}
    ways = dict.fromkeys((*behind, *flow.sources_of(query.name)), 0)
    for node in behind.values():
        for stream in node.inputs:
            ways[stream] += 1
    for outlet in flow.outlets_of(query.name):
        ways[outlet.stream] += 1
    # A `window` is how far back a join looks in the twin.
    alone = all(node.operator.window is None and only_filters(node.operator) for node in behind.values())
    return alone and all(count == 1 for count in ways.values())


def filtered_of(deployment: Deployment, query: Query, filtered: Mapping[str, int | None]) -> int | None:
    """Records that a query's operators filtered, given those of each stream; None where that cannot be known."""
    if not adds_up(deployment, query):
        return None
    parts = [filtered.get(node.stream) for node in dataflow(deployment).behind(query.name)]
    return None if None in parts else sum(part or 0 for part in parts)
