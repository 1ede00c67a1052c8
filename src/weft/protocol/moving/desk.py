"""The desk: a conductor and a mover side by side, carried as one machine.

What one asks of the other happens within the step: all effects of an input are done before the other hears of it, and
no input from outside comes between. Fragments' timers bear their names, those of changes `change N`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from weft.protocol.change_messages import TO_DESK, EndedAt
from weft.protocol.hosting.conductor import Conductor, ConductorLimits
from weft.protocol.hosting.words import Found, FragmentEnded, FragmentFinishes, FragmentUp, Unwant, Want
from weft.protocol.machine import Effect, Input, Machine, Received, TimerFired
from weft.protocol.moving.mover import NO_MORE, Mover, MoverLimits
from weft.protocol.moving.words import (
    Ask,
    Cancel,
    Change,
    Decided,
    Ended,
    Finishing,
    InForce,
    Leave,
    Moot,
    Tell,
    Undecided,
    Up,
    least_epoch,
)

_CHANGES = Ask | Cancel | Moot | Decided | Undecided | TO_DESK


class Desk(Machine):
    """Keeps the plan in force running and changes it; `remembered` is what an earlier life of it remembered."""

    __slots__ = ("conductor", "mover")

    def __init__(
        self,
        name: str,
        remembered: Mapping[str, int] | None = None,
        conductor_limits: ConductorLimits | None = None,
        mover_limits: MoverLimits | None = None,
    ) -> None:
        super().__init__(name)
        self.conductor = Conductor(name, remembered, conductor_limits)
        self.mover = Mover(name, mover_limits)

    def handle(self, input: Input) -> list[Effect]:
        """Takes one step and returns what the body must do, in order."""
        effects: list[Effect] = []
        todo = deque(self.first(input))
        heard: deque[Input] = deque()
        while todo or heard:
            if not todo:
                todo.extend(self.mover.handle(heard.popleft()))
                continue
            effect = todo.popleft()
            if isinstance(effect, Tell):
                for said in self.conductor.handle(effect.input):
                    self.hear(said, heard)
                    effects.append(said)
                continue
            self.hear(effect, heard)
            effects.append(effect)
        self._recent.append(("", input, effects))
        return effects

    def first(self, input: Input) -> list[Effect]:
        """What the one concerned makes of an input."""
        if isinstance(input, InForce):
            if self.mover.gives == NO_MORE:
                return []
            least = least_epoch(input.number)
            found = dict(input.found or ())
            wants = (
                Tell(Found(one.fragment, one.site, found[one.fragment], least, one.task))
                if one.fragment in found
                else Tell(Want(one.fragment, one.site, least, task=one.task))
                for one in input.starts
            )
            return [*wants, *self.mover.begin()]
        if isinstance(input, Leave):
            wanted = sorted(fragment for fragment, row in self.conductor.rows.items() if row.want)
            return [*self.mover.leave(), *(Tell(Unwant(fragment)) for fragment in wanted)]
        if isinstance(input, Change):
            return self.mover.handle(self.standing(input))
        word = input.message if isinstance(input, Received) else input
        changes = isinstance(word, _CHANGES) or (isinstance(input, TimerFired) and input.name in self.mover.rows)
        return self.mover.handle(input) if changes else self.conductor.handle(input)

    def standing(self, change: Change) -> Change:
        """A change with how those stand that it ends, as their sites have told the conductor."""
        rows = self.conductor.rows
        ends = tuple(
            msgspec.structs.replace(end, stands=rows[end.fragment].stands) if end.fragment in rows else end
            for end in change.ends
        )
        return msgspec.structs.replace(change, ends=ends)

    def hear(self, effect: Effect, heard: deque[Input]) -> None:
        """What the conductor says of a fragment's end and start, the mover hears."""
        if isinstance(effect, FragmentEnded):
            heard.append(Ended(effect.fragment, effect.change, effect.clean, effect.epoch, effect.stands))
        elif isinstance(effect, FragmentFinishes):
            heard.append(Finishing(effect.change, EndedAt(effect.fragment, effect.epoch, effect.stands)))
        elif isinstance(effect, FragmentUp):
            heard.append(Up(effect.fragment, effect.change))

    def states(self) -> dict[str, str]:
        """How fragments and changes are doing."""
        return {**self.conductor.states(), **self.mover.states()}

    def snapshot(self) -> bytes:
        """Both states as canonical bytes."""
        return msgspec.msgpack.encode((self.conductor.snapshot(), self.mover.snapshot()))

    def restore(self, snapshot: bytes) -> None:
        """Takes on both states."""
        conductor, mover = msgspec.msgpack.decode(snapshot, type=tuple[bytes, bytes])
        self.conductor.restore(conductor)
        self.mover.restore(mover)
        self._recent.clear()

    def story(self) -> tuple[str, ...]:
        """The last steps of both, the conductor's first."""
        return (*self.conductor.story(), *self.mover.story())
