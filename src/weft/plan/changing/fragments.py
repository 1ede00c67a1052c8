"""What runs as one Spark query? A placement cut into fragments, each with at most one stateful operator.

A fragment has a trunk, the operators that lie in its streaming plan and end in one, and branches, stateless
operators that map each batch of the trunk. An operator joins the fragment of what it reads when both run on one
site and, for a branch: it is stateless and reads that alone; into a trunk: what it reads feeds nothing else, holds
no second stateful operator, and hands through the event time that its watermark needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.model import Deployment, Operator, Placement, Query
from weft.plan.dataflow.event_times import Passes, Stateful, watermark_of
from weft.plan.dataflow.graph import sink_name, sink_site, stream_of, topological

Relays = Mapping[tuple[str, str, str], str]


@dataclass(frozen=True, slots=True)
class Fragment:
    """Operators of one query on one site, run as one Spark streaming query; a relay has no operators.

    `relayed` tells which operator reads which source through a relay's stream, where it does not read it directly.
    """

    id: str
    site: str
    query: str | None
    trunk: tuple[str, ...]
    branches: tuple[str, ...]
    stateful: str | None
    sources: tuple[str, ...]
    channels: tuple[str, ...]
    outputs: tuple[str, ...]
    sinks: tuple[str, ...]
    relayed: tuple[tuple[str, str], ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """All its operators, upstream first."""
        return self.trunk + self.branches

    @property
    def inputs(self) -> tuple[str, ...]:
        """All it reads: sources where they enter, channels from elsewhere."""
        return self.sources + self.channels


@dataclass(slots=True)
class _Group:
    trunk: list[str]
    branches: list[str] = field(default_factory=list)
    stateful: str | None = None


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
    for query in deployment.queries:
        fragments.extend(_of_query(deployment, query, placement, stateful, passes, relayed, relays or {}))
    first = [
        Fragment(stream, deployment.source(name).site, None, (), (), None, (name,), (), (stream,), ())
        for stream, name in relayed.items()
    ]
    return (*first, *fragments)


def each_alone(deployment: Deployment, placement: Placement, relays: Relays) -> tuple[Fragment, ...]:
    """Every operator as a fragment of its own, named by its stream; sources and sinks are served where they are."""
    del relays  # who reads a source away from it is sent its records directly
    found = []
    for query in deployment.queries:
        for name in topological(query):
            stream = f"{query.name}.{name}"
            reads = tuple(dict.fromkeys(stream_of(query, one) for one in query.operator(name).from_))
            home = placement.home(stream)
            found.append(Fragment(stream, home, query.name, (name,), (), None, (), reads, (stream,), ()))
    return tuple(found)


def relays_of(fragments: tuple[Fragment, ...]) -> Relays:
    """Which operators of some fragments read which sources through which relay's stream."""
    found: dict[tuple[str, str, str], str] = {}
    for fragment in fragments:
        for operator, stream in fragment.relayed:
            assert fragment.query is not None
            found[fragment.query, operator, source_of(stream)] = stream
    return found


def source_of(stream: str) -> str:
    """The source that a relay's stream carries: all of it for everyone, or `SOURCE@QUERY.OPERATOR` for one reader."""
    return stream.partition("@")[0]


