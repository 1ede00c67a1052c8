"""Which columns does a DDL text declare? `ts TIMESTAMP, meter STRING`, as Spark reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from weft.model import Column
from weft.spec.problems import Problems, brief, did_you_mean
from weft.spec.shapes import TEXT_CHARS_MAX, Text
from weft.spec.tree import Node

WINDOW_TYPE = "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"
TYPES = (
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "DATE",
    "DOUBLE",
    "FLOAT",
    "BIGINT",
    "LONG",
    "INT",
    "INTEGER",
    "SMALLINT",
    "TINYINT",
    "BOOLEAN",
    "DECIMAL(10,2)",
    "BINARY",
    "ARRAY<...>",
    "MAP<...>",
    "STRUCT<...>",
)


class DdlError(ValueError):
    """A text that declares no columns."""


def ddl(text: str) -> tuple[Column, ...]:
    """The columns a DDL text declares; DdlError says what is wrong with it."""
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_CHARS_MAX:
        raise DdlError(f"must be DDL such as `ts TIMESTAMP, meter STRING`, found `{brief(text)}`")
    defined = _definitions(text)
    columns: list[Column] = []
    for one in defined:
        kind = one.args.get("kind") if isinstance(one, exp.ColumnDef) else None
        if kind is None:
            name = one.name or one.sql("spark")
            raise DdlError(f"the column `{brief(name)}` has no type; write for example `{brief(name)} STRING`")
        if any(column.name.lower() == one.name.lower() for column in columns):
            raise DdlError(f"the column `{one.name}` stands twice; Spark does not tell case apart")
        columns.append(Column(one.name, kind.sql("spark")))
    return tuple(columns)


def _definitions(text: str) -> list[exp.Expr]:
    try:
        # Inside a struct `a: INT` and `a INT` are both right, but NOT NULL and COMMENT are so only in a table.
        for sql in (f"CREATE TABLE t ({text}\n)", f"CAST(x AS STRUCT<{text}\n>)"):
            try:
                tree = sqlglot.parse_one(sql, dialect="spark")
            except SqlglotError:
                continue
            holder = tree.this if isinstance(tree, exp.Create) else tree.args.get("to")
            defined = list(holder.expressions) if isinstance(holder, (exp.Schema, exp.DataType)) else []
            if defined and all(isinstance(one, exp.ColumnDef) and one.args.get("kind") for one in defined):
                return defined
    except RecursionError:
        raise DdlError("is nested too deep to be read") from None
    raise DdlError(_reason(text))


def _reason(text: str) -> str:
    """Says which part of a DDL text is wrong, by trying its columns one by one."""
    for part in _parts(text):
        words = part.split(None, 1)
        if not words:
            return "an empty column between two commas; leave one comma out"
        if len(words) == 1:
            return f"the column `{brief(words[0])}` has no type; write for example `{brief(words[0])} STRING`"
        try:
            tree = sqlglot.parse_one(f"CREATE TABLE t ({part}\n)", dialect="spark")
        except (SqlglotError, RecursionError):
            hint = did_you_mean(words[1], TYPES)
            return f"`{brief(part)}` is not a column and a type Spark knows, as `kwh DOUBLE`{hint}"
        if not isinstance(tree.this, exp.Schema):
            break
    return f"must be DDL such as `ts TIMESTAMP, meter STRING`, found `{brief(text)}`"


def _parts(text: str) -> list[str]:
    """The text cut at the commas that are in no bracket."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def ddl_of(columns: tuple[Column, ...]) -> str:
    """The DDL text of columns."""
    return ", ".join(f"`{column.name}` {column.type or ''}".strip() for column in columns)


def is_timestamp(type_: str | None) -> bool:
    """Whether Spark takes a column of that type for event time."""
    return type_ is not None and type_.upper().split("(")[0] in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")


def is_window(type_: str | None) -> bool:
    """Whether a type is that of `window(...)`."""
    return type_ is not None and type_.replace(" ", "").upper() == WINDOW_TYPE.replace(" ", "").upper()


@dataclass(frozen=True, slots=True)
class Ddl:
    """A DDL text, read into columns."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        before = len(problems.errors)
        text = Text("DDL such as `ts TIMESTAMP, meter STRING`").read(node, path, problems)
        if len(problems.errors) > before:
            return ()
        try:
            return ddl(text)
        except DdlError as error:
            problems.error(path, str(error), node.line)
            return ()

    def plain(self, value: Any) -> Any:
        if isinstance(value, tuple) and all(isinstance(column, Column) for column in value):
            return ddl_of(value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}
