"""Where do records get in order? An operator of its own in front of each that asks for it.

It keeps state, so it is cut, moved and restarted as any other; what it guards reads from it and, being given records in
order, waits for none of them.
"""

from __future__ import annotations

from dataclasses import replace

from weft.model import Cost, Dataflow, Deployment, Operator, Placement, Query, Watermark
from weft.plan.dataflow.event_times import time_column_of
from weft.spec import AT_ONCE, is_ordering, is_stateful, order_of, with_ordered_time, with_reads_from

__all__ = ["COST_MS", "guards_of", "hold_notes", "is_ordering", "orders_before", "with_guards", "with_ordering"]

COST_MS = 0.005
"""Work per record: 100,000 records take half a second of one core, on Spark."""


def with_ordering(deployment: Deployment) -> Deployment:
    """The same deployment with its ordering operators written out; doing it again changes nothing."""
    queries = tuple(_ordered(deployment, query) for query in deployment.queries)
    if queries == deployment.queries:
        return deployment
    return replace(deployment, queries=queries, control=replace(deployment.control, order=None))


def hold_notes(deployment: Deployment) -> list[str]:
    """What users are told of latencies behind an operator that puts records in order, one line a query."""
    return [
        f"{query.name}: `order` holds records back for as long as their delays teach; latencies shown are without that"
        for query in with_ordering(deployment).queries
        if any(is_ordering(operator) for operator in query.operators)
    ]


def guards_of(query: Query, name: str) -> tuple[str, ...]:
    """The ordering operators in front of an operator."""
    return tuple(one for one in query.operator(name).from_ if _orders(query, one))


def _orders(query: Query, name: str) -> bool:
    return any(operator.name == name and is_ordering(operator) for operator in query.operators)


def orders_before(flow: Dataflow, stream: str) -> tuple[str | None, ...]:
    """The streams last put in order on each way that records take to an operator, None where none was."""
    found: dict[str | None, None] = {}
    waiting, seen = list(flow.node(stream).inputs), set()
    while waiting:
        upstream = waiting.pop()
        if upstream in seen:
            continue
        seen.add(upstream)
        node = flow.node(upstream) if flow.makes(upstream) else None
        if node is None or is_ordering(node.operator):
            found[None if node is None else upstream] = None
        else:
            waiting.extend(node.inputs)
    return tuple(sorted(found, key=lambda one: one or ""))


def _ordered(deployment: Deployment, query: Query) -> Query:
    operators: list[Operator] = []
    for operator in query.operators:
        asked = None if is_ordering(operator) else order_of(deployment, operator)
        columns = {name: _time(deployment, query, operator, name) for name in operator.from_} if asked else {}
        if asked is None or None in columns.values():
            operators.append(operator if asked is None else replace(operator, order=None))
            continue
        instead: dict[str, str] = {}
        for name, column in columns.items():
            own = f"{operator.name}_order" if len(columns) == 1 else f"{operator.name}_order_{name.replace('.', '_')}"
            while any(one.name == own for one in query.operators) or any(s.name == own for s in deployment.sources):
                own += "_"
            instead[name] = own
            operators.append(
                Operator(
                    own,
                    (name,),
                    watermarks=(Watermark(AT_ONCE, column),),
                    cost_ms=Cost("constant", (COST_MS,)),
                    selectivity=1.0,
                    stateful=True,
                    site=operator.site,
                    order=replace(asked, time=column),
                )
            )
        if is_stateful(operator):
            operator = with_ordered_time(operator, asked)  # noqa: PLW2901
        sql = None if operator.sql is None else with_reads_from(operator.sql, instead)
        watermarks = tuple(replace(mark, input=instead.get(mark.input or "")) for mark in operator.watermarks)
        from_ = tuple(instead[name] for name in operator.from_)
        operators.append(replace(operator, sql=sql, from_=from_, watermarks=watermarks, order=None))
    return replace(query, operators=tuple(operators))


def _time(deployment: Deployment, query: Query, operator: Operator, name: str) -> str | None:
    asked = order_of(deployment, operator)
    assert asked is not None
    return asked.time or time_column_of(deployment, query, name)


def with_guards(deployment: Deployment, placement: Placement) -> Placement:
    """A placement that knows nothing of ordering operators, with each put beside the one it guards."""
    for query in deployment.queries:
        for operator in query.operators:
            for name in operator.from_:
                stream = f"{query.name}.{name}"
                if _orders(query, name) and stream not in placement.homes:
                    placement = placement.put(stream, placement.home(f"{query.name}.{operator.name}"))
    return placement
