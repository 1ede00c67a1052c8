"""What does a join give? One relation over the columns of all that it reads, the same in whatever order they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations, product

from sqlglot import exp

from weft.spec.conditions import compared, kind_of
from weft.spec.relations import Relation, origin
from weft.spec.spelling import Scope, Unclear, conjuncts

_SIDES = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}
_ORDERS_MAX = 24
Parts = Sequence[tuple[str, Relation]]
"""What is read: what it is called, and what it is."""


def joined(parts: Parts, joins: Sequence[exp.Expr], where: exp.Expr | None) -> tuple[Relation, Scope]:
    """What is read, as one relation, and how its columns are spelled."""
    if any(one.columns is None for _, one in parts) or len({alias for alias, _ in parts}) < len(parts):
        raise Unclear("join")
    for _, one in parts:
        no_doubles(one.names or ())
    kinds = [_kind(join) for join in joins]
    usings = [[column.name.lower() for column in join.args.get("using") or ()] for join in joins]
    if any(usings) and (len(parts) > 2 or kinds[0] not in ("inner", "left", "right")):
        raise Unclear("using")
    ons = [join.args.get("on") for join in joins]
    if set(kinds) == {"inner"}:
        found = []
        for numbers in _orders(parts):
            one, scope = _numbered_join(parts, numbers, kinds, ons, usings[0] if any(usings) else ())
            asked = [*one.where, *(conjuncts(where.this, scope) if where is not None else ())]
            found.append(((one.origin, sorted(asked)), one, scope))
        _, one, scope = min(found, key=lambda each: each[0])
        return one, scope
    if set(kinds) - {"inner", "left"} and len(kinds) > 1:
        raise Unclear("join")
    numbers = [1, 0] if kinds == ["right"] else list(range(len(parts)))
    return _numbered_join(parts, numbers, kinds, ons, usings[0])


def more_than(node: exp.Expr, known: set[str]) -> bool:
    """True if a node says something beside what is followed."""
    return any(held not in (None, False, []) and key not in known for key, held in node.args.items())


def no_doubles(names: Sequence[str]) -> None:
    """Unclear where two columns have one name."""
    if len({name.lower() for name in names}) < len(names):
        raise Unclear("two columns of one name")


def _kind(join: exp.Expr) -> str:
    """How two sides are joined."""
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if more_than(join, {"this", "on", "using", "side", "kind"}) or side not in _SIDES:
        raise Unclear("join")
    if kind in ("SEMI", "ANTI") and side in ("", "LEFT"):
        return kind.lower()
    if kind not in ("", "INNER", "OUTER", "CROSS") or (kind == "OUTER" and not side):
        raise Unclear("join")
    return _SIDES[side]


def _orders(parts: Parts) -> list[list[int]]:
    """The numbers that parts of an inner join may have: those that come of the same may change places."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for at, (_, one) in enumerate(parts):
        alike.setdefault((one.origin, str(one.mark), str(one.said)), []).append(at)
    groups = [alike[key] for key in sorted(alike)]
    found = []
    for each in product(*(permutations(group) for group in groups)):
        ranked = [at for group in each for at in group]
        found.append([ranked.index(at) for at in range(len(parts))])
        if len(found) == _ORDERS_MAX:
            break
    return found


def _numbered_join(
    parts: Parts, numbers: Sequence[int], kinds: Sequence[str], ons: Sequence[exp.Expr | None], using: Sequence[str]
) -> tuple[Relation, Scope]:
    """The relation if its parts have these numbers."""
    by_alias: dict[str, Mapping[str, str] | None] = {}
    columns: list[tuple[str, str]] = []
    conditions: list[str] = []
    read: list[tuple[int, str, str, str]] = []
    within: list[str] = []
    for at, ((alias, one), number) in enumerate(zip(parts, numbers, strict=True)):
        seen = one if _may_be_opened(kinds, at, one) else origin(one.key, one.names)
        own = [(name, _of_number(what, number)) for name, what in seen.columns or ()]
        by_alias[alias] = {name.lower(): what for name, what in own}
        if not (at and kinds[0] in ("semi", "anti")):
            columns += own
        asked = [_of_number(condition, number) for condition in seen.where]
        if set(kinds) == {"inner"} or at == _kept_side(kinds):
            conditions += asked
        else:
            within += asked
        read.append((number, seen.origin, str(seen.said), str(one.mark)))
    scope = Scope(by_alias)
    held: list[str] = []
    for kind, on in zip(kinds, ons, strict=True):
        said = [*(conjuncts(on, scope) if on is not None else []), *_equal(using, by_alias), *within]
        if set(kinds) == {"inner"}:
            conditions += said
        else:
            held.append(f"{kind.replace('right', 'left')}:{sorted(set(said))}")
    if kinds[0] in ("semi", "anti"):
        scope = Scope({parts[0][0]: by_alias[parts[0][0]]})
    elif using:
        chosen = by_alias[parts[1 if kinds[0] == "right" else 0][0]] or {}
        merged = {name: chosen[name] for name in using}
        scope = Scope(by_alias, merged=merged)
        names = {name.lower(): name for name, _ in columns}
        columns = [*((names[name], what) for name, what in merged.items()),
                   *((name, what) for name, what in columns if name.lower() not in merged)]  # fmt: skip
    return Relation(f"join[{held}] of[{sorted(read)}]", tuple(columns), tuple(conditions)), scope


def _kept_side(kinds: Sequence[str]) -> int | None:
    """Which part of a join of two is never filled in with nulls; None where there are more."""
    if len(kinds) > 1:
        return None
    return {"left": 0, "right": 1, "semi": 0, "anti": 0}.get(kinds[0])


def _may_be_opened(kinds: Sequence[str], at: int, one: Relation) -> bool:
    """Whether what one side computes and asks may be done in the join.

    Of an inner join all, and of the side that an outer one keeps. An outer join fills in nulls for what the other side
    computes: it may only pick and filter, and its conditions are those of the join.
    """
    if set(kinds) == {"inner"} or at == _kept_side(kinds):
        return True
    return _kept_side(kinds) is not None and all(kind_of(what) is not None for _, what in one.columns or ())


def _equal(using: Sequence[str], by_alias: Mapping[str, Mapping[str, str] | None]) -> list[str]:
    sides = [shown or {} for shown in by_alias.values()]
    if any(name not in shown for name in using for shown in sides):
        raise Unclear("using")
    return [compared("eq", sides[0][name], sides[1][name]) for name in using]


def _of_number(text: str, number: int) -> str:
    """A text over a side's columns as one over those of a join; within quotes there is no such sign."""
    return text.replace("@", f"{number}@")
