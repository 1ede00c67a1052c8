"""Which columns does every stream have? From sources along the operators, types where they are sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from weft.model import Column, Deployment, Operator, Query
from weft.spec.ddl import WINDOW_TYPE, is_timestamp, is_window
from weft.spec.facts import is_ordering, window_column_of
from weft.spec.lineage import passes_through
from weft.spec.reads import after_what_they_read
from weft.spec.resolve import Found, resolve
from weft.spec.sql import SqlError, call_name, implicit_windows, is_window_call, parsed, selects

Columns = tuple[Column, ...] | None
DEPTH_MAX = 500
"""Operators in a row that an event time is followed through; a cycle has no end."""


@dataclass(frozen=True, slots=True)
class Followed:
    """An operator with its inputs' columns, its own, and what its SQL asks for (None where nothing can be followed)."""

    operator: Operator
    inputs: dict[str, Columns]
    columns: Columns
    found: Found | None


def columns(deployment: Deployment) -> dict[str, Columns]:
    """The output columns of every stream (`source`, or `query.operator`), None where they are not known."""
    out: dict[str, Columns] = {source.name: source.schema for source in deployment.sources}
    for at in after_what_they_read(deployment.queries):
        query = deployment.queries[at]
        for one in in_order(deployment, query, out):
            out[f"{query.name}.{one.operator.name}"] = one.columns
    return out


def in_order(deployment: Deployment, query: Query, others: Mapping[str, Columns]) -> Iterator[Followed]:
    """A query's operators, each after those it reads; those in a cycle come last. `others`: other queries' streams."""
    known: dict[str, Columns] = {source.name: source.schema or None for source in deployment.sources}
    known |= {name: others[name] for one in query.operators for name in one.from_ if "." in name and name in others}
    waiting = list(query.operators)
    names = {operator.name for operator in query.operators}
    while waiting:
        ready = [one for one in waiting if not any(name in names and name not in known for name in one.from_)]
        for operator in ready or waiting:
            inputs = {name: known.get(name) for name in operator.from_}
            columns, found = output_of(operator, inputs)
            known[operator.name] = columns
            yield Followed(operator, inputs, columns, found)
        waiting = [one for one in waiting if one not in ready] if ready else []


def output_of(operator: Operator, inputs: Mapping[str, Columns]) -> tuple[Columns, Found | None]:
    """An operator's output columns, and what its SQL asks for; None where there is no SQL to follow."""
    if is_ordering(operator):
        return inputs.get(operator.from_[0]), None
    if operator.sql is None:
        return operator.schema, None
    try:
        tree = parsed(operator.sql)
    except SqlError:
        return operator.schema, None
    names = {name: None if cols is None else tuple(col.name for col in cols) for name, cols in inputs.items()}
    try:
        found = resolve(tree, names)
    except RecursionError:
        return operator.schema, None
    if operator.schema is not None:
        return operator.schema, found
    if found.names is None or found.problems:
        return None, found
    types = _types(tree, found.names, inputs)
    return tuple(Column(name, types.get(name.lower())) for name in found.names), found


def event_time_of(
    deployment: Deployment, query: Query, name: str, known: Mapping[str, Columns], depth: int = 0
) -> str | None:
    """The event time of a stream where none is named: a window's column, or a source's, handed on unchanged."""
    source = next((one for one in deployment.sources if one.name == name), None)
    if source is not None:
        return source.event_time
    other, _, of_other = name.partition(".")
    if of_other:
        found = next((one for one in deployment.queries if one.name == other), None)
        return None if found is None else event_time_of(deployment, found, of_other, {}, depth + 1)
    operator = next((one for one in query.operators if one.name == name), None)
    if operator is None or not operator.from_ or depth > DEPTH_MAX:
        return None
    window = window_column_of(operator)
    if window is not None:
        return window
    above = event_time_of(deployment, query, operator.from_[0], known, depth + 1)
    if above is None:
        return None
    if is_ordering(operator):
        return above
    if operator.sql is None and operator.schema is None:
        return above  # what it gives is not told: Spark looks at it before anything runs
    if operator.sql is None:
        declared = {column.name.lower(): column.type for column in operator.schema or ()}
        type_ = declared.get(above.lower())
        return above if is_timestamp(type_) or is_window(type_) else None
    names = {one: None if cols is None else tuple(c.name for c in cols) for one, cols in known.items()}
    return above if passes_through(operator, operator.from_[0], above, names) else None


def _types(tree: exp.Expr, names: tuple[str, ...], inputs: Mapping[str, Columns]) -> dict[str, str]:
    """Types by lower-case column name, without those that are not sure."""
    tables: dict[str, object] = {
        name: {column.name: column.type or "UNKNOWN" for column in cols} for name, cols in inputs.items() if cols
    }
    try:
        schema = MappingSchema(tables, dialect="spark")
        typed = qualify(
            _with_window_types(tree),
            schema=schema,
            dialect="spark",
            validate_qualify_columns=False,
            quote_identifiers=False,
            isolate_tables=False,
        )
        annotated: Any = annotate_types(typed, schema=schema, dialect="spark")
        given = [(one, one.type.sql("spark") if one.type is not None else "") for one in annotated.selects]
    except Exception:
        # Types are a courtesy: whatever sqlglot stumbles over, the columns' names still hold.
        return {}
    if len(given) != len(names):
        return {}
    return {name.lower(): type_ for name, (one, type_) in zip(names, given, strict=True) if _is_sure(one, type_)}


def _is_sure(projection: exp.Expr, type_: str) -> bool:
    if not type_ or "UNKNOWN" in type_ or type_.startswith("NULL") or "INTERVAL" in type_:
        return False
    shown = projection.unalias()
    if isinstance(shown, (exp.Column, exp.Cast)):
        return True
    # Spark widens decimals as it computes, and many functions give another integer than sqlglot says.
    sums = (exp.Count, exp.Sum, exp.Min, exp.Max, exp.Literal, exp.Binary)
    return "DECIMAL" not in type_ and ("INT" not in type_ or isinstance(shown, sums))


def _with_window_types(tree: exp.Expr) -> exp.Expr:
    """A copy in which the windows have the type that sqlglot does not know."""
    tree = tree.copy()
    for select in selects(tree):
        made = implicit_windows(select)
        for column in list(select.find_all(exp.Column)):
            if column.name.lower() in made and not column.table and column.parent_select is select:
                column.replace(_typed(WINDOW_TYPE))
            elif column.table.lower() in made and column.name.lower() in ("start", "end"):
                named = isinstance(column.parent, exp.Select)
                typed = _typed("TIMESTAMP")
                column.replace(exp.alias_(typed, column.name) if named else typed)
    for call in list(tree.find_all(exp.Anonymous)):
        if is_window_call(call) or call_name(call) == "window_time":
            call.replace(_typed(WINDOW_TYPE if is_window_call(call) else "TIMESTAMP"))
    return tree


def _typed(type_: str) -> exp.Expr:
    return exp.cast(exp.null(), exp.DataType.build(type_, dialect="spark"))
