"""How streams hang together: names, order, and which operators lie between."""

from __future__ import annotations

import heapq
from graphlib import TopologicalSorter

from weft.model import Deployment, Query, Sink

RELAY = "relay"


def stream_of(query: Query, name: str) -> str:
    """The global name of what an operator reads as `name`: a source's own, or `query.operator`."""
    return f"{query.name}.{name}" if any(operator.name == name for operator in query.operators) else name


def topological(query: Query) -> tuple[str, ...]:
    """Operator names, each after everything it reads, in the order written where that leaves a choice."""
    rank = {operator.name: at for at, operator in enumerate(query.operators)}
    if all(rank.get(name, -1) < at for at, operator in enumerate(query.operators) for name in operator.from_):
        return tuple(rank)
    sorter = TopologicalSorter(
        {operator.name: [name for name in operator.from_ if name in rank] for operator in query.operators}
    )
    sorter.prepare()
    order: list[str] = []
    ready = [(rank[name], name) for name in sorter.get_ready()]
    heapq.heapify(ready)
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        sorter.done(name)
        for freed in sorter.get_ready():
            heapq.heappush(ready, (rank[freed], freed))
    return tuple(order)


def source_names(deployment: Deployment, query: Query) -> tuple[str, ...]:
    """The sources a query reads, in the order of the file."""
    used = {name for operator in query.operators for name in operator.from_}
    used |= {sink.from_ for sink in query.sinks}
    return tuple(source.name for source in deployment.sources if source.name in used)


def sink_name(query: Query, sink: Sink) -> str:
    """A sink's own name: `query` where it is the only one, else `query.N` in the order written."""
    if len(query.sinks) == 1:
        return query.name
    return f"{query.name}.{query.sinks.index(sink) + 1}"


def sink_site(deployment: Deployment, query: Query, sink: Sink, homes: dict[str, str]) -> str:
    """Where a sink stands: as written, else where its operator runs."""
    return sink.site or homes.get(sink.from_) or deployment.source(sink.from_).site
