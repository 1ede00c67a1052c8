"""Is it one SELECT of Spark SQL? Parsing, and the small words the other files use to speak about a statement."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from weft.spec.as_written import note_calls
from weft.spec.problems import brief

DEPTH_MAX = 1000
WINDOWS = ("window", "session_window")
# Aggregates of Spark that sqlglot has no class for.
_MORE_AGGREGATES = frozenset(
    """
    any_value approx_count_distinct approx_percentile bit_and bit_or bit_xor bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count_min_sketch covar_pop covar_samp every first_value grouping
    grouping_id histogram_numeric hll_sketch_agg hll_union_agg kurtosis last_value listagg max_by mean median min_by
    mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std string_agg try_avg try_sum
    """.split()  # noqa: SIM905 (a table reads better than seventy quoted words)
)


class SqlError(ValueError):
    """A text that is not one SELECT; `line` counts from 1 within the text."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def parsed(sql: str) -> exp.Query:
    """The statement's tree, shared: copy it before changing it; SqlError where there is none."""
    outcome = _outcome(sql)
    if isinstance(outcome, SqlError):
        raise SqlError(str(outcome), outcome.line)
    return outcome


@lru_cache(maxsize=2048)
def _outcome(sql: str) -> exp.Query | SqlError:
    """The tree or the error, either kept: a long text takes long to refuse, too."""
    try:
        return _parse(sql)
    except SqlError as error:
        return error


def _parse(sql: str) -> exp.Query:
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        trees = [tree for tree in _trees(sql) if tree is not None and not isinstance(tree, exp.Semicolon)]
    except ParseError as error:
        raise _parse_error(error) from None
    except TokenError:
        raise SqlError("is not Spark SQL: a quote, backtick or comment is not closed") from None
    except SqlglotError as error:
        raise SqlError(f"is not Spark SQL: {brief(error)}") from None
    except RecursionError:
        raise SqlError("is nested too deep to be read; split it into several operators") from None
    finally:
        logger.disabled = before
    if not trees:
        raise SqlError("holds no statement; write one SELECT")
    if len(trees) > 1:
        raise SqlError(f"holds {len(trees)} statements; write one SELECT")
    tree = trees[0]
    if _depth(tree) > DEPTH_MAX:
        raise SqlError("is nested too deep to be read; split it into several operators")
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Values):
        raise SqlError(f"must be one SELECT (WITH and UNION ALL are fine), found `{brief(sql)}`")
    return tree


