"""How is an expression spelled, so that equal ones are spelled alike? Only what is equal in Spark, nulls included."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from weft.spec.as_written import NOTE
from weft.spec.conditions import (
    FALSE,
    INT_MAX,
    OPPOSITE,
    TRUE,
    all_of,
    beside,
    cast,
    column,
    compared,
    is_null,
    is_one_type,
    opposite,
    parts_of,
    quoted,
    whole_number,
)
from weft.spec.lengths import UNITS_US, interval_us
from weft.spec.plainer import plainer
from weft.spec.sql import call_name, is_window_call

_IS_TRUE = "truth("
_CLOCK = ("second", "minute", "hour")
_COMPARED: dict[type[exp.Expr], str] = {
    exp.LT: "lt",
    exp.LTE: "lte",
    exp.GT: "gt",
    exp.GTE: "gte",
    exp.EQ: "eq",
    exp.NEQ: "neq",
}


class Unclear(Exception):
    """Something that is not followed: the words themselves must do."""


@dataclass(slots=True)
class Scope:
    """What columns are called: by alias of what is read, None where its columns are not known; `more` are others.

    `merged` are the columns that USING made one of two, `bound` the arguments of the functions around (`x -> x + 1`).
    """

    by_alias: Mapping[str, Mapping[str, str] | None]
    more: dict[str, str] = field(default_factory=dict)
    merged: Mapping[str, str] = field(default_factory=dict)
    bound: Mapping[str, str] = field(default_factory=dict)

    def with_more(self, more: Mapping[str, str]) -> Scope:
        """The same with further names, which come last."""
        return replace(self, more={**more, **self.more})

    def with_bound(self, names: Sequence[str]) -> Scope:
        """The same within a function of these arguments: which they are counts, not how they are called."""
        first = len(self.bound)
        return replace(self, bound={**self.bound, **{name: f"^{first + at}" for at, name in enumerate(names)}})

    def known_names(self) -> set[str]:
        """The names of all columns that are read."""
        return {name for shown in self.by_alias.values() for name in shown or ()}

    def all_names(self) -> set[str]:
        """The same; Unclear where some are not known."""
        if any(shown is None for shown in self.by_alias.values()):
            raise Unclear("unknown columns")
        return self.known_names()

    def all_of(self, alias: str) -> list[tuple[str, str]]:
        """The columns of one that is read, in their order."""
        shown = self.by_alias.get(alias.lower())
        if shown is None:
            raise Unclear("unknown columns")
        return list(shown.items())

    def column(self, parts: Sequence[str]) -> str:
        """What a column, or a field of one, is of the origin."""
        names = [part.lower() for part in parts]
        if len(names) > 1 and names[0] in self.by_alias:
            shown = self.by_alias[names[0]]
            called_so = names[0] in self.known_names() or names[0] in self.more or names[0] in self.bound
            if called_so and (shown is None or names[1] not in shown):
                raise Unclear("a column called like what is read")  # whose field it may be
            return self._of(shown, names[1:])
        if names[0] in self.merged:
            return _fields(self.merged[names[0]], names[1:])
        found = [shown for shown in self.by_alias.values() if shown is None or names[0] in shown]
        if len(found) > 1:
            raise Unclear("a column of two")
        if found and found[0] is not None:
            return self._of(found[0], names)
        if names[0] in self.more:
            return _fields(self.more[names[0]], names[1:])
        if found:
            return self._of(None, names)
        raise Unclear("a column of nowhere")

    def _of(self, shown: Mapping[str, str] | None, names: Sequence[str]) -> str:
        if shown is None:
            return _fields(column(names[0]), names[1:])
        if names[0] not in shown:
            raise Unclear("a column of nowhere")
        return _fields(shown[names[0]], names[1:])


def _fields(text: str, names: Sequence[str]) -> str:
    return "".join([text, *(f".{quoted(name)}" for name in names)])


def conjuncts(node: exp.Expr, scope: Scope) -> list[str]:
    """The conditions that must all hold."""
    parts = parts_of(text[4:-1]) if (text := spelled(node, scope)).startswith("and(") else [text]
    # Where a record is kept or not, what is null is as good as what is false.
    kept = [part[len(_IS_TRUE) : -1] if part.startswith(_IS_TRUE) else part for part in parts]
    return [part for part in kept if part != TRUE]


def spelled(node: exp.Expr, scope: Scope) -> str:
    """An expression in terms of the origin's columns."""
    if isinstance(node, exp.Query):
        raise Unclear(node.key)
    node = plainer(node)
    word = _COMPARED.get(type(node))
    if word is not None:
        return compared(word, spelled(node.this, scope), spelled(node.expression, scope))
    text = _SPELLED.get(type(node), _plainly)(node, scope)
    note = node.meta.get(NOTE)
    if not isinstance(note, str) or (isinstance(node, exp.Struct) and _names_all(node)):
        return text
    return f"called({quoted(note)};{text})"


