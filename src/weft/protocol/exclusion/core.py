"""A core instance of an operator: it takes the exclusion with each neighbouring operator in turn, upstream first.

Neighbouring operators must not scale at the same time (Decentral §5.1). A core instance shares forks with the core
instances of every neighbouring operator, one exclusion for each pair of operators, and takes them one after another.
All take pairs of operators in one order: by the later operator of a pair, then by the earlier. So upstream comes before
downstream, and whoever waits for a pair waits only for those who may still take later ones: nobody waits in a circle.
The cores are fixed (Decentral's core group); other instances come and go without taking part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from weft.protocol.exclusion.member import ASKING, IDLE, INSIDE, Member
from weft.protocol.exclusion.words import Enter, Entered, Exit, Refuse
from weft.protocol.machine import Effect, IllegalStep, Input, Machine, Received


class Core(Machine):
    """Members side by side, one for each neighbouring operator, carried as one machine.

    `ranks` gives operators an order in which records pass them; without it, their names do.
    """

    __slots__ = ("group", "members", "stages")

    def __init__(
        self, name: str, group: str, competitors: Mapping[str, str], ranks: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(name)
        self.group = group
        neighbours = sorted({*competitors.values()})
        rank = ranks or {one: at for at, one in enumerate(sorted((group, *neighbours)))}
        self.stages = tuple(sorted(neighbours, key=lambda one: sorted((rank[one], rank[group]), reverse=True)))
        self.members = {
            other: Member(name, group, {peer: of for peer, of in competitors.items() if of == other})
            for other in self.stages
        }

    @property
    def state(self) -> str:
        """Idle, asking, or inside with every neighbouring operator shut out."""
        states = {member.state for member in self.members.values()}
        if states <= {INSIDE}:
            return INSIDE
        return IDLE if states == {IDLE} else ASKING

    def handle(self, input: Input) -> list[Effect]:
        """Takes one step and returns what the body must do, in order."""
        effects = self.first(input)
        self._recent.append((self.state, input, effects))
        return effects

    def first(self, input: Any) -> list[Effect]:
        """What the members concerned make of an input, and of one another's entering."""
        if isinstance(input, Received):
            for stage in self.stages:
                if input.sender in self.members[stage].competitors:
                    return self.onward(stage, self.members[stage].handle(input))
            return [Refuse(input.sender, type(input.message).__name__, "it comes from no competitor")]
        wanted = {Enter: IDLE, Exit: INSIDE}.get(type(input))
        if wanted is None or self.state != wanted:
            raise IllegalStep(self.name, self.state, input, self.story())
        if isinstance(input, Enter):
            return self.onward(self.stages[0], self.members[self.stages[0]].handle(input))
        return [effect for stage in reversed(self.stages) for effect in self.members[stage].handle(input)]

    def onward(self, stage: str, effects: list[Effect]) -> list[Effect]:
        """Once inside with one operator, asks for the next; inside with all, it says so."""
        done: list[Effect] = []
        todo = deque(effects)
        while todo:
            effect = todo.popleft()
            if not isinstance(effect, Entered) or stage == self.stages[-1]:
                done.append(effect)
                continue
            stage = self.stages[self.stages.index(stage) + 1]
            todo.extend(self.members[stage].handle(Enter()))
        return done

    def states(self) -> dict[str, str]:
        """How it stands with each neighbouring operator."""
        return {stage: member.state for stage, member in self.members.items()}

    def snapshot(self) -> bytes:
        """All members as canonical bytes."""
        return msgspec.msgpack.encode([self.members[stage].snapshot() for stage in self.stages])

    def restore(self, snapshot: bytes) -> None:
        """Takes on the states of all members."""
        for stage, held in zip(self.stages, msgspec.msgpack.decode(snapshot, type=list[bytes]), strict=True):
            self.members[stage].restore(held)
        self._recent.clear()
