"""Which operators of several queries run as one Spark query? Those that go on, without state, from what is shared.

A stream that is made once for several (`control.share`) leaves its fragment only where somebody needs it outside. Whole
stateless groups of another query that read it alone, on its site, map each of its batches beside one another: as
branches, each with its own sinks, no channel in between. A group that is read further on keeps its own fragment: how
far event time has come is measured at the ways in and out of fragments, and must not depend on what is fused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.model import Dataflow, Deployment, dataflow
from weft.plan.dataflow.real_time import real_time


@dataclass(slots=True)
class Group:
    """Operators that will be a fragment, by their streams."""

    trunk: list[str]
    branches: list[str] = field(default_factory=list)
    stateful: str | None = None

    @property
    def streams(self) -> list[str]:
        """All of them, the trunk first."""
        return self.trunk + self.branches


def fuse(deployment: Deployment, homes: Mapping[str, str], groups: dict[str, list[Group]]) -> None:
    """Lets stateless groups be branches of the group that makes what they share, query by query, upstream first."""
    flow = dataflow(deployment)
    apart = set(real_time(deployment))
    group_of = {stream: group for own in groups.values() for group in own for stream in group.streams}
    shared = _shared_by(deployment)
    for node in flow.nodes:
        group, (query,) = group_of[node.stream], node.queries
        if group.trunk[:1] != [node.stream] or group.stateful is not None or query in apart:
            continue
        read = _sole_input(flow, group)
        host = group_of.get(read) if read is not None else None
        if host is None or host is group or query not in shared.get(read or "", ()):
            continue
        if homes[read or ""] != homes[node.stream] or _in_update_mode(flow, (*host.streams, *group.streams)):
            continue
        groups[query].remove(group)
        host.branches += group.streams
        group_of.update(dict.fromkeys(group.streams, host))


def _shared_by(deployment: Deployment) -> dict[str, set[str]]:
    """By each stream that is shared, the queries for which it is made beside its own: they came together with it.

    Who comes later, and reads a stream by its name, begins in the midst of it: through a channel.
    """
    found: dict[str, set[str]] = {}
    for stream, other in deployment.sharing.stands.items() if deployment.sharing is not None else ():
        found.setdefault(other, set()).add(stream.partition(".")[0])
    return found


def _sole_input(flow: Dataflow, group: Group) -> str | None:
    """The one stream from outside that a group reads, once; None where it reads more, or is read from outside."""
    inside = set(group.streams)
    if any(reader.stream not in inside for stream in group.streams for reader in flow.readers(stream)):
        return None
    if any(len(flow.node(stream).inputs) != 1 for stream in group.streams):
        return None
    read = [name for stream in group.streams for name in flow.node(stream).inputs if name not in inside]
    return read[0] if len(read) == 1 else None


def _in_update_mode(flow: Dataflow, streams: tuple[str, ...]) -> bool:
    return any(outlet.sink.mode != "append" for stream in streams for outlet in flow.shown(stream))
