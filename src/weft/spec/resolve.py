"""Which streams and columns does a statement ask for, and which does it give?

A wrong error is worse than a missed one: where something is not surely known (a stream without columns, a table
function, a PIVOT), every column is taken as right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from weft.spec.problems import brief, did_you_mean, listed
from weft.spec.sql import implicit_windows, local, spark_name

Names = tuple[str, ...] | None
_UNITS = frozenset(
    ("year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond")
)
_HANDLED = (exp.From, exp.Join, exp.CTE, exp.Lateral)
_ALWAYS = frozenset({"_metadata", "current_date", "current_timestamp", "current_user", "localtimestamp", "now", "user"})


@dataclass(slots=True)
class Found:
    """What a statement asks for and gives; `problems` are messages with their line in the text."""

    names: Names = None
    used: set[str] = field(default_factory=set)
    problems: list[tuple[str, int]] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Sources:
    """What a SELECT reads: names by alias, None where not known."""

    by_alias: dict[str, Names] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    shared: list[str] = field(default_factory=list)

    def every(self) -> Names:
        """All columns in order, those of USING once, None where any is not known."""
        out: list[str] = []
        for alias, names in self.by_alias.items():
            if alias in self.hidden:
                continue
            if names is None:
                return None
            seen = {name.lower() for name in out}
            out += [name for name in names if not (name.lower() in self.shared and name.lower() in seen)]
        return tuple(out)


def resolve(tree: exp.Expr, inputs: Mapping[str, Names]) -> Found:
    """Follows a statement over its inputs' columns."""
    found = Found()
    resolver = _Resolver({name.lower(): names for name, names in inputs.items()}, tuple(inputs), found)
    found.names = resolver.query(tree, {}, [], top=True)
    return found


