"""Which expressions are other words for plainer ones? Each is given as what it says, so that both are spelled alike.

Only what is the same in Spark, whatever the types and the nulls are. Trees are shared: nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from weft.spec.as_written import NOTE
from weft.spec.sql import call_name

# Functions of one argument that have several names, or that the parser has several nodes for.
_NAMES = {
    **dict.fromkeys(("std", "stddev", "stddev_samp"), "stddev_samp"),
    **dict.fromkeys(("variance", "var_samp"), "var_samp"),
    **dict.fromkeys(("every", "bool_and"), "bool_and"), **dict.fromkeys(("some", "bool_or"), "bool_or"),
    **dict.fromkeys(("day", "dayofmonth"), "dayofmonth"),
    **{name: name for name in ("year", "quarter", "month", "weekofyear", "dayofweek", "dayofyear", "hour", "minute")},
}  # fmt: skip
_PARTS = {
    "year": ("y", "years", "yr", "yrs"), "quarter": ("qtr",), "month": ("mon", "mons", "months"),
    "weekofyear": ("week", "w", "weeks"), "dayofmonth": ("day", "d", "days"), "dayofweek": ("dow",),
    "dayofyear": ("doy",), "hour": ("h", "hours", "hr", "hrs"), "minute": ("m", "min", "mins", "minutes"),
}  # fmt: skip
_FUNCTION_OF = {word: name for name, words in _PARTS.items() for word in (*words, name) if word != "dayofmonth"}
_FUNCTION_OF.pop("weekofyear")
"""What EXTRACT takes out of a moment, by the function that does so; not the second, which has a fraction there."""
_CASTS = frozenset("boolean tinyint smallint int bigint float double decimal date timestamp string binary".split())  # noqa: SIM905


def plainer(node: exp.Expr) -> exp.Expr:
    """An expression in plainer words; itself where there are none."""
    while True:
        if node.args.get("negate"):
            found = node.copy()
            found.set("negate", None)
            return exp.Not(this=found)
        how = _PLAINER.get(type(node), _by_name)
        plain = how(node)
        if plain is node:
            return node
        node = plain


def _by_name(node: exp.Expr) -> exp.Expr:
    """A function of one argument by the first of its names; a cast by the name of a type; NULL asked by a function."""
    note = node.meta.get(NOTE)
    name = call_name(node) or (note.split(" ")[0] if isinstance(note, str) else "")
    if name in ("date_part", "datepart") and len(node.expressions) == 2 and node.expressions[0].is_string:
        return _part(node, node.expressions[0].name, node.expressions[1])
    if name not in _NAMES and name not in _CASTS and name not in ("isnull", "isnotnull", "to_date"):
        return node
    arg = _only_argument(node)
    if arg is None or (call_name(node) == _NAMES.get(name) and note is None):
        return node
    if name in ("isnull", "isnotnull"):
        asked = exp.Is(this=arg.copy(), expression=exp.Null())
        return asked if name == "isnull" else exp.Not(this=asked)
    if name in _NAMES:
        return _called(_NAMES[name], arg)
    if name == "to_date" and note != "to_date":
        return node
    return exp.Cast(this=arg.copy(), to=exp.DataType.build("date" if name == "to_date" else name, dialect="spark"))


def _only_argument(node: exp.Expr) -> exp.Expr | None:
    """What a function is called with, if that is one thing."""
    held = [one for key in ("this", "expression", "expressions") for one in _listed(node.args.get(key))]
    found = [one for one in held if isinstance(one, exp.Expr)]
    more = {key for key, one in node.args.items() if one not in (None, False, [])}
    if len(found) != 1 or more - {"this", "expressions", "safe", "to"}:
        return None
    arg = found[0]
    return arg.this if isinstance(arg, exp.TsOrDsToDate) and NOTE not in arg.meta else arg  # the parser's own


def _listed(held: object) -> list[object]:
    return held if isinstance(held, list) else [held]


def _called(name: str, arg: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[arg.copy()])


def _part(node: exp.Expr, part: str, of: exp.Expr) -> exp.Expr:
    name = _FUNCTION_OF.get(part.lower())
    return node if name is None else _called(name, of)


def _extract(node: exp.Expr) -> exp.Expr:
    return _part(node, node.name, node.expression)


def _cast(node: exp.Expr) -> exp.Expr:
    """DECIMAL alone has ten digits; a note says that a type's name was called."""
    to = node.args["to"]
    if to.this == exp.DType.DECIMAL and not to.expressions:
        found = node.copy()
        found.set("to", exp.DataType.build("DECIMAL(10, 0)", dialect="spark"))
        return found
    return _by_name(node) if NOTE in node.meta else node


def _nullif(node: exp.Expr) -> exp.Expr:
    same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
    return exp.Case(ifs=[exp.If(this=same, true=exp.Null())], default=node.this.copy())


def _nvl2(node: exp.Expr) -> exp.Expr:
    if node.args.get("false") is None:
        return node
    there = exp.Not(this=exp.Is(this=node.this.copy(), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=there, true=node.args["true"].copy())], default=node.args["false"].copy())


def _unlike(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy()))


def _piped(node: exp.Expr) -> exp.Expr:
    parts: list[exp.Expr] = []
    left = node
    while isinstance(left, exp.DPipe):
        parts.insert(0, left.expression.copy())
        left = left.this
    return exp.Concat(expressions=[left.copy(), *parts], safe=True, coalesce=False)


def _count_if(node: exp.Expr) -> exp.Expr:
    return _filtered(exp.Count(this=exp.Star()), node.this)


def _measured(node: exp.Expr) -> exp.Expr:
    """`sum(CASE WHEN c THEN x END)` asks of the same records as a FILTER: an aggregate leaves out nulls."""
    case = node.this
    while isinstance(case, exp.Paren):
        case = case.this
    if set(_said(node)) - {"this", "big_int"} or not isinstance(case, (exp.Case, exp.If)):
        return node
    ifs = case.args.get("ifs") or [] if isinstance(case, exp.Case) else [case]
    rest = case.args.get("default" if isinstance(case, exp.Case) else "false")
    if len(ifs) != 1 or not (rest is None or isinstance(rest, exp.Null)):
        return node
    if isinstance(case, exp.Case) and case.this is not None:
        return node
    then = ifs[0].args["true"]
    if isinstance(node, exp.Count):
        if not isinstance(then, exp.Literal):
            return _filtered(exp.Count(this=then.copy()), ifs[0].this)
        return _filtered(exp.Count(this=exp.Star()), ifs[0].this)
    return _filtered(type(node)(this=then.copy()), ifs[0].this)


def _said(node: exp.Expr) -> list[str]:
    return [key for key, held in node.args.items() if held not in (None, False, [])]


def _filtered(measure: exp.Expr, condition: exp.Expr) -> exp.Expr:
    return exp.Filter(this=measure, expression=exp.Where(this=condition.copy()))


_PLAINER: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Extract: _extract, exp.Cast: _cast, exp.TryCast: _cast, exp.Nullif: _nullif, exp.Nvl2: _nvl2,
    exp.NullSafeNEQ: _unlike, exp.DPipe: _piped, exp.CountIf: _count_if, exp.Sum: _measured, exp.Avg: _measured,
    exp.Min: _measured, exp.Max: _measured, exp.Count: _measured,
}  # fmt: skip
