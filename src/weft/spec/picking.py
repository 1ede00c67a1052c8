"""Does a statement only pick columns, of all records or of those where one column is above zero?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from weft.spec.sql import SqlError, parsed, unwrapped


@dataclass(frozen=True, slots=True)
class Picked:
    """The columns that are shown, each with the name it had, and the one that must be above zero, if any."""

    columns: tuple[tuple[str, str], ...]
    above_zero: str | None = None


@lru_cache(maxsize=2048)
def picked(sql: str) -> Picked | None:
    """What a statement picks; None where it does more."""
    try:
        tree = unwrapped(parsed(sql))
    except SqlError:
        return None
    if not isinstance(tree, exp.Select) or _more_than(tree, ("expressions", "from_", "where")):
        return None
    origin = tree.args["from_"].this if tree.args.get("from_") is not None else None
    if not isinstance(origin, exp.Table) or not isinstance(origin.this, exp.Identifier):
        return None
    shown = [(one.alias_or_name, _column(one.unalias())) for one in tree.selects]
    where = tree.args.get("where")
    positive = None if where is None else _above_zero(where.this)
    if any(read is None for _, read in shown) or (where is not None and positive is None):
        return None
    return Picked(tuple((name, read) for name, read in shown if read is not None), positive)


def _column(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Column) and len(node.parts) == 1 and not isinstance(node.this, exp.Star):
        return str(node.name)
    return None


def _above_zero(node: exp.Expr) -> str | None:
    above = isinstance(node, exp.GT) and isinstance(node.expression, exp.Literal) and node.expression.this == "0"
    return _column(node.this) if above and not node.expression.is_string else None


def _more_than(node: exp.Expr, known: tuple[str, ...]) -> bool:
    return any(held not in (None, False, []) and key not in known for key, held in node.args.items())