def _names_all(struct: exp.Struct) -> bool:
    """Whether a struct says how its fields are called: `struct(n AS i)` and `named_struct('i', n)` are one."""
    return all(isinstance(one, exp.PropertyEQ) and isinstance(one.this, exp.Identifier) for one in struct.expressions)


def _inner(node: exp.Expr, scope: Scope) -> str:
    return spelled(node.this, scope)


def _unclear(node: exp.Expr, scope: Scope) -> str:
    raise Unclear(node.key)


def _column(node: exp.Expr, scope: Scope) -> str:
    if isinstance(node.this, exp.Star):
        raise Unclear("star")
    assert isinstance(node, exp.Column)
    return scope.column([part.name for part in node.parts])


def _field(node: exp.Expr, scope: Scope) -> str:
    if not isinstance(node.expression, exp.Identifier):
        raise Unclear("dot")
    return _fields(spelled(node.this, scope), [node.expression.name.lower()])


def _literal(node: exp.Expr, scope: Scope) -> str:
    return quoted(str(node.this)) if node.is_string else f"#{str(node.this).lower()}"


def _boolean(node: exp.Expr, scope: Scope) -> str:
    return TRUE if node.this else FALSE


def _bounds(node: exp.Expr, scope: Scope) -> tuple[str, str, str]:
    if node.args.get("symmetric"):
        raise Unclear("symmetric")
    return spelled(node.args["low"], scope), spelled(node.this, scope), spelled(node.args["high"], scope)


def _between(node: exp.Expr, scope: Scope) -> str:
    low, value, high = _bounds(node, scope)
    return all_of("and", [compared("lte", low, value), compared("lte", value, high)])


def _in(node: exp.Expr, scope: Scope) -> str:
    if _others(node, ("this", "expressions")):
        return _plainly(node, scope)
    value, said = spelled(node.this, scope), sorted({spelled(one, scope) for one in node.expressions})
    if is_one_type(value, said):
        return all_of("or", [compared("eq", value, one) for one in said])
    return f"in({value};{';'.join(said)})"


def _count(node: exp.Expr, scope: Scope) -> str:
    of_all = isinstance(node.this, (exp.Star, exp.Literal)) and not node.expressions
    return "count(#1)" if of_all else _plainly(node, scope)


def _cast(node: exp.Expr, scope: Scope) -> str:
    """CAST and `::` are one; TRY_CAST alone gives null for what is no such value."""
    if _others(node, ("this", "to", "safe")):
        return _plainly(node, scope)
    word = "try_cast" if node.args.get("safe") else "cast"
    return cast(spelled(node.this, scope), node.args["to"].sql(), word)  # its Spark's words know no TIME


def _minus(node: exp.Expr, scope: Scope) -> str:
    inner = spelled(node.this, scope)
    if (value := whole_number(inner)) is not None:
        return f"#{-value}"
    return f"#-{inner[1:]}" if re.fullmatch(r"#\d+(\.\d+)?", inner) else f"neg({inner})"


def _not(node: exp.Expr, scope: Scope) -> str:
    return _negated(node.this, scope)


def _is(node: exp.Expr, scope: Scope) -> str:
    value = spelled(node.this, scope)
    if isinstance(node.expression, exp.Null):
        return is_null(value)
    return f"{_IS_TRUE}{value})" if _is_true(node.expression) else _plainly(node, scope)


def _is_true(node: exp.Expr) -> bool:
    return isinstance(node, exp.Boolean) and bool(node.this)


