"""What is a statement over one stream, in terms of a stream further up? As expressions that a new statement can hold.

A SELECT that only picks, computes and filters is folded into what it reads: its columns become expressions over the
columns there, and its conditions are added. A SELECT that groups is taken apart into keys, measures (its aggregates),
and what it shows of them. Only what `sure` knows is followed; None where a statement says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from weft.spec.chance import is_by_chance
from weft.spec.conditions import column
from weft.spec.facts import expands_records
from weft.spec.spelling import Scope, Unclear, spelled
from weft.spec.sql import SqlError, aggregates, is_aggregate_call, local, parsed, spark_name, unwrapped
from weft.spec.sure import MOMENT, is_window, kind_of, known, never_fails

_FOLLOWED = {"expressions", "from_", "where"}
_GROUPED = {*_FOLLOWED, "group", "having"}
MEASURES = (
    exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg,
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
)  # fmt: skip
"""Aggregates that give the same over records left out by FILTER as over records that are not there, in any order."""
_OUTSIDE = (
    exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In,
    exp.Like, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Abs, exp.Lower, exp.Upper, exp.Length, exp.Coalesce,
    exp.Case, exp.If, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Round, exp.Dot,
    exp.Identifier,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folded:
    """A stream in terms of one further up: each column (lower case) as an expression over columns there, by `kinds`.

    One that is None is something that is not followed: nobody may ask for it.
    """

    columns: Mapping[str, exp.Expr | None]
    kinds: Mapping[str, str]
    conditions: tuple[exp.Expr, ...] = ()

    def text(self, node: exp.Expr) -> str:
        """An expression over the columns up there, spelled as all that mean the same are."""
        return spelled(node, Scope({"": {name: column(name) for name in self.kinds}}))

    def carries(self, name: str) -> bool:
        """Whether a column is the one of that name up there, unchanged."""
        held = self.columns.get(name.lower())
        return isinstance(held, exp.Column) and held.name.lower() == name.lower()


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate over the columns up there; `protected`: its argument may fail for records that are left out."""

    call: exp.Expr
    where: exp.Expr | None
    protected: bool


@dataclass(frozen=True, slots=True)
class Grouped:
    """A SELECT that groups: keys and measures, by what they mean, and what it shows and asks of them.

    In `shown` and `having` a column `key N` or `measure N` stands for the key or the measure of that place.
    """

    read: Folded
    keys: Mapping[str, exp.Expr]
    measures: tuple[Measure, ...]
    shown: tuple[tuple[str, exp.Expr], ...]
    having: exp.Expr | None


def unfolded(columns: Sequence[tuple[str, str | None]]) -> Folded:
    """A stream in its own terms, by the names and types of its columns."""
    names = {name.lower(): exp.column(exp.to_identifier(name, quoted=True)) for name, _ in columns}
    return Folded(names, {name.lower(): kind_of(type_) for name, type_ in columns})


def folded(sql: str, read: Folded) -> Folded | None:
    """What a statement that only picks, computes and filters gives, in the terms of what it reads."""
    try:
        tree = unwrapped(parsed(sql))
        if not isinstance(tree, exp.Select) or _more_than(tree, _FOLLOWED) or aggregates(tree) or expands_records(tree):
            return None
        given = _Given(tree, read)
        conditions = (*read.conditions, *given.conditions())
        columns: dict[str, exp.Expr | None] = {}
        for one in tree.selects:
            for name, held in given.columns(one):
                if name in columns:
                    return None
                columns[name] = held
        return Folded(columns, read.kinds, conditions)
    except (Unclear, SqlError, RecursionError):
        return None


