"""Which aggregates differ in their filters alone? They are one stateful operator, whose results are divided.

Aggregates of several queries over equal windows and keys of one stream, behind equal watermarks, take in the records
that any of them asks for, and keep a measure for each: `sum(x) FILTER (WHERE its condition)`, beside the number of its
records in each group. Each query has the groups in which it has records. So the stream is read once, shuffled once and
kept once; what each shows, and its HAVING, is an operator without state, under the name that the aggregate had.

Filters count wherever they stand: in the aggregate, or in operators before it that only pick, compute and filter. A
condition is asked of records that its query would not have had, so only one that cannot fail is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from sqlglot import exp

from weft.model import Cost, Deployment, Node, Operator, Part, Query, Sharing, Watermark, dataflow
from weft.plan.dataflow.event_times import watermark_of
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.real_time import real_time
from weft.plan.dataflow.unread import without_lost_parts, without_unread
from weft.spec import columns, interval_us, is_stateful, with_reads_from
from weft.spec.folding import Folded, Grouped, Measure, folded, grouped, unfolded

COST_MS = 0.001
"""Work per record of an operator that only divides."""
MEASURES_MAX = 64
"""Of one operator: beyond so many columns Spark no longer compiles a grouping as one."""

HERE = "together"
"""What the stream of all is called in what divides it."""

Made = Mapping[str, Operator]
Key = tuple[str, str, str, tuple[str, ...], str | None]


@dataclass(frozen=True, slots=True)
class Member:
    """An aggregate that may be one with others: taken apart, over which stream, and which streams were folded in."""

    node: Node
    over: str
    through: tuple[str, ...]
    grouped: Grouped
    mark: Watermark

    @property
    def key(self) -> Key:
        """Equal for those that differ in their filters, in what they measure and in what they show."""
        us = interval_us(self.mark.delay)
        delay = self.mark.delay if us is None else f"{us}us"
        column = (self.mark.column or "").lower()
        return self.over, column, delay, tuple(sorted(self.grouped.keys)), self.node.operator.site

    @property
    def condition(self) -> exp.Expr | None:
        """Which records of the stream it asks for; None for all."""
        asked = self.grouped.read.conditions
        return exp.and_(*(one.copy() for one in asked), copy=False) if asked else None


def with_together(deployment: Deployment, among: Set[str] | None = None) -> Deployment:
    """The same deployment, with aggregates that differ in their filters as one; `among` some queries, or all."""
    groups: dict[Key, list[Member]] = {}
    for member in members(deployment, among):
        groups.setdefault(member.key, []).append(member)
    chosen = [some for group in groups.values() for some in _of_size(group) if len(some) > 1]
    if not chosen:
        return deployment
    taken = {source.name for source in deployment.sources}
    taken |= {operator.name for query in deployment.queries for operator in query.operators}
    made: dict[str, Operator] = {}
    for group in chosen:
        name = f"{group[0].node.operator.name}_together"
        while name in taken:
            name += "_"
        taken.add(name)
        made[f"{group[0].node.queries[0]}.{name}"] = replace(_of_all(deployment, group), name=name)
    through = {
        stream: whole
        for (whole, _), group in zip(made.items(), chosen, strict=True)
        for member in group
        for stream in member.through
    }
    return divided(deployment, made, through)


def _of_size(group: list[Member]) -> Iterator[list[Member]]:
    """Members in their order, as many at a time as one operator can hold."""
    some: list[Member] = []
    held = 0
    for member in group:
        size = 1 + len(member.grouped.measures)
        if some and held + size > MEASURES_MAX:
            yield some
            some, held = [], 0
        some.append(member)
        held += size
    yield some


def divided(deployment: Deployment, made: Made, through: Mapping[str, str]) -> Deployment:
    """A deployment with some operators made of several, and what divides their streams in place of those.

    `through` are streams that were folded in, by the one that they went into: those that nobody reads are gone.
    """
    parts = {part.stream: (stream, part) for stream, operator in made.items() for part in operator.parts}
    queries = []
    for query in deployment.queries:
        operators: list[Operator] = []
        there = {f"{query.name}.{operator.name}" for operator in query.operators}
        of_query = {f"{query.name}.{one.name}" for one in made.values()} - there
        waiting = {stream: one for stream, one in made.items() if stream in of_query}
        for operator in query.operators:
            own = f"{query.name}.{operator.name}"
            if own not in parts:
                operators.append(operator)
                continue
            stream, part = parts[own]
            if stream in waiting:
                operators.append(waiting.pop(stream))
            operators.append(_dividing(query, operator, stream, part))
        queries.append(replace(query, operators=(*waiting.values(), *operators)))
    before = deployment.sharing or Sharing(deployment.queries)
    found = without_lost_parts(without_unread(replace(deployment, queries=tuple(queries), sharing=before)))
    flow = dataflow(found)
    stands = {stream: through.get(other, other) if not flow.makes(other) else other
              for stream, other in before.stands.items()}  # fmt: skip
    stands |= {stream: whole for stream, whole in through.items() if not flow.makes(stream)}
    stands |= {stream: whole for stream, (whole, _) in parts.items() if flow.makes(whole)}
    return replace(found, sharing=Sharing(before.written, stands))


def _dividing(query: Query, operator: Operator, stream: str, part: Part) -> Operator:
    """What one query takes of the stream that several made, named and shown as its own aggregate would be."""
    name = stream.removeprefix(f"{query.name}.")
    sql, cost = with_reads_from(part.sql, {HERE: name}), Cost("constant", (COST_MS,))
    return Operator(operator.name, (name,), sql, cost_ms=cost, selectivity=part.selectivity, site=operator.site)


def members(deployment: Deployment, among: Set[str] | None = None) -> Iterator[Member]:
    """The aggregates that may be one with others, upstream first."""
    flow, shown = dataflow(deployment), columns(deployment)
    apart = set(real_time(deployment))
    queries = {query.name: query for query in deployment.queries}
    folds = _Folds(deployment, apart)
    for node in flow.nodes:
        operator, names = node.operator, shown.get(node.stream)
        if apart & set(node.queries) or (among is not None and not among & set(node.queries)):
            continue
        if operator.sql is None or names is None or len(node.inputs) != 1 or not is_stateful(operator):
            continue
        if not _is_plain(operator) or len(operator.watermarks) != 1:
            continue
        if _is_followed_by_state(deployment, node.stream):
            continue
        mark = watermark_of(deployment, queries[node.queries[0]], operator, operator.from_[0])
        found = folds.of(node.inputs[0], operator.site)
        if mark is None or mark.column is None or found is None:
            continue
        over, through, read = found
        held = grouped(operator.sql, read, [column.name for column in names])
        if held is None or not held.keys or not read.carries(mark.column):
            continue
        yield Member(node, over, through, held, mark)


def _is_plain(operator: Operator) -> bool:
    """Whether an operator says nothing of how its records wait, come late, or come in order."""
    more = (operator.late, operator.queue, operator.order, operator.window, operator.schema, operator.stateful)
    return not any(more) and not operator.parts


def _is_followed_by_state(deployment: Deployment, stream: str) -> bool:
    """Whether something goes on from a stream that needs to know how far its event time has come, or shows updates."""
    flow = dataflow(deployment)
    after = flow.downstream(stream)
    if any(one.operator.watermarks or is_stateful(one.operator) for one in after):
        return True
    streams = (stream, *(one.stream for one in after))
    return any(outlet.sink.mode != "append" for one in streams for outlet in flow.shown(one))


class _Folds:
    """Streams in terms of others further up, each found once."""

    def __init__(self, deployment: Deployment, apart: Set[str]) -> None:
        self.flow = dataflow(deployment)
        self.shown = columns(deployment)
        self.apart = apart
        self._found: dict[tuple[str, str | None], tuple[str, tuple[str, ...], Folded] | None] = {}

    def of(self, stream: str, site: str | None) -> tuple[str, tuple[str, ...], Folded] | None:
        """The stream furthest up, what lies between, and this stream in its terms; nothing that runs at another site
        by the file's word is folded into what is at this one."""
        if (stream, site) not in self._found:
            self._found[stream, site] = self._of(stream, site)
        return self._found[stream, site]

    def _of(self, stream: str, site: str | None) -> tuple[str, tuple[str, ...], Folded] | None:
        if self.flow.makes(stream):
            node = self.flow.node(stream)
            operator = node.operator
            here = operator.site is None or operator.site == site
            if self.apart & set(node.queries):
                return None
            if operator.sql is not None and len(node.inputs) == 1 and here and _is_plain(operator):
                above = None if operator.watermarks else self.of(node.inputs[0], site)
                held = None if above is None else folded(operator.sql, above[2])
                if above is not None and held is not None:
                    return above[0], (*above[1], stream), held
        shown = self.shown.get(stream)
        if not shown:
            return None
        return stream, (), unfolded([(column.name, column.type) for column in shown])


