"""What is left of a deployment once queries share, or leave? What nobody reads any more is not made."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from weft.model import Deployment, Operator, dataflow


def without_unread(deployment: Deployment, kept: Set[str] = frozenset()) -> Deployment:
    """A deployment without operators that nothing reads, and without removed queries of which nothing is left."""
    while True:
        flow = dataflow(deployment)
        unread = {node.stream for node in flow.nodes if not flow.readers(node.stream) and not flow.shown(node.stream)}
        unread -= kept
        if not unread:
            return replace(deployment, queries=tuple(one for one in deployment.queries if one.operators))
        queries = tuple(
            replace(query, operators=tuple(one for one in query.operators if f"{query.name}.{one.name}" not in unread))
            for query in deployment.queries
        )
        deployment = replace(deployment, queries=queries)


def without_lost_parts(deployment: Deployment) -> Deployment:
    """A deployment whose operators made of several count for nobody who has left; they go on to measure for them."""
    flow = dataflow(deployment)

    def left(operator: Operator) -> Operator:
        parts = tuple(part for part in operator.parts if flow.makes(part.stream))
        return operator if parts == operator.parts else replace(operator, parts=parts)

    queries = tuple(replace(query, operators=tuple(map(left, query.operators))) for query in deployment.queries)
    return replace(deployment, queries=queries)