def grouped(sql: str, read: Folded, names: Sequence[str]) -> Grouped | None:
    """A SELECT that groups what it reads, taken apart; `names` are its columns as Spark shows them."""
    try:
        tree = unwrapped(parsed(sql))
        if not isinstance(tree, exp.Select) or _more_than(tree, _GROUPED) or tree.args.get("group") is None:
            return None
        if len(tree.selects) != len(names) or any(one.is_star for one in tree.selects):
            return None
        given = _Given(tree, read)
        conditions = (*read.conditions, *given.conditions())
        taken = _Taken(tree, given)
        shown = tuple((name, taken.outside(one.unalias())) for name, one in zip(names, tree.selects, strict=True))
        having = tree.args.get("having")
        asked = None if having is None else taken.outside(having.this, in_having=True)
        whole = Folded(read.columns, read.kinds, conditions)
        return Grouped(whole, taken.keys, tuple(taken.measures.values()), shown, asked)
    except (Unclear, SqlError, RecursionError):
        return None


class _Given:
    """One SELECT over one stream: its columns in terms of what lies further up."""

    def __init__(self, select: exp.Select, read: Folded) -> None:
        self.select = select
        self.read = read
        origin = select.args["from_"].this if select.args.get("from_") is not None else None
        if not isinstance(origin, exp.Table) or _more_than(origin, {"this", "alias"}):
            raise Unclear("from")
        if not isinstance(origin.this, exp.Identifier) or (origin.args.get("alias") and origin.args["alias"].columns):
            raise Unclear("from")
        if any(is_by_chance(node) or isinstance(node, (exp.Query, exp.Window)) for node in local(select)):
            raise Unclear("chance, or a query within")
        self.alias = origin.alias_or_name.lower()
        if self.alias in read.columns:
            raise Unclear("a column called like what is read")

    def conditions(self) -> tuple[exp.Expr, ...]:
        """What its WHERE asks; Unclear where that may fail, since others' records will be asked, too."""
        where = self.select.args.get("where")
        if where is None:
            return ()
        asked = self.above(where.this)
        if not never_fails(asked, self.read.kinds, "truth"):
            raise Unclear("a condition that may fail")
        return (asked,)

    def columns(self, one: exp.Expr) -> list[tuple[str, exp.Expr | None]]:
        """What a part of the SELECT list shows."""
        if isinstance(one, exp.Star) and not _more_than(one, set()):
            return list(self.read.columns.items())
        name = None if one.is_star else spark_name(one)
        if name is None:
            raise Unclear("a column without a name")
        try:
            held = self.above(one.unalias())
            known(held, self.read.kinds)
        except Unclear:
            return [(name.lower(), None)]
        return [(name.lower(), held)]

    def above(self, node: exp.Expr) -> exp.Expr:
        """An expression with every column put in terms of what lies further up."""

        def put(one: exp.Expr) -> exp.Expr:
            if not isinstance(one, exp.Column):
                return one
            held = self.read.columns.get(self.name(one))
            if held is None:
                raise Unclear("a column of nowhere")
            return held.copy() if isinstance(held, exp.Column) else exp.Paren(this=held.copy())

        return node.copy().transform(put, copy=False)

    def name(self, one: exp.Expr) -> str:
        """What a column is called in what is read; empty for what is no plain column of that."""
        parts = [part.name.lower() for part in one.parts] if isinstance(one, exp.Column) else []
        if len(parts) == 2 and parts[0] == self.alias:
            del parts[0]
        return parts[0] if len(parts) == 1 else ""