def _of_all(deployment: Deployment, group: list[Member]) -> Operator:
    """The one operator that measures for all."""
    first = group[0]
    query = first.node.queries[0]
    keys = {text: f"k{at}" for at, text in enumerate(first.grouped.keys, 1)}
    shown = {f"{_sql(held)} AS `{keys[text]}`": None for text, held in first.grouped.keys.items()}
    measures: dict[str, str] = {}
    parts: list[Part] = []
    conditions = [member.condition for member in group]
    for member, condition in zip(group, conditions, strict=True):
        where = None if condition is None else _sql(condition)
        names = []
        for text in (f"COUNT(*){_filter(condition)}", *(_measured(one, condition) for one in member.grouped.measures)):
            names.append(measures.setdefault(text, f"m{len(measures) + 1}"))
        parts.append(Part(member.node.stream, _division(member.grouped, keys, names), where))
    columns_ = [*shown, *(f"{text} AS `{name}`" for text, name in measures.items())]
    sql = f"SELECT {', '.join(columns_)} FROM `{first.over.removeprefix(f'{query}.')}`"
    if None not in conditions:
        wanted = {_sql(one): one for one in conditions if one is not None}
        sql += f" WHERE {_sql(exp.or_(*wanted.values()))}"
    sql += f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}"
    costs = [one.node.operator.cost_ms.mean_ms for one in group if one.node.operator.cost_ms is not None]
    cost = Cost("constant", (max(costs) + COST_MS * (len(group) - 1),)) if costs else None
    whole = Operator(
        "together", (first.over.removeprefix(f"{query}."),), sql, cost_ms=cost, site=first.node.operator.site,
        watermarks=(Watermark(first.mark.delay, first.mark.column),), parts=tuple(parts),
        state_kb=sum(one.node.operator.state_kb for one in group),
    )  # fmt: skip
    return _as_rates_are(deployment, whole, group)


