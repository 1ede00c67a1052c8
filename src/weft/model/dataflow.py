"""The graph of a whole deployment: sources, operators and sinks, joined by named streams."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError

from weft.model.deployment import Deployment
from weft.model.queries import Operator, Part, Query, Sink, Source


@dataclass(frozen=True, slots=True)
class Node:
    """A stream (`query.operator`) with the operator that makes it, the streams that reads, and who owns it."""

    stream: str
    operator: Operator
    inputs: tuple[str, ...]
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlet:
    """A sink with its own name, its query, and the stream that it shows."""

    name: str
    query: str
    stream: str
    sink: Sink

    def site(self, flow: Dataflow, homes: Mapping[str, str]) -> str:
        """Where it stands: as written, else where its stream is made."""
        return self.sink.site or flow.site_of(self.stream, homes)


class Dataflow:
    """Sources by name, operators upstream first (as written where that leaves a choice), and sinks as written."""

    def __init__(self, sources: tuple[Source, ...], nodes: tuple[Node, ...], outlets: tuple[Outlet, ...]) -> None:
        self.sources: Mapping[str, Source] = {source.name: source for source in sources}
        self.nodes = nodes
        self.outlets = outlets
        self._nodes = {node.stream: node for node in nodes}
        self._readers: dict[str, dict[str, Node]] = {}
        self._owned: dict[str, list[Node]] = {}
        self._reading: set[str] = set()
        self._outlets: dict[str, list[Outlet]] = {}
        self._shown: dict[str, list[Outlet]] = {}
        for node in nodes:
            for query in node.queries:
                self._owned.setdefault(query, []).append(node)
            for stream in node.inputs:
                self._readers.setdefault(stream, {})[node.stream] = node
                above = self._nodes.get(stream)
                if above is not None and above.queries != node.queries:
                    self._reading.update(node.queries)
        for outlet in outlets:
            self._outlets.setdefault(outlet.query, []).append(outlet)
            self._shown.setdefault(outlet.stream, []).append(outlet)

    def node(self, stream: str) -> Node:
        """The node that makes a stream; KeyError where none does, as for a source's."""
        return self._nodes[stream]

    def stream(self, query: str, name: str) -> str:
        """The stream that an operator of a query calls by a name: one of its own query's, else what is called so."""
        own = f"{query}.{name}"
        return own if own in self._nodes else name

    def makes(self, stream: str) -> bool:
        """Whether an operator makes a stream, and no source."""
        return stream in self._nodes

    def readers(self, stream: str) -> tuple[Node, ...]:
        """The operators that read a stream, of whatever query, upstream first."""
        return tuple(self._readers.get(stream, {}).values())

    def shown(self, stream: str) -> tuple[Outlet, ...]:
        """The sinks that show a stream."""
        return tuple(self._shown.get(stream, ()))

    def owned(self, query: str) -> tuple[Node, ...]:
        """A query's own operators, upstream first."""
        return tuple(self._owned.get(query, ()))

    def outlets_of(self, query: str) -> tuple[Outlet, ...]:
        """A query's sinks, as written."""
        return tuple(self._outlets.get(query, ()))

    def reads_others(self, query: str) -> bool:
        """Whether a query reads a stream of another."""
        return query in self._reading

    def behind(self, query: str) -> tuple[Node, ...]:
        """All operators that a query's results come from, those of other queries included, upstream first."""
        own = self.owned(query)
        if query not in self._reading:
            return own
        found = {node.stream for node in own}
        waiting = list(own)
        while waiting:
            for stream in waiting.pop().inputs:
                if stream in self._nodes and stream not in found:
                    found.add(stream)
                    waiting.append(self._nodes[stream])
        return tuple(node for node in self.nodes if node.stream in found)

    def downstream(self, stream: str) -> tuple[Node, ...]:
        """All operators that a stream's records come to, of whatever query."""
        found: dict[str, Node] = {}
        waiting = [stream]
        while waiting:
            for reader in self.readers(waiting.pop()):
                if reader.stream not in found:
                    found[reader.stream] = reader
                    waiting.append(reader.stream)
        return tuple(found.values())

    def sources_of(self, query: str) -> tuple[str, ...]:
        """The sources that a query's results come from, in the order of the file."""
        used = {stream for node in self.behind(query) for stream in node.inputs}
        used.update(outlet.stream for outlet in self.outlets_of(query))
        return tuple(name for name in self.sources if name in used)

    def site_of(self, stream: str, homes: Mapping[str, str]) -> str:
        """Where a stream comes from: the home of its operator, or the site of its source."""
        return homes[stream] if stream in self._nodes else self.sources[stream].site


