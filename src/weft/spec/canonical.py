"""What does a statement mean? Streams as relations: equal ones are spelled alike, whatever words made them.

A relation is an origin, conditions over its columns, and what each output column is in its terms. A SELECT that only
picks, computes and filters is folded into what it reads, so that two steps and one mean the same. What groups, joins,
unites or removes doubles is an origin of its own. White space, aliases, the case of names, the order of AND, OR and of
commutative operands, of groups, of columns and of inner joins, constants that can be computed, and the spelling of
windows make no difference. Where a statement says something that this file does not follow, its very words are its
meaning; where asking twice may give two answers there is none, and nobody shares it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from weft.spec.as_written import NOTE, words_of
from weft.spec.chance import is_by_chance
from weft.spec.conditions import without_implied
from weft.spec.facts import expands_records
from weft.spec.joined import joined, more_than, no_doubles
from weft.spec.relations import Names, Relation, origin, renamed, sealed
from weft.spec.spelling import Scope, Unclear, conjuncts, spelled
from weft.spec.sql import (
    SqlError,
    aggregates,
    call_name,
    is_aggregate_call,
    is_window_call,
    local,
    parsed,
    spark_name,
    unwrapped,
)

_FOLLOWED = {"expressions", "from_", "where", "group", "having", "distinct", "joins", "with_", "hint"}


def meaning_of(sql: str, inputs: Mapping[str, Relation], marks: Mapping[str, str], names: Names) -> Relation | None:
    """What a statement over its inputs gives, with the watermark of each input that has one; None: nobody shares it.

    `names` are its columns as Spark will show them, where that is known.
    """
    try:
        tree = parsed(sql)
        if any(is_by_chance(node) for node in tree.walk()):
            return None
        said = tree.meta[NOTE]
        try:
            found = _Reader({name.lower(): one for name, one in inputs.items()}, marks).query(tree, {})
            if names is not None and found.names is not None and _lower(found.names) != _lower(names):
                raise Unclear("columns")  # Spark would show others: what they are is not known well enough
            if names is not None and found.columns is not None:
                shown = zip(names, found.columns, strict=True)
                found = replace(found, columns=tuple((name, what) for name, (_, what) in shown))
            found = replace(found, said=(*found.said, *said))
            return found if found.mark is None else sealed(found, f"each[{found.mark}]")
        except Unclear:
            return _as_written(sql, tree, inputs, marks, names)
    except (SqlError, SqlglotError, RecursionError):
        return None


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _as_written(
    sql: str, tree: exp.Query, inputs: Mapping[str, Relation], marks: Mapping[str, str], names: Names
) -> Relation:
    """A statement by its very words, the streams that it reads by what they mean."""
    by_name = {name.lower(): one for name, one in inputs.items()}
    places = {
        table.this.meta["start"]: (by_name[table.name.lower()], table.name.lower())
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and table.name.lower() in by_name and "start" in table.this.meta
    }
    # Fields of a struct are called as written, and to_json shows it.
    keeps_case = names is None or any(tree.find_all(exp.Struct, exp.ArraysZip, exp.DataType))
    said = {start: f"{one.key} {name}" for start, (one, name) in places.items()}
    words = words_of(sql, said, keeps_case)
    read = sorted(f"{name.lower()}={one.key}" for name, one in inputs.items())
    text = f"text[{words}] over[{read}] marks[{sorted(marks.items())}]"
    return origin(text, names)


class _Reader:
    """Follows one statement."""

    def __init__(self, inputs: Mapping[str, Relation], marks: Mapping[str, str]) -> None:
        self.inputs = inputs
        self.marks = {name.lower(): mark for name, mark in marks.items()}

    def query(self, tree: exp.Expr, ctes: Mapping[str, Relation]) -> Relation:
        tree = unwrapped(tree)
        known = dict(ctes)
        for cte in tree.args["with_"].expressions if tree.args.get("with_") is not None else ():
            if tree.args["with_"].args.get("recursive"):
                raise Unclear("with")
            known[cte.alias.lower()] = _called(self.query(cte.this, known), cte)
        if isinstance(tree, exp.Union):
            return self._union(tree, known)
        if not isinstance(tree, exp.Select):
            raise Unclear(tree.key)
        return self._select(tree, known)

    def _union(self, tree: exp.Union, ctes: Mapping[str, Relation]) -> Relation:
        parts: list[Relation] = []
        waiting: list[exp.Expr] = [tree]
        while waiting:  # one in another is the same as all side by side
            each = unwrapped(waiting.pop(0))
            if not isinstance(each, exp.Union) or (each is not tree and each.args.get("with_") is not None):
                parts.append(self.query(each, ctes))
                continue
            if each.args.get("distinct") or more_than(each, {"this", "expression", "with_"}):
                raise Unclear("union")
            waiting = [each.this, each.expression, *waiting]
        first = parts[0].columns
        if first is None or any(part.columns is None or len(part.columns) != len(first) for part in parts):
            raise Unclear("union of unknown columns")
        order = sorted(range(len(first)), key=lambda at: first[at][0].lower())
        branches = []
        for part in parts:
            assert part.columns is not None
            branches.append(f"{part.body} gives[{[part.columns[at][1] for at in order]}]")
        if any(part.mark is not None for part in parts):
            raise Unclear("a watermark before a union")
        names = tuple(name for name, _ in first)
        no_doubles(names)
        shown = [names[at].lower() for at in order]
        return origin(f"union[{' | '.join(sorted(branches))}] as[{shown}]", names)

    def _source(self, node: exp.Expr, ctes: Mapping[str, Relation]) -> tuple[str, Relation]:
        """What a part of FROM is called, and what it is."""
        if isinstance(node, exp.Subquery) and not more_than(node, {"this", "alias"}):
            return node.alias.lower(), _called(self.query(node.this, ctes), node)
        if not isinstance(node, exp.Table) or more_than(node, {"this", "alias"}):
            raise Unclear("from")
        if not isinstance(node.this, exp.Identifier):
            raise Unclear("from")
        name = node.name.lower()
        if name in ctes:
            return node.alias_or_name.lower(), _called(ctes[name], node)
        if name not in self.inputs:
            raise Unclear("from")
        return node.alias_or_name.lower(), _called(replace(self.inputs[name], mark=self.marks.get(name)), node)

    def _select(self, select: exp.Select, ctes: Mapping[str, Relation]) -> Relation:
        if more_than(select, _FOLLOWED) or select.args.get("from_") is None:
            raise Unclear("select")
        if any(isinstance(node, (exp.Query, exp.Window)) and not _is_read(node) for node in local(select)):
            raise Unclear("a query or OVER within")
        base, scope = self._base(select, ctes)
        where = select.args.get("where")
        conditions = without_implied([*base.where, *(conjuncts(where.this, scope) if where is not None else ())])
        grouped = aggregates(select)
        if grouped:
            _add_windows(select, scope)
        columns = _columns(select, base, scope, grouped)
        if grouped:
            return _distinct(select, _aggregate(select, base, scope, conditions, columns))
        if select.args.get("having") is not None:
            raise Unclear("having")
        if columns is not None:
            no_doubles([name for name, _ in columns])
        found = Relation(base.origin, columns, conditions, _carried(base, columns), base.said, base.mark)
        if expands_records(select):
            found = sealed(found, f"each[{base.mark}]")
        return _distinct(select, found)

    def _base(self, select: exp.Select, ctes: Mapping[str, Relation]) -> tuple[Relation, Scope]:
        """What a SELECT reads, as one relation, and how its columns are spelled."""
        joins = select.args.get("joins") or []
        first = self._source(select.args["from_"].this, ctes)
        if not joins:
            alias, one = first
            shown = None if one.columns is None else {name.lower(): what for name, what in one.columns}
            no_doubles(one.names or ())
            return one, Scope({alias: shown})
        return joined([first, *(self._source(join.this, ctes) for join in joins)], joins, select.args.get("where"))


def _aggregate(
    select: exp.Select, base: Relation, scope: Scope, where: Sequence[str], columns: tuple[tuple[str, str], ...] | None
) -> Relation:
    """What a SELECT that groups gives: its conditions on groups are conditions on what comes out."""
    assert columns is not None
    keys = sorted({spelled(key, scope) for key in _keys(select, scope)})
    body = replace(base, where=tuple(where)).body
    having: tuple[str, ...] = ()
    if select.args.get("having") is not None:
        aliases = {one.alias.lower() for one in select.selects if isinstance(one, exp.Alias)}
        asked = {one.name.lower() for one in select.args["having"].find_all(exp.Column)}
        if asked & aliases & scope.all_names():
            raise Unclear("having")
        shown = {name.lower(): what for name, what in columns}
        having = tuple(conjuncts(select.args["having"].this, scope.with_more(shown)))
    names = [name for name, _ in columns]
    no_doubles(names)
    origin_ = f"groups[{body}] by[{keys}] mark[{base.mark}]"
    return Relation(origin_, columns, having, frozenset(name.lower() for name in names))


def _is_read(node: exp.Expr) -> bool:
    """True for the queries in FROM, JOIN and WITH, and what is in them."""
    if isinstance(node, exp.Window):
        return False
    return isinstance(node.parent, (exp.From, exp.Join, exp.CTE, exp.Subquery))


def _called(one: Relation, node: exp.Expr) -> Relation:
    """A relation with the names that an alias gives its columns, as in `q(x, y)`."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    found = renamed(one, names) if names else one
    if found is None:
        raise Unclear("alias")
    return found