def _as_rates_are(deployment: Deployment, whole: Operator, group: list[Member]) -> Operator:
    """The operator of all with the selectivities that keep the planned rates, where any was declared."""
    if all(member.node.operator.selectivity is None for member in group):
        return whole
    per_s = ideal_rates(deployment).per_s
    given = [per_s[member.node.stream] for member in group]
    most, into = max(given), per_s[group[0].over]
    parts = tuple(
        replace(part, selectivity=rate / most if most else 1.0) for part, rate in zip(whole.parts, given, strict=True)
    )
    declared = max(member.node.operator.selectivity or 0.0 for member in group)
    return replace(whole, selectivity=most / into if into else declared, parts=parts)


def _both(one: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    found = [held for held in (one, other) if held is not None]
    return exp.and_(*found) if found else None


def _measured(measure: Measure, condition: exp.Expr | None) -> str:
    """A measure of the records that a condition keeps; Spark may work an argument out before it asks a FILTER."""
    asked = _both(condition, measure.where)
    if not measure.protected or asked is None:
        return _sql(measure.call) + _filter(asked)
    guarded = measure.call.copy()
    guarded.set("this", exp.Case(ifs=[exp.If(this=asked.copy(), true=guarded.this.copy())]))
    return _sql(guarded)


def _filter(condition: exp.Expr | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {_sql(condition)})"


def _division(held: Grouped, keys: Mapping[str, str], names: list[str]) -> str:
    """What a query shows of the stream of all: the groups in which it has records, as its aggregate would."""
    own = list(held.keys)

    def put(node: exp.Expr) -> exp.Expr:
        what, _, number = node.name.partition(" ") if isinstance(node, exp.Column) else ("", "", "")
        if not number:
            return node
        name = keys[own[int(number)]] if what == "key" else names[1 + int(number)]
        return exp.column(exp.to_identifier(name, quoted=True))

    shown = [f"{_sql(one.transform(put))} AS {_name(name)}" for name, one in held.shown]
    asked = [f"`{names[0]}` > 0", *([] if held.having is None else [f"({_sql(held.having.transform(put))})"])]
    return f"SELECT {', '.join(shown)} FROM {HERE} WHERE {' AND '.join(asked)}"


def _name(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="spark")


def _sql(node: exp.Expr) -> str:
    return str(node.sql(dialect="spark"))
