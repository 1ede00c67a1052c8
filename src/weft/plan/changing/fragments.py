"""What runs as one Spark query? A placement cut into fragments, each with at most one stateful operator.

A fragment has a trunk, the operators that lie in its streaming plan and end in one, and branches, stateless
operators that map each batch of the trunk. An operator joins the fragment of what it reads when both run on one
site and, for a branch: it is stateless and reads that alone; into a trunk: what it reads feeds nothing else, holds
no second stateful operator, and hands through the event time that its watermark needs.
What queries share is fused across them: stateless operators of one query that read nothing but a stream that another
makes for both (`control.share`) are branches of the fragment that makes it, under their full names (`query.operator`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from weft.model import Dataflow, Deployment, Node, Placement, Query, dataflow
from weft.plan.changing.fusing import Group, fuse
from weft.plan.dataflow.asked_columns import unasked
from weft.plan.dataflow.event_times import Passes, Stateful, watermark_of

Relays = Mapping[tuple[str, str, str], str]


@dataclass(frozen=True, slots=True)
class Fragment:
    """Operators on one site, run as one Spark streaming query; a relay has no operators.

    Trunk and the first query's branches are named as that query does, branches of other queries by their streams.
    `relayed` tells which operator reads which source through a relay's stream, where it does not read it directly;
    `empty` are columns of its outputs that nobody asks for who reads them: they travel as nulls.
    """

    id: str
    site: str
    queries: tuple[str, ...]
    trunk: tuple[str, ...]
    branches: tuple[str, ...]
    stateful: str | None
    sources: tuple[str, ...]
    channels: tuple[str, ...]
    outputs: tuple[str, ...]
    sinks: tuple[str, ...]
    relayed: tuple[tuple[str, str], ...] = ()
    empty: tuple[tuple[str, str], ...] = ()

    @property
    def query(self) -> str | None:
        """The query that its trunk is named in; None for a relay of a source, which belongs to all."""
        return self.queries[0] if self.queries else None

    @property
    def operators(self) -> tuple[str, ...]:
        """All its operators, upstream first."""
        return self.trunk + self.branches

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of all its operators, upstream first."""
        return tuple(self.stream(name) for name in self.operators)

    def stream(self, name: str) -> str:
        """The stream of an operator as it is named here."""
        return name if "." in name else f"{self.query}.{name}"

    def name(self, stream: str) -> str:
        """What the operator of a stream is called here."""
        return stream.removeprefix(f"{self.query}.")

    @property
    def inputs(self) -> tuple[str, ...]:
        """All it reads: sources where they enter, channels from elsewhere."""
        return self.sources + self.channels


def cut(
    deployment: Deployment,
    placement: Placement,
    stateful: Stateful,
    passes: Passes,
    relays: Relays | None = None,
) -> tuple[Fragment, ...]:
    """The fragments a placement needs, relays of sources and sinks included, upstream first.

    `relays` are those that a running deployment has already: who reads a source through one goes on so.
    """
    fragments: list[Fragment] = []
    relayed: dict[str, str] = {}
    groups = {query.name: _groups(deployment, query, placement.homes, stateful, passes) for query in deployment.queries}
    if deployment.sharing is not None:
        fuse(deployment, placement.homes, groups)
    group_of = {stream: group for own in groups.values() for group in own for stream in group.streams}
    for query in deployment.queries:
        made = _of_query(deployment, query, placement.homes, groups[query.name], group_of, relayed, relays or {})
        fragments.extend(made)
    if any(dataflow(deployment).reads_others(query.name) for query in deployment.queries):
        fragments = list(upstream_first(tuple(fragments)))
    first = [
        Fragment(stream, deployment.source(name).site, (), (), (), None, (name,), (), (stream,), ())
        for stream, name in relayed.items()
    ]
    whole = (*first, *fragments)
    share = deployment.control.share
    return _without_unasked(deployment, whole) if share is not None and share.on else whole