def _distinct(select: exp.Select, one: Relation) -> Relation:
    distinct = select.args.get("distinct")
    if not distinct:
        return one
    if distinct.args.get("on") or one.columns is None:
        raise Unclear("distinct")
    return sealed(one, f"distinct[{one.mark}]")


def _columns(select: exp.Select, base: Relation, scope: Scope, grouped: bool) -> tuple[tuple[str, str], ...] | None:
    """The columns that a SELECT shows, each as it is of the origin; None for all of what is not known."""
    if base.columns is None and _asks_for_own(select):
        raise Unclear("a column that may be another one's alias")
    found: list[tuple[str, str]] = []
    for one in select.selects:
        if isinstance(one, exp.Star) and not more_than(one, set()):
            if base.columns is None:
                if len(select.selects) > 1 or grouped:
                    raise Unclear("all of unknown columns")
                return None
            found += base.columns
            continue
        if one.is_star:
            table = one.args.get("table") if isinstance(one, exp.Column) else None
            if table is None or scope.merged or more_than(one.this, set()):
                raise Unclear("star")
            found += scope.all_of(table.name)
            continue
        name = spark_name(one)
        if name is None:
            raise Unclear("a column without a name")
        found.append((name, spelled(one.unalias(), scope)))
        if isinstance(one, exp.Alias) and base.columns is not None:
            scope.more.setdefault(name.lower(), found[-1][1])  # those behind may speak of it, as in Spark
    if not grouped and any(is_aggregate_call(node) for node in local(select)):
        raise Unclear("aggregate")
    return tuple(found)