def _same(node: exp.Expr, scope: Scope) -> str:
    """`<=>`, which has no order."""
    left, right = spelled(node.this, scope), spelled(node.expression, scope)
    return f"same({';'.join(sorted((beside(left, right), beside(right, left))))})"


def _coalesce(node: exp.Expr, scope: Scope) -> str:
    if _others(node, ("this", "expressions", "is_nvl")):
        return _plainly(node, scope)
    return f"coalesce({';'.join(spelled(one, scope) for one in (node.this, *node.expressions))})"


def _function(node: exp.Expr, scope: Scope) -> str:
    """A function of some arguments, as `x -> x + 1`."""
    if any(not isinstance(one, exp.Identifier) for one in node.expressions) or node.find(exp.Kwarg):
        raise Unclear("a function")
    names = [one.name.lower() for one in node.expressions]
    if len(set(names)) < len(names):
        raise Unclear("two arguments of one name")
    return f"function({len(names)};{spelled(node.this, scope.with_bound(names))})"


def _identifier(node: exp.Expr, scope: Scope) -> str:
    return _held(node, scope)


def _others(node: exp.Expr, known: Sequence[str]) -> bool:
    return any(held not in (None, False, []) and key not in known for key, held in node.args.items())


def _plainly(node: exp.Expr, scope: Scope) -> str:
    """Any other node: its kind and all that it holds."""
    said = []
    for key, held in sorted(node.args.items()):
        if held is None or held is False or held == [] or key == "big_int":
            continue
        many = held if isinstance(held, list) else [held]
        texts = [_held(one, scope) for one in many]
        said.append(f"{key}={';'.join(texts)}")
    return f"{type(node).__name__.lower()}({';'.join(said)})"


def _field_of(node: exp.Expr, scope: Scope) -> str:
    """A field of a struct that is made, called as written: to_json shows it."""
    return f"as({quoted(node.this.name)};{spelled(node.expression, scope)})"


def _held(one: object, scope: Scope) -> str:
    if isinstance(one, exp.DataType):
        return f"[{quoted(one.sql())}]"  # in the parser's own words: those of its Spark know no TIME
    if isinstance(one, exp.Identifier):
        return scope.bound.get(one.name.lower(), quoted(one.name.lower()))
    if isinstance(one, exp.Expr):
        return spelled(one, scope)
    return quoted(str(one))


def _joined(node: exp.Expr, scope: Scope) -> str:
    """AND and OR, flat: what stands in them has no order, and doubles say nothing."""
    kind = type(node)
    parts: list[str] = []
    todo = [node.this, node.expression]
    while todo:
        one = todo.pop(0)
        while isinstance(one, exp.Paren):
            one = one.this
        if isinstance(one, kind):
            todo = [one.this, one.expression, *todo]
        else:
            parts.append(spelled(one, scope))
    return all_of("and" if kind is exp.And else "or", parts)


def _negated(node: exp.Expr, scope: Scope) -> str:
    """NOT, as far in as it goes; nulls stay nulls on the way."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Not):
        return spelled(node.this, scope)
    if isinstance(node, (exp.And, exp.Or)):
        parts = [_negated(one, scope) for one in (node.this, node.expression)]
        return all_of("or" if isinstance(node, exp.And) else "and", parts)
    if isinstance(node, exp.Between):
        low, value, high = _bounds(node, scope)
        return all_of("or", [compared("gt", low, value), compared("gt", value, high)])
    word = _COMPARED.get(type(node))
    if word is not None:
        return compared(OPPOSITE[word], spelled(node.this, scope), spelled(node.expression, scope))
    return opposite(spelled(node, scope))


def _computed(node: exp.Expr, scope: Scope) -> str:
    first, second = node.this, node.expression
    left, right = _operand(first, second, scope), _operand(second, first, scope)
    one, other = whole_number(left), whole_number(right)
    if one is not None and other is not None:
        value = one + other if isinstance(node, exp.Add) else one * other if isinstance(node, exp.Mul) else one - other
        if abs(value) <= INT_MAX:
            return f"#{value}"
    if not isinstance(node, exp.Sub):
        left, right = sorted((left, right))
    return f"{type(node).__name__.lower()}({left};{right})"


def _operand(node: exp.Expr, other: exp.Expr, scope: Scope) -> str:
    """A side of a sum; hours, minutes and seconds beside a column are counted in one unit."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Interval) and isinstance(other, exp.Column):
        unit = str(node.args["unit"].this).lower().removesuffix("s") if node.args.get("unit") is not None else ""
        count = str(getattr(node.this, "this", ""))
        if unit in _CLOCK and re.fullmatch(r"-?\d{1,9}", count):
            return f"clock({int(count) * UNITS_US[unit]})"
    return spelled(node, scope)


