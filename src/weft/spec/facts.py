"""What does an operator do to its records? Pure functions of its SQL; a `call` says it itself."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from weft.model import Operator
from weft.spec.sql import (
    SqlError,
    aggregates,
    call_name,
    group_keys,
    is_window_call,
    local,
    parsed,
    selects,
    spark_name,
    unwrapped,
)

_MULTIPLIERS = (exp.UDTF, exp.Explode, exp.Inline, exp.Stack)
TEXTS_KEPT = 2048  # of which it is remembered what they do: runs and planners ask again and again
_BY_CHANCE = ("rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id")


def is_stateful(operator: Operator) -> bool:
    """Whether the operator keeps state between records."""
    if operator.sql is None:
        if operator.stateful is not None:
            return operator.stateful
        return bool(operator.watermarks) or operator.state_kb > 0
    keeps = _keeps_state(operator.sql)
    return bool(operator.stateful) if keeps is None else keeps


@lru_cache(maxsize=TEXTS_KEPT)
def _keeps_state(sql: str) -> bool | None:
    """Whether a statement keeps state between records; None where it is none."""
    tree = _statement(sql)
    if tree is None:
        return None
    if any(not _is_union_all(one) for one in tree.find_all(exp.SetOperation)):
        return True
    return any(tree.find_all(exp.Pivot)) or any(_keeps(select) for select in selects(tree))


def is_ordering(operator: Operator) -> bool:
    """Whether an operator only puts records in order, and hands all of them on as they are."""
    return operator.order is not None and operator.sql is None and operator.call is None


def changes_count(operator: Operator) -> bool:
    """Whether the operator may give another number of records than it takes."""
    tree = _tree(operator)
    if tree is None or any(tree.find_all(exp.SetOperation, exp.Pivot, exp.TableSample)):
        return True
    return any(_changes(select) for select in selects(tree))


def only_filters(operator: Operator) -> bool:
    """Whether each record in gives at most one out, and those that do not were filtered; of functions it is not known.

    Ordering hands all records on; those that come too late it puts aside.
    """
    return is_ordering(operator) or (operator.sql is not None and _gives_one_at_most(operator.sql))


@lru_cache(maxsize=TEXTS_KEPT)
def _gives_one_at_most(sql: str) -> bool:
    """Whether a statement gives at most one record for each, and keeps no state."""
    tree = _statement(sql)
    if tree is None or _keeps_state(sql) or any(tree.find_all(exp.Pivot, exp.TableSample)):
        return False
    reads = [table.name.lower() for table in tree.find_all(exp.Table)]
    return len(reads) == len(set(reads)) and not any(_multiplies(select) for select in selects(tree))


def _multiplies(select: exp.Select) -> bool:
    if any(select.args.get(word) for word in ("joins", "laterals", "limit", "offset")):
        return True
    return any(
        isinstance(node, _MULTIPLIERS) or is_window_call(node) or "explode" in call_name(node)
        for node in local(select)
        if not isinstance(node, exp.Query)
    )


_EXPANDING = ("explode", "inline", "stack", "json_tuple")


def expands_records(select: exp.Select) -> bool:
    """Whether a SELECT's own expressions may give several records for one: a window that slides does, and explode."""
    return any(
        isinstance(node, _MULTIPLIERS)
        or is_window_call(node)
        or any(word in _function_name(node) for word in _EXPANDING)
        for node in local(select)
    )


def _function_name(node: exp.Expr) -> str:
    return node.sql_name().lower() if isinstance(node, exp.Func) else call_name(node)


@lru_cache(maxsize=TEXTS_KEPT)
def names_asked(sql: str) -> tuple[frozenset[str], bool] | None:
    """All names that a statement says, in lower case, and whether it hands on whole records; None: it may ask all.

    Whole records are handed on by `SELECT *` alone, over one stream.
    """
    tree = _statement(sql)
    if tree is None or any(tree.find_all(exp.Pivot)):
        return None
    stars = [one for one in tree.find_all(exp.Star) if not isinstance(one.parent, exp.Count)]
    select = unwrapped(tree)
    whole = isinstance(select, exp.Select) and len(select.selects) == 1 and select.selects[0] in stars
    if (stars and not whole) or len(stars) > 1 or any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return None
    if whole and (not _gives_one_at_most(sql) or len(list(tree.find_all(exp.Query))) > 1 or _more_than_star(stars[0])):
        return None
    return frozenset(one.name.lower() for one in tree.find_all(exp.Identifier)), whole


