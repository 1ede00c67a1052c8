"""What do several queries ask alike? It is made once, under the name of the first, and the others read it there.

Equal streams are found by what they mean, upstream first, so that from each result back the nearest stream that exists
is taken (Synergy §2.3.3); what nobody reads any more is not made. Where a query shows such a stream in a sink, or has
its columns in another order, it keeps an operator of its own that only picks them. An operator that is pinned to a site
stays there: it shares only with who may run there.

What runs goes on as it is. A query that comes later has to read its sources from their beginning, and a stream that
runs has given its first records away: so it shares with those that come with it, and with nobody else. When a query
leaves, what others use of it stays, under its name, as a query without a sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from weft.model import Cost, Dataflow, Deployment, Node, Operator, Query, Sharing, dataflow
from weft.plan.dataflow.containing import as_rates_are, contained, is_contained
from weft.plan.dataflow.meanings import meanings
from weft.plan.dataflow.real_time import real_time
from weft.plan.dataflow.together import divided, with_together
from weft.plan.dataflow.unread import without_lost_parts, without_unread
from weft.spec import Relation, with_reads_from

COST_MS = 0.001
"""Work per record of an operator that only picks columns."""


def with_sharing(deployment: Deployment) -> Deployment:
    """The same deployment, its equal operators made once where `control.share` asks for it; again changes nothing."""
    if deployment.sharing is not None or not is_on(deployment):
        return deployment
    found = shared(deployment, stands_by_meaning(deployment))
    return with_together(found) if are_together(deployment) else found


def are_together(deployment: Deployment) -> bool:
    """True if aggregates that differ in their filters are to be one."""
    return deployment.control.share is not None and deployment.control.share.together


def is_on(deployment: Deployment) -> bool:
    """True if `control.share` asks for it."""
    return deployment.control.share is not None and deployment.control.share.on


def resumed(
    deployment: Deployment, before: Set[str], stands: Mapping[str, str], operators: Mapping[str, Operator]
) -> Deployment:
    """A deployment as a run goes on with it: the queries that ran `before` share what they did, new ones anew.

    `operators` are those that were shared, and what they come of: what others use of a query that is gone is made on.
    """
    names = {query.name for query in deployment.queries}
    held = {stream: other for stream, other in stands.items() if _query_of(stream) in names & before}
    new = stands_by_meaning(deployment, names - before) if is_on(deployment) else {}
    made = {other: operators[other] for other in held.values() if _is_made_of_several(operators, other)}
    through = {stream: other for stream, other in held.items() if other in made}
    equal = {stream: other for stream, other in held.items() if other not in made}
    left = _left_over(names, held, {**operators, **made})
    whole = replace(deployment, queries=(*deployment.queries, *left))
    found = shared(whole, {**equal, **new}, deployment.queries, made.keys())
    if made:
        found = divided(replace(found, sharing=found.sharing or Sharing(deployment.queries)), made, through)
    return with_together(found, names - before) if is_on(deployment) and are_together(deployment) else found


def _is_made_of_several(operators: Mapping[str, Operator], stream: str) -> bool:
    return stream in operators and bool(operators[stream].parts)


def _left_over(names: Set[str], stands: Mapping[str, str], operators: Mapping[str, Operator]) -> tuple[Query, ...]:
    """What is used of queries that are gone, and what that comes of."""
    needed: dict[str, None] = {}
    waiting = list(stands.values())
    while waiting:
        stream = waiting.pop()
        query = _query_of(stream)
        if stream in needed or stream not in operators or query in names:
            continue
        needed[stream] = None
        waiting += [name if "." in name else f"{query}.{name}" for name in operators[stream].from_]
    queries = dict.fromkeys(_query_of(stream) for stream in operators if stream in needed)
    return tuple(
        Query(
            query,
            tuple(one for stream, one in operators.items() if stream in needed and _query_of(stream) == query),
            (),
        )
        for query in queries
    )


def _query_of(stream: str) -> str:
    return stream.partition(".")[0]


def made_for_others(deployment: Deployment) -> dict[str, Operator]:
    """The operators that are shared, and all that they come of, upstream first."""
    flow = dataflow(deployment)
    waiting = list(deployment.sharing.stands.values()) if deployment.sharing is not None else []
    found: set[str] = set()
    while waiting:
        stream = waiting.pop()
        if stream not in found and flow.makes(stream):
            found.add(stream)
            waiting += flow.node(stream).inputs
    return {node.stream: node.operator for node in flow.nodes if node.stream in found}


def left_by(deployment: Deployment, name: str) -> Deployment:
    """A deployment without a query, but for what others use of it."""
    queries = tuple(replace(one, sinks=()) if one.name == name else one for one in deployment.queries)
    if deployment.sharing is None:
        return replace(deployment, queries=tuple(one for one in queries if one.name != name))
    stands = {stream: other for stream, other in deployment.sharing.stands.items() if _query_of(stream) != name}
    written = tuple(one for one in deployment.sharing.written if one.name != name)
    return without_lost_parts(without_unread(replace(deployment, queries=queries, sharing=Sharing(written, stands))))


def as_written(deployment: Deployment) -> Deployment:
    """A deployment with its queries as written."""
    if deployment.sharing is None:
        return deployment
    return replace(deployment, queries=deployment.sharing.written, sharing=None)


def stands_by_meaning(deployment: Deployment, among: Set[str] | None = None) -> dict[str, str]:
    """For each stream that another makes already, upstream first, that other; `among` some queries, or all."""
    flow, known = dataflow(deployment), meanings(deployment)
    apart = set(real_time(deployment))  # what runs record by record, in one piece, can neither give nor take
    first: dict[str, list[Node]] = {}
    stands: dict[str, str] = {}
    for node in flow.nodes:
        if apart & set(node.queries) or (among is not None and not among & set(node.queries)):
            continue
        same = first.setdefault(known[node.stream].key, [])
        taken = next((one for one in same if _may_run_there(node, one)), None)
        if taken is None:
            same.append(node)
        elif taken.stream not in node.inputs:  # who only hands on what it reads saves nothing
            stands[node.stream] = taken.stream
    return stands | contained(deployment, stands, among) if contains(deployment) else stands


def contains(deployment: Deployment) -> bool:
    """True if `control.share` asks to look for streams whose records are all among another's, too."""
    return deployment.control.share is not None and deployment.control.share.contain