def dataflow(deployment: Deployment) -> Dataflow:
    """The graph of a deployment, made once for it; CycleError where operators read what comes of their own records."""
    return _made(SameDeployment(deployment))


def sink_name(query: Query, sink: Sink) -> str:
    """A sink's own name: `query` where it is the only one, else `query.N` in the order written."""
    if len(query.sinks) == 1:
        return query.name
    return f"{query.name}.{query.sinks.index(sink) + 1}"


@dataclass(frozen=True, slots=True)
class LateOutlet:
    """What a watermark leaves out of an operator's input: its name, the input, and the sink that keeps it, if any.

    Of an operator that was made of several each part has its own, which is counted.
    """

    name: str
    input: str
    sink: Sink | None
    part: Part | None = None


def late_outlets(query: Query, operator: Operator) -> tuple[LateOutlet, ...]:
    """One for every input with a watermark; where there are several inputs each has its folder within `late.to`."""
    found = []
    for name in operator.from_:
        if not any(mark.input in (None, name) for mark in operator.watermarks):
            continue
        alone, plain = len(operator.from_) == 1, name.replace(".", "_")
        own = f"{query.name}.{operator.name}.late" + ("" if alone else f".{plain}")
        if operator.parts:
            whole = f"{query.name}.{operator.name}"
            found += [LateOutlet(late_name(whole, part.stream), name, None, part) for part in operator.parts]
            continue
        late, sink = operator.late, None
        if late is not None:
            sink = Sink(operator.name, late.format, late.to if alone else f"{late.to}/{plain}", options=late.options)
        found.append(LateOutlet(own, name, sink))
    return tuple(found)


def late_name(whole: str, part: str) -> str:
    """Where what is late of a part is counted, by the stream of the operator that was made of several."""
    return f"{whole}.late@{part}"


class SameDeployment:
    """A deployment as a key: the same object, since its values cannot all be hashed and it cannot change."""

    __slots__ = ("deployment",)

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment

    def __hash__(self) -> int:
        return id(self.deployment)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameDeployment) and other.deployment is self.deployment


@lru_cache(maxsize=16)
def _made(key: SameDeployment) -> Dataflow:
    deployment = key.deployment
    written: list[Node] = []
    outlets: list[Outlet] = []
    for query in deployment.queries:
        own = {operator.name: f"{query.name}.{operator.name}" for operator in query.operators}
        for operator in query.operators:
            inputs = tuple(own.get(name, name) for name in operator.from_)
            written.append(Node(own[operator.name], operator, inputs, (query.name,)))
        for sink in query.sinks:
            outlets.append(Outlet(sink_name(query, sink), query.name, own.get(sink.from_, sink.from_), sink))
    return Dataflow(deployment.sources, _upstream_first(written), tuple(outlets))


def _upstream_first(written: list[Node]) -> tuple[Node, ...]:
    rank = {node.stream: at for at, node in enumerate(written)}
    if all(rank.get(stream, -1) < at for at, node in enumerate(written) for stream in node.inputs):
        return tuple(written)
    waits = [len({stream for stream in node.inputs if stream in rank}) for node in written]
    readers: list[list[int]] = [[] for _ in written]
    for at, node in enumerate(written):
        for stream in {stream for stream in node.inputs if stream in rank}:
            readers[rank[stream]].append(at)
    ready = [at for at, count in enumerate(waits) if count == 0]
    order: list[Node] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(written[at])
        for reader in readers[at]:
            waits[reader] -= 1
            if waits[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(written):
        left = [node.stream for node, count in zip(written, waits, strict=True) if count]
        raise CycleError("operators read what comes of their own records", left)
    return tuple(order)
