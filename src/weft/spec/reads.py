"""How does a query read a stream of another? As `north.district`, in `from` and in SQL, where it becomes one name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from weft.model import Deployment, Operator, Query
from weft.spec.problems import did_you_mean, listed, unknown
from weft.spec.sql import SqlError, parsed


def with_named_reads(deployment: Deployment) -> Deployment:
    """The same deployment, its SQL reading streams of others by one name each; doing it again changes nothing."""
    queries = tuple(
        replace(query, operators=tuple(map(_named, query.operators)))
        if any(map(_reads_others, query.operators))
        else query
        for query in deployment.queries
    )
    return replace(deployment, queries=queries) if queries != deployment.queries else deployment


def _reads_others(operator: Operator) -> bool:
    return operator.sql is not None and any("." in name for name in operator.from_)


def _named(operator: Operator) -> Operator:
    if operator.sql is None or not _reads_others(operator):
        return operator
    sql = with_whole_names(operator.sql, operator.from_)
    return operator if sql == operator.sql else replace(operator, sql=sql)


def with_whole_names(sql: str, inputs: Sequence[str]) -> str:
    """The statement with `north.district` read under one quoted name, and called `district` where it has no alias."""
    whole = {name.lower(): name for name in inputs if "." in name}
    try:
        tables = [table for table in parsed(sql).find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    except SqlError:
        return sql
    changes: list[tuple[int, int, str]] = []
    for table in tables:
        name = whole.get(".".join(part.name for part in table.parts).lower())
        if name is None or (table.alias and not table.db):
            continue
        first = table.args["db"] if table.db else table.this
        alias = "" if table.alias else f" AS `{name.rpartition('.')[2]}`"
        changes.append((first.meta["start"], table.this.meta["end"], f"`{name}`{alias}"))
    for start, end, text in sorted(changes, reverse=True):
        sql = sql[:start] + text + sql[end + 1 :]
    return sql


def streams_of(queries: Iterable[Query]) -> dict[str, Query]:
    """The streams that queries make, by name, each with its query."""
    return {f"{query.name}.{operator.name}": query for query in queries for operator in query.operators}


def stream_problem(name: str, query: Query, deployment: Deployment, made: Mapping[str, Query], own: str) -> str | None:
    """Why a name in `from` of the operator `own` is no stream that it may read; None where it is one."""
    operators = [operator.name for operator in query.operators]
    sources = [source.name for source in deployment.sources]
    if name in operators or name in sources or (name in made and made[name] is not query):
        return None
    asked, _, operator = name.partition(".")
    if not operator:
        elsewhere = [stream for stream in made if stream.partition(".")[2] == name]
        if elsewhere:
            return f"`{name}` is an operator of another query; write `{elsewhere[0]}`"
        return unknown("source or operator of this query", name, [one for one in (*sources, *operators) if one != own])
    if asked == query.name and operator in operators:
        return f"`{operator}` is an operator of this query; write `{operator}`"
    other = next((one for one in deployment.queries if one.name == asked), None)
    if other is None:
        return unknown("query", asked, [one.name for one in deployment.queries if one is not query])
    names = [one.name for one in other.operators]
    return f"query `{asked}` has no operator `{operator}`; it has: {listed(names)}{did_you_mean(operator, names)}"


def called_alike(operator: Operator) -> tuple[str, str] | None:
    """Two inputs that SQL would call by one name, since neither has an alias of its own there."""
    try:
        tree = parsed(operator.sql or "")
    except SqlError:
        return None
    for select in tree.find_all(exp.Select):
        nodes = [select.args["from_"].this] if select.args.get("from_") is not None else []
        nodes += [join.this for join in select.args.get("joins") or ()]
        called: dict[str, str] = {}
        for table in nodes:
            if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier):
                before = called.setdefault(table.alias_or_name.lower(), table.name)
                if before != table.name and ("." in before or "." in table.name):
                    return before, table.name
    return None


def after_what_they_read(queries: Sequence[Query]) -> list[int]:
    """The places of queries in the order written, each after those it reads, as far as they do not read each other."""
    reads = {
        at: {name.partition(".")[0] for operator in query.operators for name in operator.from_ if "." in name}
        for at, query in enumerate(queries)
    }
    if not any(reads.values()):
        return list(reads)
    order: list[int] = []
    left = list(reads)
    while left:
        waiting = {queries[at].name for at in left}
        ready = next((at for at in left if not (reads[at] & waiting) - {queries[at].name}), left[0])
        order.append(ready)
        left.remove(ready)
    return order


def reads_between(queries: Sequence[Query]) -> dict[str, list[str]]:
    """The operators (`query.operator`) that read a stream of another query, by that stream."""
    found: dict[str, list[str]] = {}
    for query in queries:
        for operator in query.operators:
            for name in operator.from_:
                if "." in name and not name.startswith(f"{query.name}."):
                    found.setdefault(name, []).append(f"{query.name}.{operator.name}")
    return found


def rounds(queries: Sequence[Query]) -> list[list[str]]:
    """Streams that come of their own records by way of another query, downstream from the first as written."""
    if not reads_between(queries):
        return []
    inputs: dict[str, list[str]] = {}
    for query in queries:
        own = {operator.name for operator in query.operators}
        for operator in query.operators:
            names = [f"{query.name}.{name}" if name in own else name for name in operator.from_]
            inputs[f"{query.name}.{operator.name}"] = names
    found: list[list[str]] = []
    while cycle := _cycle(inputs):
        if len({stream.partition(".")[0] for stream in cycle}) > 1:
            first = cycle.index(next(stream for stream in inputs if stream in cycle))
            found.append([*cycle[first:], *cycle[:first], cycle[first]])
        inputs = {stream: names for stream, names in inputs.items() if stream not in cycle}
    return found


def _cycle(inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """Some streams that go round, in the direction of records; none where all have an order."""
    left = dict(inputs)
    while ready := [stream for stream, names in left.items() if not any(name in left for name in names)]:
        for stream in ready:
            del left[stream]
    trail: list[str] = []
    current = next(iter(left), "")
    while current and current not in trail:
        trail.append(current)
        current = next(name for name in left[current] if name in left)
    return trail[trail.index(current) :][::-1] if trail else []