class _Taken:
    """A SELECT that groups, being taken apart."""

    def __init__(self, select: exp.Select, given: _Given) -> None:
        self.given = given
        self.read = given.read
        self.aliases = {one.alias.lower(): one.unalias() for one in select.selects if isinstance(one, exp.Alias)}
        self.keys: dict[str, exp.Expr] = {}
        self.measures: dict[str, Measure] = {}
        self.window: str | None = None
        for key in self._keys(select):
            if is_aggregate_call(key) or any(is_aggregate_call(node) for node in key.walk()):
                raise Unclear("group")
            held = given.above(key)
            if is_window(key):
                if self.window is not None or not never_fails(held.expressions[0], self.read.kinds, MOMENT):
                    raise Unclear("window")
                self.window = self.read.text(held)
            elif not never_fails(held, self.read.kinds):
                raise Unclear("a key that may fail")
            self.keys[self.read.text(held)] = held

    def _keys(self, select: exp.Select) -> list[exp.Expr]:
        group = select.args["group"]
        if _more_than(group, {"expressions"}):
            raise Unclear("group")
        found = []
        for key in group.expressions:
            if isinstance(key, exp.Literal):
                at = int(key.this) - 1 if not key.is_string and str(key.this).isdigit() else -1
                if not 0 <= at < len(select.selects):
                    raise Unclear("group")
                found.append(select.selects[at].unalias())
            elif isinstance(key, exp.Column) and not key.table and key.name.lower() not in self.read.columns:
                if key.name.lower() not in self.aliases:
                    raise Unclear("group")
                found.append(self.aliases[key.name.lower()])
            else:
                found.append(key)
        return found

    def outside(self, node: exp.Expr, in_having: bool = False) -> exp.Expr:
        """An expression over keys and aggregates, with what stands for them."""

        def put(one: exp.Expr) -> exp.Expr:
            key = self._key(one)
            if key is not None:
                return key
            if isinstance(one, exp.Filter) or is_aggregate_call(one):
                return self._measure(one)
            if isinstance(one, exp.Column):
                own, fields = one.parts[0].name.lower(), [part.name for part in one.parts[1:]]
                is_free = own not in self.read.columns
                if is_free and own == "window" and self.window is not None and own not in self.aliases:
                    return _fields(_placeholder("key", self._place(self.window)), fields)
                if is_free and in_having and own in self.aliases:
                    return _fields(exp.Paren(this=self.outside(self.aliases[own])), fields)
                raise Unclear("a column of nowhere")
            if not isinstance(one, _OUTSIDE):
                raise Unclear(one.key)
            return one

        return node.copy().transform(put, copy=False)

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        try:
            text = self.read.text(self.given.above(node))
        except (Unclear, AttributeError):
            return None
        return _placeholder("key", self._place(text)) if text in self.keys else None

    def _place(self, text: str) -> int:
        return list(self.keys).index(text)

    def _measure(self, node: exp.Expr) -> exp.Expr:
        where: exp.Expr | None = None
        call = node
        if isinstance(node, exp.Filter):
            where = self.given.above(node.expression.this)
            if not never_fails(where, self.read.kinds, "truth"):
                raise Unclear("a condition that may fail")
            call = node.this
        if not isinstance(call, MEASURES) or _more_than(call, {"this", "big_int"}):
            raise Unclear("aggregate")
        protected = False
        if not (isinstance(call, exp.Count) and isinstance(call.this, (exp.Star, exp.Literal))):
            if isinstance(call.this, exp.Distinct):
                raise Unclear("distinct")
            protected = self._may_fail(self.given.above(call.this))
        held = self.given.above(call)
        text = f"{self.read.text(held)} where {'' if where is None else self.read.text(where)}"
        self.measures.setdefault(text, Measure(held, where, protected))
        return _placeholder("measure", list(self.measures).index(text))

    def _may_fail(self, argument: exp.Expr) -> bool:
        bare = argument
        while isinstance(bare, exp.Paren):
            bare = bare.this
        return False if isinstance(bare, exp.Column) else known(argument, self.read.kinds).fails


def _placeholder(what: str, number: int) -> exp.Expr:
    return exp.column(exp.to_identifier(f"{what} {number}", quoted=True))


def _fields(node: exp.Expr, names: Sequence[str]) -> exp.Expr:
    for name in names:
        node = exp.Dot(this=node, expression=exp.to_identifier(name))
    return node


def _more_than(node: exp.Expr, followed: set[str]) -> bool:
    """True if a node says something beside what is followed."""
    return any(held not in (None, False, []) and key not in followed for key, held in node.args.items())