def _more_than_star(star: exp.Expr) -> bool:
    return any(held not in (None, False, []) for held in star.args.values())


def sole_filter(operator: Operator) -> str | None:
    """The condition over its input's columns by which alone the operator changes how many records there are."""
    tree = _tree(operator)
    select = None if tree is None else unwrapped(tree)
    if not isinstance(select, exp.Select) or select.args.get("where") is None or select.args.get("with_"):
        return None
    origin = select.args["from_"].this
    rest = select.copy()
    rest.set("where", None)
    if not isinstance(origin, exp.Table) or _changes(rest):
        return None
    condition = select.args["where"].this.copy()
    if any(isinstance(node, exp.Query) or _is_by_chance(node) for node in condition.walk()):
        return None
    for column in condition.find_all(exp.Column):
        if column.table.lower() == origin.alias_or_name.lower():
            column.set("table", None)
    return str(condition.sql(dialect="spark"))


def _is_by_chance(node: exp.Expr) -> bool:
    """Whether asking twice may give two answers."""
    known = node.sql_name().lower() if isinstance(node, exp.Func) else ""
    return known in _BY_CHANCE or call_name(node) in _BY_CHANCE


AGGREGATE, DISTINCT, JOIN, OTHER = "aggregate", "distinct", "join", "other"


def gathers(operator: Operator) -> bool:
    """Whether results wait until the watermark has passed them, as those of an aggregate do in append mode."""
    return operator.sql is not None and _kind_of_state(operator.sql) == AGGREGATE and bool(_keys_of(operator.sql))


def kind_of_state(operator: Operator) -> str:
    """What an operator that keeps state does with it: it aggregates, drops what came before, joins, or else."""
    return OTHER if operator.sql is None else _kind_of_state(operator.sql)


@lru_cache(maxsize=TEXTS_KEPT)
def _kind_of_state(sql: str) -> str:
    tree = _statement(sql)
    inner = [] if tree is None else list(selects(tree))
    if any(aggregates(select) for select in inner):
        return AGGREGATE
    if any(stream_joins(select) or asked_within(select) for select in inner):
        return JOIN
    return DISTINCT if any(select.args.get("distinct") for select in inner) else OTHER


def keys_of(operator: Operator) -> tuple[str, ...]:
    """The output columns that are an aggregation's grouping key, () where that is not known."""
    return () if operator.sql is None else _keys_of(operator.sql)


@lru_cache(maxsize=TEXTS_KEPT)
def _keys_of(sql: str) -> tuple[str, ...]:
    tree = _statement(sql)
    return () if tree is None else _keys(unwrapped(tree), _ctes(tree))


def window_column_of(operator: Operator) -> str | None:
    """The output column that holds the time window the operator makes, None where it makes none."""
    tree = _tree(operator)
    return None if tree is None else _window_column(unwrapped(tree), _ctes(tree))


def stream_joins(select: exp.Select) -> list[exp.Join]:
    """The joins of a SELECT that join a stream to a stream."""
    origin = select.args.get("from_")
    found = [] if origin is None or not _touches(origin.this) else [origin.this]
    joins = []
    for join in select.args.get("joins") or ():
        if _touches(join.this):
            if found:
                joins.append(join)
            found.append(join.this)
    return joins


def shared_ctes(tree: exp.Expr) -> list[str]:
    """The CTEs over streams that a statement reads more than once."""
    out = []
    for cte in tree.find_all(exp.CTE):
        reads = [table for table in tree.find_all(exp.Table) if table.name.lower() == cte.alias.lower()]
        outside = [table for table in reads if table.find_ancestor(exp.CTE) is not cte]
        if len(outside) > 1 and _touches(cte.this):
            out.append(str(cte.alias))
    return out


def asked_within(select: exp.Select) -> list[exp.Query]:
    """The queries over streams within WHERE or SELECT: joins in other words."""
    inner = [node for node in local(select) if isinstance(node, exp.Query) and _touches(node)]
    return [node for node in inner if not isinstance(node.parent, (exp.From, exp.Join, exp.CTE, exp.Lateral))]


def _tree(operator: Operator) -> exp.Query | None:
    return None if operator.sql is None else _statement(operator.sql)


def _statement(sql: str) -> exp.Query | None:
    try:
        return parsed(sql)
    except SqlError:
        return None


def _is_union_all(node: exp.SetOperation) -> bool:
    return isinstance(node, exp.Union) and not node.args.get("distinct")