def _without_unasked(deployment: Deployment, fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Fragments that know which columns of their outputs need not travel."""
    return tuple(
        replace(one, empty=tuple(
            (stream, name) for stream in one.outputs for name in _unasked(deployment, fragments, stream)
        ))
        for one in fragments
    )  # fmt: skip


def _unasked(deployment: Deployment, fragments: Iterable[Fragment], stream: str) -> tuple[str, ...]:
    """The columns of a stream between fragments that none of those asks for who read it."""
    flow, named, readers = dataflow(deployment), source_of(stream), []
    for one in fragments:
        if stream in one.channels and not one.operators:
            return ()  # it goes to a sink
        if stream in one.channels:
            nodes = [(name, flow.node(one.stream(name))) for name in one.operators if flow.makes(one.stream(name))]
            through = {name for name, relay in one.relayed if relay == stream}
            readers += [node for name, node in nodes if named in node.inputs and (flow.makes(named) or name in through)]
    return unasked(deployment, named, readers) if readers else ()


def not_sent(deployment: Deployment, fragments: tuple[Fragment, ...]) -> str | None:
    """Which column a deployment asks for that fragments, cut for another, do not send; None where all is sent."""
    read = {stream for one in fragments for stream in one.channels if one.operators}
    return next(
        (
            f"`{name}` of {stream} was not sent so far, as nobody asked for it"
            for fragment in fragments
            for stream, name in fragment.empty
            if stream in read and name not in _unasked(deployment, fragments, stream)
        ),
        None,
    )


def each_alone(deployment: Deployment, placement: Placement, relays: Relays) -> tuple[Fragment, ...]:
    """Every operator as a fragment of its own, named by its stream; sources and sinks are served where they are."""
    del relays  # who reads a source away from it is sent its records directly
    return tuple(
        Fragment(
            node.stream, placement.home(node.stream), node.queries, (node.operator.name,), (), None, (),
            tuple(dict.fromkeys(node.inputs)), (node.stream,), (),
        )
        for node in dataflow(deployment).nodes
    )  # fmt: skip


def with_queries(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """A fragment's plain form; one of an earlier version names one query, or none."""
    if "queries" in plain:
        return plain
    return {**plain, "queries": [] if plain["query"] is None else [plain["query"]]}


def relays_of(fragments: tuple[Fragment, ...]) -> Relays:
    """Which operators of some fragments read which sources through which relay's stream."""
    found: dict[tuple[str, str, str], str] = {}
    for fragment in fragments:
        for operator, stream in fragment.relayed:
            assert fragment.query is not None
            found[fragment.query, operator, source_of(stream)] = stream
    return found


def without_unused(fragments: tuple[Fragment, ...], flow: Dataflow) -> tuple[Fragment, ...]:
    """Fragments less operators, sinks and streams that are not there any more; what is left runs on as it was cut."""
    sinks = {outlet.name for outlet in flow.outlets}
    left = []
    for one in fragments:
        kept = {name for name in one.operators if flow.makes(one.stream(name))}
        trunk, branches = (tuple(name for name in names if name in kept) for names in (one.trunk, one.branches))
        shown = tuple(name for name in one.sinks if name in sinks)
        if (one.operators and not trunk) or (one.sinks and not one.operators and not shown):
            continue
        relayed = tuple((name, stream) for name, stream in one.relayed if name in kept)
        by = {one.stream(name).partition(".")[0] for name in (*trunk, *branches)}
        queries = tuple(name for name in one.queries if name in by) if trunk else one.queries
        left.append(replace(one, queries=queries, trunk=trunk, branches=branches, sinks=shown, relayed=relayed))
    while True:
        read = {stream for one in left for stream in one.channels}
        less = [
            replace(
                one, outputs=tuple(stream for stream in one.outputs if stream in read),
                empty=tuple(held for held in one.empty if held[0] in read),
            )
            for one in left
        ]  # fmt: skip
        less = [one for one in less if one.operators or one.sinks or one.outputs]
        if less == left:
            return tuple(left)
        left = less


def upstream_first(fragments: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    """Fragments in an order in which each stands after the writers of what it reads."""
    waiting = list(fragments)
    ordered: list[Fragment] = []
    while waiting:
        written = {stream for fragment in waiting for stream in fragment.outputs}
        ready = [fragment for fragment in waiting if not set(fragment.channels) & (written - set(fragment.outputs))]
        assert ready, "streams between fragments have no cycle"
        ordered.extend(ready)
        waiting = [fragment for fragment in waiting if fragment not in ready]
    return tuple(ordered)


def source_of(stream: str) -> str:
    """The source that a relay's stream carries: all of it for everyone, or `SOURCE@QUERY.OPERATOR` for one reader."""
    return stream.partition("@")[0]


def _of_query(
    deployment: Deployment,
    query: Query,
    homes: Mapping[str, str],
    groups: list[Group],
    group_of: Mapping[str, Group],
    relayed: dict[str, str],
    relays: Relays,
) -> list[Fragment]:
    flow = dataflow(deployment)
    fragments: list[Fragment] = []
    for group in groups:
        nodes = [flow.node(stream) for stream in group.streams]
        site = homes[nodes[0].stream]
        sources: dict[str, None] = {}
        channels: dict[str, None] = {}
        through: list[tuple[str, str]] = []
        for node in nodes:
            for upstream in node.inputs:
                if group_of.get(upstream) is group:
                    continue
                if flow.makes(upstream):
                    channels[upstream] = None
                    continue
                relay = relays.get((query.name, node.operator.name, upstream))
                if relay is None and flow.sources[upstream].site == site:
                    sources[upstream] = None
                    continue
                stream = relay or upstream
                channels[stream] = None
                relayed[stream] = upstream
                through.append((node.operator.name, stream))
        away = [
            node.stream
            for node in nodes
            if any(group_of.get(reader.stream) is not group for reader in flow.readers(node.stream))
            or any(outlet.site(flow, homes) != site for outlet in flow.shown(node.stream))
        ]
        here = [
            outlet.name
            for outlet in flow.outlets
            if outlet.stream in group.streams and outlet.site(flow, homes) == site
        ]
        first = group.stateful or group.trunk[0]
        fragments.append(
            Fragment(
                id=first,
                site=site,
                queries=tuple(dict.fromkeys(name for node in nodes for name in node.queries)),
                trunk=tuple(flow.node(stream).operator.name for stream in group.trunk),
                branches=tuple(stream.removeprefix(f"{query.name}.") for stream in group.branches),
                stateful=None if group.stateful is None else flow.node(group.stateful).operator.name,
                sources=tuple(sources),
                channels=tuple(channels),
                outputs=tuple(away),
                sinks=tuple(here),
                relayed=tuple(through),
            )
        )
    for outlet in flow.outlets_of(query.name):
        site, stream = outlet.site(flow, homes), outlet.stream
        is_source = not flow.makes(stream)
        if is_source or site != homes[stream]:
            direct = is_source and site == flow.sources[stream].site
            if is_source and not direct:
                relayed[stream] = stream
            reads = ((stream,), ()) if direct else ((), (stream,))
            relay_id = _relay_id(query, outlet.name)
            fragments.append(
                Fragment(relay_id, site, (query.name,), (), (), None, reads[0], reads[1], (), (outlet.name,))
            )
    return fragments


def _relay_id(query: Query, label: str) -> str:
    """`LABEL.sink`, lengthened where an operator's fragment may be called the same."""
    name = f"{label}.sink"
    while any(name == f"{query.name}.{operator.name}" for operator in query.operators):
        name += "_"
    return name


def _groups(
    deployment: Deployment, query: Query, homes: Mapping[str, str], stateful: Stateful, passes: Passes
) -> list[Group]:
    flow = dataflow(deployment)
    groups: list[Group] = []
    group_of: dict[str, Group] = {}
    for node in flow.owned(query.name):
        keeps_state = stateful(query, node.operator)
        # Only what this query makes itself is in a group here: between queries there is always a channel.
        upstream = [other for other in node.inputs if other in group_of and homes[other] == homes[node.stream]]
        if not keeps_state and len(node.inputs) == 1 and upstream:
            group = group_of[upstream[0]]
            if not group.branches and group.trunk[-1] == upstream[0] and _feeds_only(flow, upstream[0], node.stream):
                group.trunk.append(node.stream)
            else:
                group.branches.append(node.stream)
            group_of[node.stream] = group
            continue
        group = Group([], [], node.stream if keeps_state else None)
        for other in dict.fromkeys(upstream):
            joined = group_of[other]
            if joined not in groups or not _absorbable(deployment, query, node, other, joined, passes):
                continue
            groups.remove(joined)
            group.trunk.extend(joined.trunk)
        group.trunk.append(node.stream)
        groups.append(group)
        for member in group.trunk:
            group_of[member] = group
    return groups


def _feeds_only(flow: Dataflow, stream: str, reader: str) -> bool:
    """Whether a stream goes to one operator and nowhere else, to no other query either."""
    return [node.stream for node in flow.readers(stream)] == [reader] and not flow.shown(stream)


def _absorbable(deployment: Deployment, query: Query, node: Node, upstream: str, group: Group, passes: Passes) -> bool:
    """Whether a whole upstream group may lie in an operator's trunk."""
    flow = dataflow(deployment)
    if group.stateful is not None or group.branches or group.trunk[-1] != upstream:
        return False
    if not _feeds_only(flow, upstream, node.stream):
        return False
    watermark = watermark_of(deployment, query, node.operator, flow.node(upstream).operator.name)
    if watermark is None or watermark.column is None:
        return True
    members = [flow.node(stream).operator for stream in group.trunk]
    return all(passes(query, member, other, watermark.column) for member in members for other in member.from_)
