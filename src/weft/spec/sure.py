"""Which expressions are known well enough to be asked of records that they were not written for?

Two things are told of an expression: of which kind its value is, and whether asking it may fail (a division by zero, a
sum that does not fit). Only what is listed here is known; Unclear is raised for all else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from weft.spec.spelling import Unclear
from weft.spec.sql import call_name

INTEGER, FLOATING, DECIMAL, TEXT, MOMENT, DAY, TRUTH, NOTHING, OTHER = (
    "integer", "floating", "decimal", "text", "moment", "day", "truth", "nothing", "other",
)  # fmt: skip
_KINDS = {
    "TINYINT": INTEGER, "SMALLINT": INTEGER, "INT": INTEGER, "INTEGER": INTEGER, "BIGINT": INTEGER, "LONG": INTEGER,
    "SHORT": INTEGER, "BYTE": INTEGER, "DOUBLE": FLOATING, "FLOAT": FLOATING, "REAL": FLOATING, "STRING": TEXT,
    "TIMESTAMP": MOMENT, "DATE": DAY, "BOOLEAN": TRUTH,
}  # fmt: skip
_NUMBERS = (INTEGER, FLOATING, DECIMAL)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?")
_WIDER = {"DOUBLE": (INTEGER, FLOATING, DECIMAL), "BIGINT": (INTEGER,), "STRING": (INTEGER, TEXT, DAY, TRUTH)}


@dataclass(frozen=True, slots=True)
class Known:
    """The kind of an expression's value, whether asking it may fail, and whether it is written out as a literal."""

    kind: str
    fails: bool = False
    literal: bool = False


def kind_of(type_: str | None) -> str:
    """The kind of a column by its type."""
    word = (type_ or "").strip().upper()
    return DECIMAL if word.startswith("DECIMAL") else _KINDS.get(word, OTHER)