def _may_run_there(node: Node, other: Node) -> bool:
    return node.operator.site is None or node.operator.site == other.operator.site


def shared(
    deployment: Deployment, stands: Mapping[str, str], written: tuple[Query, ...] | None = None,
    kept: Set[str] = frozenset(),
) -> Deployment:  # fmt: skip
    """A deployment in which streams stand for others; those that nobody reads any more are gone, but for some."""
    if not stands:
        return deployment
    flow, known = dataflow(deployment), meanings(deployment)
    instead = {stream: other for stream, other in stands.items() if _is_read_there(flow, known, stream, stands)}
    queries = tuple(
        replace(query, operators=tuple(_operators(deployment, query, stands, instead))) for query in deployment.queries
    )
    sharing = Sharing(deployment.queries if written is None else written, dict(stands))
    made = replace(deployment, queries=queries, sharing=sharing)
    return without_unread(made, kept)


def _is_read_there(flow: Dataflow, known: Mapping[str, Relation], stream: str, stands: Mapping[str, str]) -> bool:
    """True if who reads a stream may read the other: its columns have that order, and nobody would read it twice."""
    if known[stream].key != known[stands[stream]].key or known[stream].names != known[stands[stream]].names:
        return False
    alike = {one for one, other in stands.items() if other == stands[stream]} | {stands[stream]}
    return not any(len(alike & set(reader.inputs)) > 1 for reader in flow.readers(stream))


def _operators(
    deployment: Deployment, query: Query, stands: Mapping[str, str], instead: Mapping[str, str]
) -> Iterable[Operator]:
    flow, known = dataflow(deployment), meanings(deployment)
    for operator in query.operators:
        stream = f"{query.name}.{operator.name}"
        if stream in stands and is_contained(deployment, stream, stands[stream]):
            more = {operator.from_[0]: name_in(query, stands[stream])}
            yield reading(as_rates_are(deployment, operator, stream, stands[stream]), more)
            continue
        if stream in stands:
            yield _picking(query, operator, stands[stream], known)
            continue
        names = {
            name: name_in(query, instead[read])
            for name, read in zip(operator.from_, flow.node(stream).inputs, strict=True)
            if read in instead
        }
        yield reading(operator, names) if names else operator


def name_in(query: Query, stream: str) -> str:
    """What a query calls a stream."""
    return stream.removeprefix(f"{query.name}.")


def reading(operator: Operator, instead: Mapping[str, str]) -> Operator:
    """An operator that reads other streams, and goes on to call them as it did."""
    sql = None if operator.sql is None else with_reads_from(operator.sql, instead)
    watermarks = tuple(
        mark if mark.input is None else replace(mark, input=instead.get(mark.input, mark.input))
        for mark in operator.watermarks
    )
    from_ = tuple(instead.get(name, name) for name in operator.from_)
    return replace(operator, sql=sql, from_=from_, watermarks=watermarks)


def _picking(query: Query, operator: Operator, stream: str, known: Mapping[str, Relation]) -> Operator:
    """An operator that shows the columns of another stream, named and ordered as it would its own."""
    name = name_in(query, stream)
    own, theirs = known[f"{query.name}.{operator.name}"].names, known[stream].names
    if own is None or theirs is None:
        shown = "*"
    else:
        called = {one.lower(): one for one in theirs}
        shown = ", ".join(f"`{_escaped(called[one.lower()])}` AS `{_escaped(one)}`" for one in own)
    sql = f"SELECT {shown} FROM `{name}`"
    cost = Cost("constant", (COST_MS,))
    return Operator(operator.name, (name,), sql, cost_ms=cost, selectivity=1.0, site=operator.site)


def _escaped(name: str) -> str:
    return name.replace("`", "``")