class _Resolver:
    def __init__(self, inputs: dict[str, Names], shown: tuple[str, ...], found: Found) -> None:
        self.inputs = inputs
        self.shown = shown
        self.found = found

    def query(self, query: exp.Expr, ctes: dict[str, Names], outer: list[_Sources], top: bool = False) -> Names:
        """A query's output columns."""
        with_ = query.args.get("with_")
        recursive = with_ is not None and with_.args.get("recursive")
        for cte in with_.expressions if with_ is not None else ():
            name = cte.alias.lower()
            inner = {**ctes, name: None} if recursive else ctes
            names = self.query(cte.this, inner, outer)
            ctes = {**ctes, name: _alias_columns(cte) or names}
        if isinstance(query, (exp.Subquery, exp.Paren)):
            return self.query(query.this, ctes, outer, top)
        if isinstance(query, exp.SetOperation):
            names = self.query(query.this, ctes, outer, top)
            other = self.query(query.expression, ctes, outer)
            by_name = query.args.get("by_name")
            if names is not None and other is not None and len(names) != len(other) and not by_name:
                says = f"the parts of the UNION give {len(names)} and {len(other)} columns; give both the same"
                self._problem(says, query.expression)
            return None if by_name else names
        return self._select(query, ctes, outer, top) if isinstance(query, exp.Select) else None

    def _select(self, select: exp.Select, ctes: dict[str, Names], outer: list[_Sources], top: bool) -> Names:
        sources = self._sources(select, ctes, outer)
        chain = [sources, *outer]
        aliased = [one for one in select.selects if isinstance(one, (exp.Alias, exp.Aliases))]
        given = {name.lower() for one in aliased for name in _names_of(one)} | implicit_windows(select)
        for node in local(select):
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                self._column(node, chain, given)
            elif isinstance(node, exp.Query) and not isinstance(node.parent, _HANDLED):
                self.query(node, ctes, chain)
        return self._output(select, sources, top)

    def _sources(self, select: exp.Select, ctes: dict[str, Names], outer: list[_Sources]) -> _Sources:
        sources = _Sources()
        origin = select.args.get("from_")
        nodes: list[tuple[exp.Expr, exp.Join | None]] = [(origin.this, None)] if origin is not None else []
        nodes += [(join.this, join) for join in select.args.get("joins") or ()]
        nodes += [(lateral, None) for lateral in select.args.get("laterals") or ()]
        for index, (node, join) in enumerate(nodes):
            alias = (node.alias_or_name or f"_{index}").lower()
            sources.by_alias[alias] = self._names(node, ctes, [sources, *outer])
            if join is None:
                continue
            if join.args.get("method") == "NATURAL":
                sources.by_alias[alias] = None
            sources.shared += [column.name.lower() for column in join.args.get("using") or ()]
            if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
                sources.hidden.add(alias)
        return sources

    def _names(self, node: exp.Expr, ctes: dict[str, Names], outer: list[_Sources]) -> Names:
        """The columns of one thing in FROM."""
        names: Names = None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            names = self._table(node, ctes)
        elif isinstance(node, (exp.Subquery, exp.Lateral)) and isinstance(node.this, exp.Query):
            names = self.query(node.this, ctes, outer)
        if node.args.get("pivots") or node.args.get("joins"):
            return None
        return _alias_columns(node) or names

    def _table(self, table: exp.Table, ctes: dict[str, Names]) -> Names:
        name = table.name.lower()
        if not table.db and name in ctes:
            return ctes[name]
        if not table.db and name in self.inputs:
            self.found.used.add(name)
            return self.inputs[name]
        written = ".".join(part.name for part in table.parts)
        hint = did_you_mean(written, self.shown)
        backticks = next((one for one in self.shown if "-" in one and one.startswith(name)), None)
        if backticks is not None:
            hint = f"; a name with `-` needs backticks in SQL: `{backticks}`"
        elif name not in self.inputs and not hint:
            hint = "; add it to `from`, or read one of those"
        self._problem(f"reads `{brief(written)}`, which is not among its inputs: {listed(self.shown)}{hint}", table)
        return None

    def _column(self, column: exp.Column, chain: list[_Sources], given: set[str]) -> None:
        parts = [part.name for part in column.parts]
        if isinstance(column.parent, (exp.Kwarg, exp.PropertyEQ)) and column.arg_key == "this":
            return
        if len(parts) > 1:
            holders = [sources.by_alias[parts[0].lower()] for sources in chain if parts[0].lower() in sources.by_alias]
            if holders:
                names = holders[0]
                if names is None or parts[1].lower() in _lower(names) or self._is_column(parts[0], chain, given):
                    return
                says = f"`{brief(parts[0])}` has no column `{brief(parts[1])}`; it has: {listed(names)}"
                self._problem(says + did_you_mean(parts[1], names), column)
                return
        if self._is_column(parts[0], chain, given) or (len(parts) == 1 and self._is_word(column, chain)):
            return
        names = tuple(name for sources in chain for one in sources.by_alias.values() for name in one or ())
        what = "column" if len(parts) == 1 else "stream or column"
        says = f"there is no {what} `{brief(parts[0])}`; there are: {listed(dict.fromkeys(names))}"
        self._problem(says + did_you_mean(parts[0], names), column)

    @staticmethod
    def _is_column(name: str, chain: list[_Sources], given: set[str]) -> bool:
        wanted = name.lower()
        if wanted in given or wanted in _ALWAYS:
            return True
        every = [names for sources in chain for names in sources.by_alias.values()]
        return any(names is None or wanted in _lower(names) for names in every)

    @staticmethod
    def _is_word(column: exp.Column, chain: list[_Sources]) -> bool:
        """Whether a bare word is no column at all: a unit such as DAY, or the alias of a stream."""
        name = column.name.lower()
        unit = name in _UNITS and isinstance(column.parent, exp.Func)
        return unit or any(name in sources.by_alias for sources in chain)

    def _output(self, select: exp.Select, sources: _Sources, top: bool) -> Names:
        out: list[str] = []
        sure = True
        for one in select.selects:
            if one.is_star:
                names = _star_names(one, sources)
                sure = sure and names is not None
                out += names or ()
                continue
            given = _names_of(one)
            if not given:
                sure = False
                if top:
                    self.found.unnamed.append(brief(one.sql("spark")))
            out += given
        seen: set[str] = set()
        for name in out if top and sure else ():
            if name.lower() in seen:
                self._problem(f"gives two columns called `{brief(name)}`; rename one with AS", select)
            seen.add(name.lower())
        return tuple(out) if sure else None

    def _problem(self, message: str, node: exp.Expr) -> None:
        meta = next((inner.meta for inner in node.walk() if "line" in inner.meta), {})
        entry = (message, int(meta.get("line", 1)))
        if entry not in self.found.problems and len(self.found.problems) < 20:
            self.found.problems.append(entry)


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}


def _alias_columns(node: exp.Expr) -> Names:
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return tuple(column.name for column in columns) if columns else None


def _names_of(one: exp.Expr) -> list[str]:
    """The names an item of SELECT gives, none where Spark makes one up."""
    if one.is_star:
        return []
    if isinstance(one, exp.Aliases):
        return [alias.name for alias in one.aliases]
    name = spark_name(one)
    return [] if name is None else [name]


def _star_names(one: exp.Expr, sources: _Sources) -> Names:
    star = one.this if isinstance(one, exp.Column) else one
    if star.args.get("replace") or star.args.get("rename") or not isinstance(star, exp.Star):
        return None
    table = one.table.lower() if isinstance(one, exp.Column) else ""
    names = sources.every() if not table else sources.by_alias.get(table)
    dropped = {name.name.lower() for name in star.args.get("except_") or ()}
    return None if names is None else tuple(name for name in names if name.lower() not in dropped)