def known(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    """What is known of an expression over columns (lower case) of these kinds; Unclear where that is not enough."""
    if isinstance(node, _COMPARISONS):
        return _compared(known(node.this, kinds), node.this, node.expression, kinds)
    how = _KNOWN.get(type(node))
    if how is None:
        raise Unclear(node.key)
    return how(node, kinds)


def never_fails(node: exp.Expr, kinds: Mapping[str, str], kind: str | None = None) -> bool:
    """Whether an expression can be asked of any record, and is of a kind, if one is named."""
    try:
        found = known(node, kinds)
    except Unclear:
        return False
    return not found.fails and kind in (None, found.kind)


def is_window(node: exp.Expr) -> bool:
    """Whether a node is a window over one moment, by lengths that are written out."""
    if call_name(node) != "window" or not 2 <= len(node.expressions) <= 4:
        return False
    first, *rest = node.expressions
    return isinstance(first, exp.Column) and all(isinstance(one, exp.Literal) and one.is_string for one in rest)


def _inner(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return known(node.this, kinds)


def _column(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    if not isinstance(node, exp.Column) or len(node.parts) > 1 or node.name.lower() not in kinds:
        raise Unclear("a column of nowhere")
    return Known(kinds[node.name.lower()])


def _literal(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    text = str(node.this)
    if node.is_string and "\\" not in text:
        return Known(TEXT, literal=True)
    if not node.is_string and re.fullmatch(r"\d{1,18}", text):
        return Known(INTEGER, literal=True)
    if not node.is_string and re.fullmatch(r"\d{1,9}\.\d{1,9}", text):
        return Known(DECIMAL, literal=True)
    raise Unclear("a literal")


def _boolean(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return Known(TRUTH, literal=True)


def _null(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return Known(NOTHING, literal=True)


def _minus(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held = known(node.this, kinds)
    return _number(held, held.fails or (held.kind == INTEGER and not held.literal))


def _joined(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return _truth(_asked(node.this, kinds), _asked(node.expression, kinds))


def _not(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return _truth(_asked(node.this, kinds))


def _is(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held, other = known(node.this, kinds), node.expression
    if not isinstance(other, exp.Null) and not (isinstance(other, exp.Boolean) and held.kind == TRUTH):
        raise Unclear("is")
    return _truth(held)


def _between(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    if node.args.get("symmetric"):
        raise Unclear("symmetric")
    value = known(node.this, kinds)
    return _truth(*(_compared(value, node.this, node.args[end], kinds) for end in ("low", "high")))


def _in(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    if _more_than(node, ("this", "expressions")):
        raise Unclear("in")
    value, others = known(node.this, kinds), [known(one, kinds) for one in node.expressions]
    # All of one kind: Spark brings what stands in IN to one type.
    if {one.kind for one in others} - {NOTHING, value.kind} or not all(one.literal for one in others):
        raise Unclear("in")
    return _truth(value)


def _like(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    parts = [known(one, kinds) for one in (node.this, node.expression)]
    if _more_than(node, ("this", "expression")) or any(one.kind != TEXT for one in parts) or not parts[1].literal:
        raise Unclear("like")
    return _truth(*parts)


def _absolute(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held = known(node.this, kinds)
    return _number(held, held.fails or held.kind == INTEGER)


def _of_text(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held = known(node.this, kinds)
    if held.kind != TEXT or _more_than(node, ("this",)):
        raise Unclear(node.key)
    return Known(INTEGER if isinstance(node, exp.Length) else TEXT, held.fails)


def _first_of(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    return _one_of([known(one, kinds) for one in (node.this, *node.expressions)])


def _more_than(node: exp.Expr, followed: Sequence[str]) -> bool:
    return any(held not in (None, False, []) and key not in followed for key, held in node.args.items())


def _truth(*parts: Known) -> Known:
    return Known(TRUTH, any(one.fails for one in parts))


def _asked(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held = known(node, kinds)
    if held.kind not in (TRUTH, NOTHING):
        raise Unclear("a condition")
    return held


def _number(held: Known, fails: bool) -> Known:
    if held.kind not in _NUMBERS:
        raise Unclear("a number")
    return Known(held.kind, fails, held.literal)


def _compared(left: Known, node: exp.Expr, other: exp.Expr, kinds: Mapping[str, str]) -> Known:
    """A comparison of one kind, of numbers, or of a moment with one that is written out."""
    right = known(other, kinds)
    pair = {left.kind, right.kind}
    written = [str(one.this) for one in (node, other) if isinstance(one, exp.Literal)]
    fits = (
        (len(pair) == 1 and OTHER not in pair)
        or NOTHING in pair
        # Two decimals are brought to a width that they may not fit into; a number that is written out is short.
        or (pair <= set(_NUMBERS) and (DECIMAL not in pair or left.literal or right.literal or FLOATING in pair))
        or (TEXT in pair and pair & {MOMENT, DAY} and len(written) == 1 and _MOMENT.fullmatch(written[0]) is not None)
    )
    if not fits or (pair == {DECIMAL} and not (left.literal or right.literal)):
        raise Unclear("a comparison")
    return _truth(left, right)


def _sum(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    left, right = known(node.this, kinds), known(node.expression, kinds)
    if left.kind not in _NUMBERS or right.kind not in _NUMBERS:
        raise Unclear("a sum")
    pair = {left.kind, right.kind}
    if FLOATING in pair:
        return Known(FLOATING, left.fails or right.fails)
    return Known(DECIMAL if DECIMAL in pair else INTEGER, True)  # it may not fit


def _divided(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    left, right = known(node.this, kinds), known(node.expression, kinds)
    if left.kind not in _NUMBERS or right.kind not in _NUMBERS:
        raise Unclear("a division")
    by = node.expression
    sure = right.kind == INTEGER and isinstance(by, exp.Literal) and int(by.this) > 0
    whole = left.kind == INTEGER and right.kind == INTEGER
    if isinstance(node, exp.Mod):
        kind = INTEGER if whole else FLOATING if FLOATING in (left.kind, right.kind) else DECIMAL
    else:
        kind = DECIMAL if DECIMAL in (left.kind, right.kind) and FLOATING not in (left.kind, right.kind) else FLOATING
    return Known(kind, left.fails or right.fails or not sure or kind == DECIMAL)


def _one_of(parts: list[Known]) -> Known:
    found = {one.kind for one in parts} - {NOTHING}
    if len(found) != 1 or OTHER in found or DECIMAL in found:
        raise Unclear("of several kinds")
    return Known(found.pop(), any(one.fails for one in parts))


def _case(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    whens = [node] if isinstance(node, exp.If) else node.args.get("ifs") or []
    if isinstance(node, exp.Case) and node.this is not None:
        raise Unclear("a case of values")
    asked = [_asked(one.this, kinds) for one in whens]
    default = node.args.get("false") if isinstance(node, exp.If) else node.args.get("default")
    values = [known(one.args["true"], kinds) for one in whens]
    held = _one_of([*values, *([] if default is None else [known(default, kinds)])])
    return Known(held.kind, held.fails or any(one.fails for one in asked))


def _cast(node: exp.Expr, kinds: Mapping[str, str]) -> Known:
    held = known(node.this, kinds)
    if _more_than(node, ("this", "to")):
        raise Unclear("a cast")
    to = node.args["to"].sql(dialect="spark").upper()
    kind = kind_of(to)
    if kind in (OTHER, DECIMAL):
        raise Unclear("a cast")
    return Known(kind, held.fails or held.kind not in _WIDER.get(to, ()))


_KNOWN: dict[type[exp.Expr], Callable[[exp.Expr, Mapping[str, str]], Known]] = {
    exp.Paren: _inner, exp.Column: _column, exp.Literal: _literal, exp.Boolean: _boolean, exp.Null: _null,
    exp.Neg: _minus, exp.And: _joined, exp.Or: _joined, exp.Not: _not, exp.Is: _is, exp.Between: _between, exp.In: _in,
    exp.Like: _like, exp.Add: _sum, exp.Sub: _sum, exp.Mul: _sum, exp.Div: _divided, exp.Mod: _divided,
    exp.Abs: _absolute, exp.Lower: _of_text, exp.Upper: _of_text, exp.Length: _of_text, exp.Coalesce: _first_of,
    exp.Case: _case, exp.If: _case, exp.Cast: _cast,
    exp.TryCast: _cast,
}  # fmt: skip