def _depth(tree: exp.Expr) -> int:
    """How deep a tree is; looking up from each node of a very deep one would take for ever."""
    deepest, todo = 0, [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        todo += [(inner, depth + 1) for inner in node.iter_expressions()]
    return deepest


def _trees(sql: str) -> list[exp.Expr | None]:
    dialect = Dialect.get_or_raise("spark")
    tokens = dialect.tokenize(sql)
    for index, token in enumerate(tokens):
        # sqlglot takes `window` right after GROUP BY for the clause WINDOW w AS (...); in Spark it is a function.
        clause = index + 2 < len(tokens) and tokens[index + 2].token_type == TokenType.ALIAS
        if token.token_type == TokenType.WINDOW and not clause:
            token.token_type = TokenType.VAR
    trees = list(dialect.parser().parse(tokens, sql))
    if len(trees) == 1 and trees[0] is not None:
        note_calls(trees[0], tokens)
    return trees


def without_distinct(sql: str) -> str | None:
    """The statement with the DISTINCT of its own SELECT cut out, None where it has none."""
    tree = unwrapped(parsed(sql))
    if not isinstance(tree, exp.Select) or not tree.args.get("distinct"):
        return None
    depth = 0
    found: list[tuple[int, int, int]] = []
    before = None
    for token in Dialect.get_or_raise("spark").tokenize(sql):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.DISTINCT and before == TokenType.SELECT:
            found.append((depth, token.start, token.end))
        before = token.token_type
    # The statement's own SELECT stands less deep in brackets than those within it.
    _, start, end = min(found)
    return sql[:start] + sql[end + 1 :]


def with_own_reads(sql: str, inputs: Sequence[str]) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The statement with a name of its own for every further time that it reads a stream, and the names by stream."""
    names: dict[str, tuple[str, ...]] = {}
    changes: list[tuple[int, int, str]] = []
    for stream in inputs:
        found = [table for table in _tables(parsed(sql)) if table.name.lower() == stream.lower()]
        names[stream] = (stream, *(f"{stream}__{number}" for number in range(2, len(found) + 1)))
        for table, name in zip(found[1:], names[stream][1:], strict=True):
            alias = "" if table.alias else f" AS `{table.name}`"
            changes.append((table.this.meta["start"], table.this.meta["end"], f"`{name}`{alias}"))
    for start, end, text in sorted(changes, reverse=True):
        sql = sql[:start] + text + sql[end + 1 :]
    return sql, names


def same_but_filter(one: str, other: str) -> bool:
    """True if two statements differ in their outermost WHERE alone, so that their columns are the same."""
    try:
        trees = [parsed(sql).copy() for sql in (one, other)]
    except SqlError:
        return False
    for tree in trees:
        if not isinstance(tree, exp.Select):
            return False
        tree.set("where", None)
    return trees[0] == trees[1]


def with_reads_from(sql: str, instead: Mapping[str, str]) -> str:
    """The statement reading other streams, which it goes on to call by the old names."""
    by_name = {old.lower(): new for old, new in instead.items()}
    for table in reversed(_tables(parsed(sql))):
        new = by_name.get(table.name.lower())
        if new is not None:
            alias = "" if table.alias else f" AS `{table.name}`"
            start, end = table.this.meta["start"], table.this.meta["end"]
            sql = f"{sql[:start]}`{new}`{alias}{sql[end + 1 :]}"
    return sql


def _tables(tree: exp.Query) -> list[exp.Table]:
    """The tables that are read, without the names of CTEs, in the order written."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier) and not table.db]
    plain = [table for table in found if table.name.lower() not in ctes or _is_within(table)]
    return sorted(plain, key=lambda table: int(table.this.meta.get("start", 0)))


def _is_within(table: exp.Table) -> bool:
    """Whether a table stands in the CTE of its own name, where that name means the stream."""
    cte = table.find_ancestor(exp.CTE)
    return cte is not None and str(cte.alias).lower() == table.name.lower()


def _parse_error(error: ParseError) -> SqlError:
    said: dict[str, Any] = error.errors[0] if error.errors else {}
    what = str(said.get("description", error))
    near = str(said.get("highlight", ""))
    before = " ".join(str(said.get("start_context", "")).split())
    after = f" after `{brief(before[-40:])}`" if before else ""
    if what.startswith("Required keyword") or "Expected" in what:
        message = f"something is missing at `{near}`{after}"
    elif what.startswith("Expecting"):
        message = f"`{what.removeprefix('Expecting ')}` is expected where `{near}` stands{after}"
    elif "Unexpected token" in what:
        message = f"`{near}` is not expected{after}"
    else:
        message = brief(re.sub(r"<[^>]*>", "", what)) + (f" at `{near}`" if near else "")
    return SqlError(f"is not Spark SQL: {message}", int(said.get("line") or 1))


def unwrapped(query: exp.Expr) -> exp.Expr:
    """A query without the brackets around it."""
    while isinstance(query, (exp.Subquery, exp.Paren)) and not query.args.get("alias"):
        query = query.this
    return query


def local(select: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of one SELECT, without those of the queries inside it."""
    return (
        node
        for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query))
        if node is not select
    )


def selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """Every SELECT of a statement."""
    return tree.find_all(exp.Select)


def call_name(node: exp.Expr) -> str:
    """The lower-case name of a function that sqlglot has no class for, else nothing."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def is_window_call(node: exp.Expr) -> bool:
    """Whether a node is `window(...)` or `session_window(...)`."""
    return call_name(node) in WINDOWS


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node makes one value of many records, and is no OVER window."""
    if not isinstance(node, exp.AggFunc) and call_name(node) not in _MORE_AGGREGATES:
        return False
    over = node.find_ancestor(exp.Window, exp.Query)
    return not isinstance(over, exp.Window)


def aggregates(select: exp.Select) -> bool:
    """Whether a SELECT groups, or makes one record of all."""
    return select.args.get("group") is not None or any(is_aggregate_call(node) for node in local(select))


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """What a SELECT groups by, positions and aliases replaced by what they stand for."""
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        return [one.unalias() for one in select.selects if not any(is_aggregate_call(node) for node in one.walk())]
    by_alias = {one.alias.lower(): one.unalias() for one in select.selects if isinstance(one, exp.Alias)}
    keys = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and not key.is_string and key.this.isdigit():
            position = int(key.this) - 1
            keys.append(select.selects[position].unalias() if position < len(select.selects) else key)
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in by_alias:
            keys.append(by_alias[key.name.lower()])
        else:
            keys.append(key)
    return keys


def implicit_windows(select: exp.Select) -> set[str]:
    """The names Spark gives to windows that a SELECT makes without an alias (`window.start`)."""
    return {call_name(node) for node in local(select) if is_window_call(node)}


def spark_name(projection: exp.Expr) -> str | None:
    """The output name Spark gives an expression, None where that is not sure."""
    node = projection
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return str(node.name)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return str(node.expression.name)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column):
        return str(node.this.name)
    if call_name(node) in (*WINDOWS, "window_time"):
        return call_name(node)
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count(1)"
    if isinstance(node, (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)):
        inner = node.this
        if isinstance(inner, exp.Column) and not node.expressions:
            return f"{node.key}({inner.name})"
    return None
