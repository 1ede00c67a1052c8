"""Does a column come through unchanged? Followed through aliases, CTEs, subqueries and the branches of a UNION."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from weft.model import Operator
from weft.spec.sql import SqlError, parsed, spark_name, unwrapped

KnownColumns = Mapping[str, "tuple[str, ...] | None"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """One branch of a statement: the inputs it reads, and the input's column that an output column is."""

    inputs: frozenset[str]
    origin: tuple[str, str] | None


def passes_through(operator: Operator, input_name: str, column: str, known: KnownColumns | None = None) -> bool:
    """Whether every branch that reads the input hands on its column unchanged under the same name.

    `known` gives columns by input, which tells apart what a join leaves open.
    """
    if operator.sql is None:
        return False
    try:
        tree = parsed(operator.sql)
        leaves = _Follow({name.lower(): names for name, names in (known or {}).items()}).leaves(tree, column, {})
    except (SqlError, RecursionError):
        return False
    asked = input_name.lower()
    reading = [leaf for leaf in leaves if asked in leaf.inputs]
    return bool(reading) and all(leaf.origin == (asked, column.lower()) for leaf in reading)


class _Follow:
    def __init__(self, known: KnownColumns) -> None:
        self.known = known

    def leaves(self, query: exp.Expr, column: str, ctes: dict[str, exp.Expr]) -> list[Leaf]:
        """One leaf per branch, for an output column of a query."""
        ctes = ctes | {cte.alias.lower(): cte.this for cte in getattr(query, "ctes", ())}
        if isinstance(query, (exp.Subquery, exp.Paren)):
            return self.leaves(query.this, column, ctes)
        if isinstance(query, exp.SetOperation):
            other = _same_place(query.this, query.expression, column)
            return self.leaves(query.this, column, ctes) + self.leaves(query.expression, other, ctes)
        return self._select(query, column, ctes) if isinstance(query, exp.Select) else []

    def _select(self, select: exp.Select, column: str, ctes: dict[str, exp.Expr]) -> list[Leaf]:
        every = _inputs(select, ctes)
        sources = _sources(select)
        found = self._shown(select, column, sources, ctes)
        if found is None:
            return [Leaf(every, None)]
        alias, name = found
        source = sources[alias]
        if isinstance(source, exp.Table):
            inner = ctes.get(source.name.lower())
            if inner is None:
                return [Leaf(every, (source.name.lower(), name.lower()))]
            # A CTE may carry the name of the stream it reads; inside it that name means the stream.
            ctes = {key: one for key, one in ctes.items() if key != source.name.lower()}
            leaves = self.leaves(inner, name, ctes)
        else:
            leaves = self.leaves(source, name, ctes) if isinstance(source, exp.Subquery) else [Leaf(every, None)]
        if len(sources) == 1:
            return leaves
        return [Leaf(leaf.inputs | every, leaf.origin) for leaf in leaves]

    def _shown(
        self, select: exp.Select, column: str, sources: dict[str, exp.Expr], ctes: dict[str, exp.Expr]
    ) -> tuple[str, str] | None:
        """The source and its column that an output column shows as it is."""
        for one in select.selects:
            if one.is_star:
                dropped = [name.name.lower() for name in (_star(one).args.get("except_") or ())]
                table = one.table if isinstance(one, exp.Column) else ""
                changed = _star(one).args.get("replace") or _star(one).args.get("rename")
                if column.lower() in dropped or changed:
                    continue
                owner = self._owner(table, column, sources, ctes)
                if owner is not None:
                    return owner, column
            elif (spark_name(one) or "").lower() == column.lower():
                shown = one.unalias()
                while isinstance(shown, exp.Paren):
                    shown = shown.this
                if not isinstance(shown, exp.Column) or shown.args.get("db"):
                    return None
                owner = self._owner(shown.table, shown.name, sources, ctes)
                return None if owner is None else (owner, shown.name)
        return None

    def _owner(self, table: str, column: str, sources: dict[str, exp.Expr], ctes: dict[str, exp.Expr]) -> str | None:
        if table:
            return table.lower() if table.lower() in sources else None
        if len(sources) == 1:
            return next(iter(sources))
        holders = []
        for alias, source in sources.items():
            name = source.name.lower() if isinstance(source, exp.Table) else ""
            names = self.known.get(name) if name and name not in ctes else None
            if names is None:
                return None
            if column.lower() in (one.lower() for one in names):
                holders.append(alias)
        return holders[0] if len(holders) == 1 else None


def _star(one: exp.Expr) -> exp.Expr:
    return one.this if isinstance(one, exp.Column) else one


def _sources(select: exp.Select) -> dict[str, exp.Expr]:
    origin = select.args.get("from_")
    nodes = [] if origin is None else [origin.this]
    nodes += [join.this for join in select.args.get("joins") or ()]
    # What LATERAL VIEW adds are new columns, so it owns none that an input could hand on.
    nodes = [node for node in nodes if not isinstance(node, (exp.Lateral, exp.Unnest, exp.Values))]
    return {(node.alias_or_name or f"_{index}").lower(): node for index, node in enumerate(nodes)}


def _inputs(node: exp.Expr, ctes: dict[str, exp.Expr], depth: int = 0) -> frozenset[str]:
    """The streams that a part of a statement reads."""
    out: set[str] = set()
    for table in node.find_all(exp.Table):
        name = table.name.lower()
        if name not in ctes:
            out.add(name)
        elif depth < 20:
            out |= _inputs(ctes[name], {key: one for key, one in ctes.items() if key != name}, depth + 1)
    return frozenset(out)


def _same_place(first: exp.Expr, second: exp.Expr, column: str) -> str:
    """The name, in a later branch of a UNION, of the column at the same place."""
    left, right = unwrapped(first), unwrapped(second)
    while isinstance(left, exp.SetOperation):
        left = unwrapped(left.this)
    if not isinstance(left, exp.Select) or not isinstance(right, exp.Select):
        return column
    if any(one.is_star for one in (*left.selects, *right.selects)):
        return column
    names = [(spark_name(one) or "").lower() for one in left.selects]
    place = names.index(column.lower()) if column.lower() in names else len(right.selects)
    return spark_name(right.selects[place]) or "" if place < len(right.selects) else ""