def _of_query(
    deployment: Deployment,
    query: Query,
    placement: Placement,
    stateful: Stateful,
    passes: Passes,
    relayed: dict[str, str],
    relays: Relays,
) -> list[Fragment]:
    homes = {name: placement.home(f"{query.name}.{name}") for name in topological(query)}
    groups = _groups(deployment, query, homes, stateful, passes)
    group_of = {name: group for group in groups for name in group.trunk + group.branches}
    sinks = {sink_name(query, sink): sink for sink in query.sinks}

    def site_of(name: str) -> str:
        return homes.get(name) or deployment.source(name).site

    fragments: list[Fragment] = []
    for group in groups:
        names = group.trunk + group.branches
        site = homes[names[0]]
        sources: dict[str, None] = {}
        channels: dict[str, None] = {}
        through: list[tuple[str, str]] = []
        for name in names:
            for upstream in query.operator(name).from_:
                if group_of.get(upstream) is group:
                    continue
                if upstream in homes:
                    channels[stream_of(query, upstream)] = None
                    continue
                relay = relays.get((query.name, name, upstream))
                if relay is None and deployment.source(upstream).site == site:
                    sources[upstream] = None
                    continue
                stream = relay or upstream
                channels[stream] = None
                relayed[stream] = upstream
                through.append((name, stream))
        away = [
            name
            for name in names
            if any(group_of[reader.name] is not group for reader in query.consumers(name))
            or any(sink.from_ == name and sink_site(deployment, query, sink, homes) != site for sink in query.sinks)
        ]
        here = [
            label
            for label, sink in sinks.items()
            if sink.from_ in names and sink_site(deployment, query, sink, homes) == site
        ]
        fragments.append(
            Fragment(
                id=f"{query.name}.{group.stateful or group.trunk[0]}",
                site=site,
                query=query.name,
                trunk=tuple(group.trunk),
                branches=tuple(group.branches),
                stateful=group.stateful,
                sources=tuple(sources),
                channels=tuple(channels),
                outputs=tuple(f"{query.name}.{name}" for name in away),
                sinks=tuple(here),
                relayed=tuple(through),
            )
        )
    for label, sink in sinks.items():
        site = sink_site(deployment, query, sink, homes)
        is_source = sink.from_ not in homes
        if is_source or site != site_of(sink.from_):
            stream = stream_of(query, sink.from_)
            direct = is_source and site == site_of(sink.from_)
            if is_source and not direct:
                relayed[stream] = stream
            reads = ((stream,), ()) if direct else ((), (stream,))
            fragments.append(
                Fragment(_relay_id(query, label), site, query.name, (), (), None, reads[0], reads[1], (), (label,))
            )
    return fragments


def _relay_id(query: Query, label: str) -> str:
    """`LABEL.sink`, lengthened where an operator's fragment may be called the same."""
    name = f"{label}.sink"
    while any(name == f"{query.name}.{operator.name}" for operator in query.operators):
        name += "_"
    return name


def _groups(
    deployment: Deployment, query: Query, homes: dict[str, str], stateful: Stateful, passes: Passes
) -> list[_Group]:
    groups: list[_Group] = []
    group_of: dict[str, _Group] = {}
    for name in topological(query):
        operator = query.operator(name)
        keeps_state = stateful(query, operator)
        upstream = [other for other in operator.from_ if other in group_of and homes[other] == homes[name]]
        if not keeps_state and len(operator.from_) == 1 and upstream:
            group = group_of[upstream[0]]
            if not group.branches and group.trunk[-1] == upstream[0] and _feeds_only(query, upstream[0], name):
                group.trunk.append(name)
            else:
                group.branches.append(name)
            group_of[name] = group
            continue
        group = _Group([], [], name if keeps_state else None)
        for other in dict.fromkeys(upstream):
            joined = group_of[other]
            if joined not in groups or not _absorbable(deployment, query, operator, other, joined, passes):
                continue
            groups.remove(joined)
            group.trunk.extend(joined.trunk)
        group.trunk.append(name)
        groups.append(group)
        for member in group.trunk:
            group_of[member] = group
    return groups


def _feeds_only(query: Query, name: str, reader: str) -> bool:
    """Whether a stream goes to one operator and nowhere else."""
    return [operator.name for operator in query.consumers(name)] == [reader] and all(
        sink.from_ != name for sink in query.sinks
    )


def _absorbable(
    deployment: Deployment, query: Query, operator: Operator, upstream: str, group: _Group, passes: Passes
) -> bool:
    """Whether a whole upstream group may lie in an operator's trunk."""
    if group.stateful is not None or group.branches or group.trunk[-1] != upstream:
        return False
    if not _feeds_only(query, upstream, operator.name):
        return False
    watermark = watermark_of(deployment, query, operator, upstream)
    if watermark is None or watermark.column is None:
        return True
    return all(
        passes(query, query.operator(member), other, watermark.column)
        for member in group.trunk
        for other in query.operator(member).from_
    )