def _keeps(select: exp.Select) -> bool:
    if select.args.get("distinct") or aggregates(select) or stream_joins(select):
        return True
    if any(isinstance(node, exp.Window) for node in local(select)):
        return True
    return bool(asked_within(select))


def _touches(node: exp.Expr) -> bool:
    """Whether records of a stream come out of a part of FROM."""
    if isinstance(node, exp.Lateral):
        return isinstance(node.this, exp.Query) and _touches(node.this)
    return any(isinstance(table.this, exp.Identifier) for table in node.find_all(exp.Table))


def _changes(select: exp.Select) -> bool:
    words = ("where", "limit", "offset", "distinct", "joins", "group", "having", "laterals", "qualify", "sample")
    if any(select.args.get(word) for word in words) or select.args.get("from_") is None or aggregates(select):
        return True
    return any(
        isinstance(node, _MULTIPLIERS) or is_window_call(node) or "explode" in call_name(node)
        for node in local(select)
        if not isinstance(node, exp.Query)
    )


Ctes = dict[str, exp.Expr]


def _ctes(tree: exp.Expr) -> Ctes:
    return {cte.alias.lower(): unwrapped(cte.this) for cte in tree.find_all(exp.CTE)}


def _only_source(select: exp.Select, ctes: Ctes) -> exp.Expr | None:
    """The query that a SELECT reads, where it reads just one and that is no stream."""
    origin = select.args.get("from_")
    if origin is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    node = origin.this
    if isinstance(node, exp.Subquery):
        return unwrapped(node.this)
    inner = ctes.get(node.name.lower()) if isinstance(node, exp.Table) else None
    return None if inner is None or inner.find_ancestor(exp.CTE) is select.find_ancestor(exp.CTE) is not None else inner


def _renamed(select: exp.Select, names: tuple[str, ...]) -> tuple[str, ...]:
    """The output names of columns that a SELECT hands on, () where one of them is lost."""
    out = []
    for name in names:
        given = [
            spark_name(one) if not one.is_star else name
            for one in select.selects
            if one.is_star or (isinstance(one.unalias(), exp.Column) and one.unalias().name.lower() == name.lower())
        ]
        if not given or given[0] is None:
            return ()
        out.append(given[0])
    return tuple(out)


def _keys(query: exp.Expr, ctes: Ctes, depth: int = 0) -> tuple[str, ...]:
    if not isinstance(query, exp.Select) or depth > 20:
        return ()
    names = [spark_name(one) for one in query.selects]
    group = query.args.get("group")
    if group is not None:
        if any(group.args.get(word) for word in ("cube", "rollup", "grouping_sets", "totals")):
            return ()
        keys = [_output_of(key, query, names) for key in group_keys(query)]
        return () if None in keys else tuple(key for key in keys if key is not None)
    if query.args.get("distinct"):
        return tuple(name for name in names if name is not None) if None not in names else ()
    inner = None if aggregates(query) else _only_source(query, ctes)
    return () if inner is None else _renamed(query, _keys(inner, ctes, depth + 1))


def _output_of(key: exp.Expr, select: exp.Select, names: list[str | None]) -> str | None:
    """The output column that shows a grouping key; the start or end of a window stands for the window."""
    for one, name in zip(select.selects, names, strict=True):
        shown = one.unalias()
        if shown == key or (isinstance(shown, exp.Column) and isinstance(key, exp.Column) and shown.name == key.name):
            return name
        if is_window_call(key) and isinstance(shown, exp.Column):
            if shown.name.lower() == call_name(key) and not shown.table:
                return name
            if shown.table.lower() == call_name(key) and shown.name.lower() in ("start", "end"):
                return name
        if isinstance(shown, exp.Dot) and shown.this == key:
            return name
    return None


def _window_column(query: exp.Expr, ctes: Ctes, depth: int = 0) -> str | None:
    if not isinstance(query, exp.Select) or depth > 20:
        return None
    made = {call_name(node) for node in local(query) if is_window_call(node)}
    for one in query.selects:
        shown = one.unalias()
        if is_window_call(shown):
            return spark_name(one)
        if isinstance(shown, exp.Column) and not shown.table and shown.name.lower() in made:
            return spark_name(one)
    inner = _only_source(query, ctes)
    name = None if inner is None else _window_column(inner, ctes, depth + 1)
    renamed = () if name is None else _renamed(query, (name,))
    return renamed[0] if renamed else None
