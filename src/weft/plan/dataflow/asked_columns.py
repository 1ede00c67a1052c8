"""Which columns of a stream does nobody ask for who reads it? They need not travel.

What a statement asks for is every name that it says, and all where it says `*`; one that hands on whole records asks
for what is asked of them further on. Of a function all is asked, as of what a sink shows, and of what puts late
records aside. So a name too many may travel, and none too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from weft.model import Deployment, Node, dataflow
from weft.model.dataflow import SameDeployment
from weft.plan.dataflow.event_times import watermark_of
from weft.spec import columns, names_asked

Asked = frozenset[str] | None
"""Names in lower case; None: all."""


def unasked(deployment: Deployment, stream: str, by: Iterable[Node]) -> tuple[str, ...]:
    """The columns of a stream, or of a source, that none of some readers asks for."""
    names, asked = _known(SameDeployment(deployment))
    held = [asked[reader.stream, stream] for reader in by]
    if stream not in names or any(one is None for one in held):
        return ()
    wanted: frozenset[str] = frozenset().union(*(one for one in held if one is not None))
    return tuple(name for name in names[stream] if name.lower() not in wanted)


@lru_cache(maxsize=16)
def _known(key: SameDeployment) -> tuple[Mapping[str, list[str]], Mapping[tuple[str, str], Asked]]:
    """The columns of each stream, where they are known, and what each reader asks of what it reads."""
    deployment = key.deployment
    flow, shown = dataflow(deployment), columns(deployment)
    names = {stream: [one.name for one in held] for stream, held in shown.items() if held is not None}
    names |= {source.name: [one.name for one in source.schema] for source in deployment.sources if source.schema}
    asked: dict[tuple[str, str], Asked] = {}
    for reader in reversed(flow.nodes):
        further = _together([asked[one.stream, reader.stream] for one in flow.readers(reader.stream)])
        more = None if flow.shown(reader.stream) else further
        for stream in reader.inputs:
            asked[reader.stream, stream] = _asked_by(deployment, reader, more)
    return names, asked


def _together(asked: Sequence[Asked]) -> Asked:
    """What several ask for; all, if one of them does or there is none."""
    held = [one for one in asked if one is not None]
    return frozenset().union(*held) if held and len(held) == len(asked) else None


def _asked_by(deployment: Deployment, reader: Node, further: Asked) -> Asked:
    """What an operator asks for; `further` is what is asked of its own stream."""
    operator = reader.operator
    if operator.sql is None or operator.late is not None or operator.queue is not None or operator.parts:
        return None
    found = names_asked(operator.sql)
    if found is None:
        return None
    names, whole = found
    if whole:
        if further is None:
            return None
        names |= further
    query = deployment.query(reader.queries[0])
    marks = [watermark_of(deployment, query, operator, name) for name in operator.from_]
    if any(mark is None for mark in marks) and operator.watermarks:
        return None  # on which column is not known
    return names | {mark.column.lower().split(".")[0] for mark in marks if mark is not None and mark.column}