def _asks_for_own(select: exp.Select) -> bool:
    """True if a column has the name that another gets: which of the two is meant depends on what there is to read."""
    named = {at: one.alias.lower() for at, one in enumerate(select.selects) if isinstance(one, exp.Alias)}
    return any(
        column.name.lower() == name
        for at, one in enumerate(select.selects)
        for column in one.find_all(exp.Column)
        for other, name in named.items()
        if other != at
    )


def _carried(base: Relation, columns: tuple[tuple[str, str], ...] | None) -> frozenset[str] | None:
    """The columns that a SELECT hands on as they were."""
    if columns is None or base.carried is None:
        return base.carried
    before = {name.lower(): what for name, what in base.columns or ()}
    kept = {name.lower() for name, what in columns if before.get(name.lower()) == what}
    return frozenset(kept & base.carried)


def _add_windows(select: exp.Select, scope: Scope) -> None:
    """Let `window` mean the one time window that a SELECT makes."""
    made = {spelled(node, scope): node for node in local(select) if is_window_call(node)}
    names = {call_name(node) for node in made.values()}
    if len(made) > 1:
        raise Unclear("two windows")
    for text in made:
        for name in names - scope.all_names():
            scope.more[name] = text


def _keys(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """What a SELECT groups by; as in Spark, a column of what it reads comes before an alias."""
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all") is True and not group.expressions:
        return [one.unalias() for one in select.selects if not any(is_aggregate_call(node) for node in one.walk())]
    if more_than(group, {"expressions"}):
        raise Unclear("group")
    by_alias = {one.alias.lower(): one.unalias() for one in select.selects if isinstance(one, exp.Alias)}
    keys = []
    for key in group.expressions:
        if isinstance(key, exp.Literal):
            at = int(key.this) - 1 if not key.is_string and str(key.this).isdigit() else -1
            if not 0 <= at < len(select.selects) or any(one.is_star for one in select.selects):
                raise Unclear("group")
            keys.append(select.selects[at].unalias())
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in by_alias:
            keys.append(key if key.name.lower() in scope.all_names() else by_alias[key.name.lower()])
        else:
            keys.append(key)
    return keys
