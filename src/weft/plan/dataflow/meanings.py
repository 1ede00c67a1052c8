"""What does each stream hold? Named by what made it, down to the sources: equal meanings are equal keys (Synergy §2.2).

A watermark, an order, what becomes of late records and how many may wait are part of the meaning. What nobody may share
(chance, the clock, a function that is not declared pure, results in update mode) means itself alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256

from weft.model import Dataflow, Deployment, Node, Query, dataflow
from weft.model.dataflow import SameDeployment
from weft.plan.dataflow.event_times import watermark_of
from weft.spec import Relation, columns, fingerprint, interval_us, is_ordering, meaning_of, origin, said_to

Names = tuple[str, ...] | None


def meanings(deployment: Deployment) -> Mapping[str, Relation]:
    """What every stream of a deployment holds, sources included; made once for it."""
    return _made(SameDeployment(deployment))


def stream_names(deployment: Deployment) -> Mapping[str, str]:
    """Short names of what streams that operators make hold: equal where meanings are, whoever works them out."""
    return _named(SameDeployment(deployment))


@lru_cache(maxsize=16)
def _named(key: SameDeployment) -> Mapping[str, str]:
    known, nodes = meanings(key.deployment), dataflow(key.deployment).nodes
    return {node.stream: sha256(known[node.stream].key.encode()).hexdigest()[:32] for node in nodes}


@lru_cache(maxsize=16)
def _made(key: SameDeployment) -> Mapping[str, Relation]:
    deployment = key.deployment
    flow, shown = dataflow(deployment), columns(deployment)
    queries = {query.name: query for query in deployment.queries}
    found: dict[str, Relation] = {
        source.name: origin(
            f"source[{source.name}]",
            tuple(column.name for column in source.schema) or None,
            [column.type for column in source.schema],
        )
        for source in deployment.sources
    }
    for node in flow.nodes:
        known = shown.get(node.stream)
        names = None if known is None else tuple(column.name for column in known)
        found[node.stream] = _meaning(deployment, queries[node.queries[0]], flow, node, found, names)
    return found


def _meaning(
    deployment: Deployment, query: Query, flow: Dataflow, node: Node, found: Mapping[str, Relation], names: Names
) -> Relation:
    operator = node.operator
    alone = origin(f"only[{node.stream}]", names)
    if any(outlet.sink.mode != "append" for outlet in flow.shown(node.stream)):
        return alone
    inputs = {name: found[stream] for name, stream in zip(operator.from_, node.inputs, strict=True) if stream in found}
    if len(inputs) < len(operator.from_):
        return alone
    marks = {name: _mark(deployment, query, node, name, inputs[name]) for name in operator.from_}
    marked = {name: mark for name, mark in marks.items() if mark is not None}
    read = [(one.key, one.names, marks[name]) for name, one in inputs.items()]
    if is_ordering(operator):
        made: Relation | None = origin(f"order[{operator.order}]({read})", names)
    elif operator.sql is not None:
        made = meaning_of(operator.sql, inputs, marked, names)
    else:
        made = _called(deployment, node, read, names)
    more = {key: held for key in ("late", "queue", "window") if (held := getattr(operator, key)) is not None}
    if made is None or not more:
        return made or alone
    return origin(f"with[{ {key: asdict(held) for key, held in more.items()} }]({made.key})", names)


def _called(deployment: Deployment, node: Node, read: object, names: Names) -> Relation | None:
    """A function by its name, its arguments and the code that it reaches."""
    operator = node.operator
    code = fingerprint(operator.call or "", deployment.folder) if operator.pure else None
    if code is None:
        return None
    args = said_to(operator.call or "", operator.args, deployment.folder)
    if args is None:
        return None
    declared = (operator.schema, operator.stateful, operator.state_kb > 0)
    return origin(f"call[{operator.call} {args} {code} {declared}]({read})", names)


def _mark(deployment: Deployment, query: Query, node: Node, name: str, one: Relation) -> str | None:
    """The watermark on an input: on which column of which origin, and how long it waits."""
    mark = watermark_of(deployment, query, node.operator, name)
    if mark is None or mark.column is None:
        return None if not node.operator.watermarks else f"{[asdict(held) for held in node.operator.watermarks]}"
    us = interval_us(mark.delay)
    delay = mark.delay if us is None else f"{us}us"
    root, *fields = mark.column.lower().split(".")
    shown = None if one.columns is None else {held.lower(): what for held, what in one.columns}
    if one.carried is not None and root not in one.carried:
        # How far such a column has come is measured where it is made, after what was filtered before.
        return f"measured {one.key} {mark.column.lower()}:{delay}"
    what = root if shown is None else shown.get(root, root)
    return f"{'.'.join([what, *fields])}:{delay}"
