"""What does every instance have, ours and the published one? A place in its query, a state, and neighbours."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.machine import Machine

WAITING, ACTIVE = "waiting", "active"


class Place(msgspec.Struct, frozen=True):
    """Where an operator stands in its query: the operators before and after it."""

    operator: str
    upstream: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()


class AnyInstance(Machine):
    """An instance as bodies see it; its one row begins with its state and the neighbours on both sides."""

    __slots__ = ("keeper", "place")
    SIDES: ClassVar[tuple[str, str]] = ("ups", "downs")
    """What the row calls the neighbours before and after, with their operators."""

    def __init__(
        self,
        name: str,
        place: Place,
        ups: dict[str, str] | None = None,
        downs: dict[str, str] | None = None,
        keeper: bool = False,
    ) -> None:
        super().__init__(name)
        self.place, self.keeper = place, keeper
        active = ups is not None or downs is not None
        row: Any = self.ROW
        self.rows[name] = row(ACTIVE if active else WAITING, dict(ups or {}), dict(downs or {}))

    def key(self, input: Any) -> str:
        """All inputs are about the instance itself."""
        return self.name

    @property
    def state(self) -> str:
        """Waiting, active, on its way to more or to its end, or ended."""
        state: str = self.rows[self.name].state
        return state

    @property
    def ups(self) -> dict[str, str]:
        """The instances that may send records here, with their operators."""
        ups: dict[str, str] = getattr(self.rows[self.name], self.SIDES[0])
        return ups

    @property
    def downs(self) -> dict[str, str]:
        """The instances that records are sent to, with their operators."""
        downs: dict[str, str] = getattr(self.rows[self.name], self.SIDES[1])
        return downs
