"""Composition as published: each site measures what comes against the whole slack of a query (Synergy §2.3.4).

Two requests that come to two sites of one query may so spend its slack twice: `weft explore composing --as-published`.
"""

from __future__ import annotations

from weft.plan.composing.graphs import whole_slack
from weft.plan.composing.values import Graph
from weft.protocol.composing.composer import Composer


class PublishedComposer(Composer):
    """Lets every site of a query use up all that is left of its promise."""

    __slots__ = ()

    def bounds(self, graph: Graph, limit_us: int) -> dict[str, int]:
        """What each operator may take of the promise, were it the only one."""
        return whole_slack(graph, limit_us)
