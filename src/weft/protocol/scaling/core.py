"""A core instance: it scales only while no neighbouring operator does (Decentral §5.1).

The core instances of an operator are fixed; each answers for the instances it made. Told to grow or shrink, it takes
the exclusion with every neighbouring operator, upstream first; then it makes instances, or retires the last one it
made; and leaves when that is done. The handshake between instances stays the same, and would hold without it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.protocol.exclusion.core import Core
from weft.protocol.exclusion.member import INSIDE
from weft.protocol.exclusion.words import AskFork, Enter, Entered, Exit, GiveFork, Refuse
from weft.protocol.machine import Effect, Input, Machine, Received, Send
from weft.protocol.scaling.any_instance import ACTIVE, Place
from weft.protocol.scaling.instance import Instance
from weft.protocol.scaling.words import Create, Grow, Retire, Retired, Shrink

_NOTHING, _SHRINK = 0, -1


class CoreInstance(Machine):
    """A core and an instance side by side, carried as one machine; `cores` are those of neighbouring operators."""

    __slots__ = ("children", "core", "instance", "wish")

    def __init__(
        self, name: str, place: Place, ups: dict[str, str], downs: dict[str, str], cores: Mapping[str, str],
        ranks: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self.core = Core(name, place.operator, cores, ranks)
        self.instance = Instance(name, place, ups, downs, keeper=True)
        self.children: list[str] = []
        self.wish = _NOTHING

    @property
    def state(self) -> str:
        """That of its instance."""
        return self.instance.state

    @property
    def ups(self) -> dict[str, str]:
        """The instances that may send records here, with their operators."""
        return self.instance.ups

    @property
    def downs(self) -> dict[str, str]:
        """The instances that records are sent to, with their operators."""
        return self.instance.downs

    @property
    def place(self) -> Place:
        """Where its operator stands."""
        return self.instance.place

    @property
    def scales(self) -> bool:
        """Whether an operation is under way."""
        return self.wish != _NOTHING and self.core.state == INSIDE

    def handle(self, input: Input) -> list[Effect]:
        """Takes one step and returns what the body must do, in order."""
        effects = self.first(input)
        self._recent.append((self.state, input, effects))
        return effects

    def first(self, input: Any) -> list[Effect]:
        """What the one concerned makes of an input."""
        if isinstance(input, Grow | Shrink):
            return self.want(input.copies if isinstance(input, Grow) else _SHRINK)
        if isinstance(input, Received) and isinstance(input.message, AskFork | GiveFork):
            return self.onward(self.core.handle(input))
        if isinstance(input, Received) and isinstance(input.message, Retired):
            return self.retired(input)
        effects = self.instance.handle(input)
        done = self.scales and self.wish > 0 and self.instance.state == ACTIVE
        return effects + self.leave() if done else effects

    def want(self, wish: int) -> list[Effect]:
        """One operation at a time; only what it made can end."""
        if self.wish != _NOTHING or (wish == _SHRINK and not self.children):
            return []
        self.wish = wish
        return self.onward(self.core.handle(Enter()))

    def onward(self, effects: list[Effect]) -> list[Effect]:
        """Once inside, does what it was told to; who enters has nothing else to say."""
        if effects != [Entered()]:
            return effects
        if self.wish == _SHRINK:
            return [Send(self.children[-1], Retire())]
        grown = self.instance.handle(Grow(self.wish))
        self.children += [effect.instance for effect in grown if isinstance(effect, Create)]
        return grown

    def retired(self, input: Received) -> list[Effect]:
        """The last instance it made has ended."""
        if not (self.scales and self.wish == _SHRINK and input.sender == self.children[-1]):
            return [Refuse(input.sender, "Retired", "it was not to end")]
        self.children.pop()
        return self.leave()

    def leave(self) -> list[Effect]:
        """Lets others scale."""
        self.wish = _NOTHING
        return self.core.handle(Exit())

    def snapshot(self) -> bytes:
        """Both parts as canonical bytes."""
        return msgspec.msgpack.encode((self.core.snapshot(), self.instance.snapshot(), self.children, self.wish))

    def restore(self, snapshot: bytes) -> None:
        """Takes on both parts."""
        core, instance, self.children, self.wish = msgspec.msgpack.decode(
            snapshot, type=tuple[bytes, bytes, list[str], int]
        )
        self.core.restore(core)
        self.instance.restore(instance)
        self._recent.clear()
