"""What does a stream hold? An origin, conditions over its columns, and what each output column is of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.spec.conditions import column

Names = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Relation:
    """What a stream holds: `columns` are names as shown and what each is of the origin, None where not known.

    `carried` are columns (lower case) that come from the origin unchanged under their own name, step by step: a
    watermark on one of them is as far as the origin is. `said` are functions as written that spelling cannot tell
    apart; `mark` is a watermark that nothing has used yet.
    """

    origin: str
    columns: tuple[tuple[str, str], ...] | None
    where: tuple[str, ...] = ()
    carried: frozenset[str] | None = frozenset()
    said: tuple[str, ...] = ()
    mark: str | None = None

    @property
    def names(self) -> Names:
        """Its columns' names as shown, in order."""
        return None if self.columns is None else tuple(name for name, _ in self.columns)

    @property
    def body(self) -> str:
        """All but the columns that are shown."""
        return f"{self.origin} where[{' & '.join(sorted(set(self.where)))}] said[{' '.join(self.said)}]"

    @property
    def key(self) -> str:
        """Equal for equal meanings; the order and the case of columns make no difference."""
        shown = None if self.columns is None else sorted(f"{name.lower()}={what}" for name, what in self.columns)
        return hashlib.sha256(f"{self.body} shows[{shown}]".encode()).hexdigest()[:32]


def origin(text: str, names: Names, types: Sequence[str | None] = ()) -> Relation:
    """A relation that nothing is known of but its name: a source, a function's result, or what has no meaning."""
    kinds = types or (None,) * len(names or ())
    columns = None
    if names is not None:
        columns = tuple((name, column(name, kind)) for name, kind in zip(names, kinds, strict=True))
    carried = None if names is None else frozenset(name.lower() for name in names)
    return Relation(text, columns, (), carried)


def renamed(one: Relation, names: Sequence[str]) -> Relation | None:
    """A relation whose columns have other names, in order; None where it has not as many, or they are not known."""
    if one.columns is None or len(one.columns) != len(names):
        return None
    pairs = list(zip(names, one.columns, strict=True))
    kept = frozenset(new.lower() for new, (old, _) in pairs if new.lower() == old.lower())
    carried = None if one.carried is None else one.carried & kept
    return replace(one, columns=tuple((new, what) for new, (_, what) in pairs), carried=carried)


def sealed(one: Relation, how: str) -> Relation:
    """A relation as an origin of its own: nothing of it may be left out."""
    shown = None if one.columns is None else sorted(f"{name.lower()}={what}" for name, what in one.columns)
    return origin(f"{how}({one.body} shows[{shown}])", one.names)