def _if(node: exp.Expr, scope: Scope) -> str:
    return _cases([node], None, node.args.get("false"), scope)


def _case(node: exp.Expr, scope: Scope) -> str:
    return _cases(node.args.get("ifs") or [], node.this, node.args.get("default"), scope)


def _cases(ifs: Sequence[exp.Expr], this: exp.Expr | None, default: exp.Expr | None, scope: Scope) -> str:
    asked = [spelled(one.this, scope) for one in ifs]
    if this is not None:  # as Spark reads it: each is compared with what stands behind CASE
        value = spelled(this, scope)
        asked = [compared("eq", value, one) for one in asked]
    whens = [f"{one}->{spelled(then.args['true'], scope)}" for one, then in zip(asked, ifs, strict=True)]
    rest = "null()" if default is None else spelled(default, scope)
    if len(ifs) == 1:
        then = spelled(ifs[0].args["true"], scope)
        if asked == [opposite(is_null(then))] or asked == [is_null(rest)]:
            return f"coalesce({then};{rest})" if asked != [is_null(rest)] else f"coalesce({rest};{then})"
    if rest.startswith("case("):  # one in the ELSE of another is asked behind it
        return f"case({';'.join(whens)};{rest[5:]}"
    return f"case({';'.join(whens)};{rest})"


def _called(node: exp.Expr, scope: Scope) -> str:
    name = call_name(node)
    if is_window_call(node) and node.expressions:
        return _window(name, node.expressions, scope)
    said = ";".join(spelled(one, scope) for one in node.expressions)
    return f"avg(this={said})" if name == "mean" and len(node.expressions) == 1 else f"{name}({said})"


def _window(name: str, said: Sequence[exp.Expr], scope: Scope) -> str:
    """A time window by its lengths; a slide of its own length, and a start of nothing, need not be said."""
    lengths = [_length(one, scope) for one in said[1:]]
    if name == "window":
        if len(lengths) > 2 and lengths[2] == "0us":
            del lengths[2]
        if len(lengths) == 2 and lengths[1] == lengths[0]:
            del lengths[1]
    return f"{name}({';'.join([spelled(said[0], scope), *lengths])})"


def _length(node: exp.Expr, scope: Scope) -> str:
    if isinstance(node, exp.Literal) and node.is_string:
        us = interval_us(str(node.this))
    else:
        us = int(node.this) if isinstance(node, exp.Literal) and str(node.this).isdigit() else None
    return spelled(node, scope) if us is None else f"{us}us"


_SPELLED: dict[type[exp.Expr], Callable[[exp.Expr, Scope], str]] = {
    exp.Paren: _inner, exp.Alias: _unclear, exp.Star: _unclear, exp.ArraysZip: _unclear, exp.PropertyEQ: _field_of,
    exp.Is: _is, exp.NullSafeEQ: _same, exp.Coalesce: _coalesce, exp.Lambda: _function, exp.Identifier: _identifier,
    exp.Window: _unclear, exp.Placeholder: _unclear, exp.Parameter: _unclear,
    exp.Column: _column, exp.Dot: _field, exp.Literal: _literal, exp.Boolean: _boolean, exp.And: _joined,
    exp.Or: _joined, exp.Not: _not, exp.Between: _between, exp.In: _in, exp.If: _if, exp.Case: _case,
    exp.Count: _count, exp.Cast: _cast, exp.TryCast: _cast, exp.Neg: _minus, exp.Add: _computed, exp.Mul: _computed,
    exp.Sub: _computed, exp.Anonymous: _called,
}  # fmt: skip
