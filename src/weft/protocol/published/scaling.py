"""The scaling handshake as printed (Decentral §3.3.2, Algorithms 4-10), for the explorer to break.

Which side a message comes from is looked up in the neighbour sets, which are empty before the start; one counter of
acks serves all operations, and nothing keeps a second one from beginning; who has ended answers nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.machine import Effect, Message, Received, Row, Send, Step, Steps
from weft.protocol.scaling.any_instance import ACTIVE, WAITING, AnyInstance
from weft.protocol.scaling.instance import DRAINING, ENDED
from weft.protocol.scaling.words import (
    Activated,
    Create,
    Drain,
    Drained,
    Ended,
    Grow,
    Heard,
    Leaving,
    NewInstances,
    Shrink,
    StartInstance,
)

STATES = (WAITING, ACTIVE, DRAINING, ENDED)


class Printed(Row, array_like=True):
    """The variables of Algorithms 4-10."""

    state: str = WAITING
    preds: dict[str, str] = msgspec.field(default_factory=dict)
    succs: dict[str, str] = msgspec.field(default_factory=dict)
    preds_to_add: dict[str, str] = msgspec.field(default_factory=dict)
    succs_to_add: dict[str, str] = msgspec.field(default_factory=dict)
    preds_to_delete: list[str] = msgspec.field(default_factory=list)
    succs_to_delete: list[str] = msgspec.field(default_factory=list)
    acks: int = 0
    acks_expected: int = 0
    children: list[str] = msgspec.field(default_factory=list)
    born: int = 0


class InstanceAsPublished(AnyInstance):
    """One instance, as printed."""

    __slots__ = ()
    ROW = Printed
    STEPS: ClassVar[Steps]
    SIDES = ("preds", "succs")

    def on_grow(self, key: str, row: Printed, input: Grow) -> list[Effect]:
        """Algorithm 4."""
        row.children = [f"{self.name}.{row.born + at}" for at in range(1, input.copies + 1)]
        row.born += input.copies
        made: list[Effect] = [Create(child) for child in row.children]
        return made + self.multicast(row, NewInstances(1, self.place.operator, tuple(row.children)))

    def on_shrink(self, key: str, row: Printed, input: Shrink) -> list[Effect]:
        """Algorithm 8."""
        return [] if self.keeper else self.multicast(row, Leaving(2, self.place.operator))

    def multicast(self, row: Printed, said: Message) -> list[Effect]:
        """To all successors and predecessors."""
        peers = sorted({**row.succs, **row.preds})
        row.acks, row.acks_expected = 0, len(peers)
        return [Send(peer, said) for peer in peers]

    def on_new(self, key: str, row: Printed, input: Received) -> list[Effect]:
        """Algorithm 5."""
        message = input.message
        assert isinstance(message, NewInstances)
        new = dict.fromkeys(message.instances, message.operator)
        active = row.state != WAITING
        if input.sender in row.succs:
            (row.succs if active else row.succs_to_add).update(new)
        elif input.sender in row.preds:
            (row.preds if active else row.preds_to_add).update(new)
        return [Send(input.sender, Heard(1))]

    def on_leaving(self, key: str, row: Printed, input: Received) -> list[Effect]:
        """Algorithm 9."""
        active = row.state != WAITING
        if input.sender in row.succs:
            if active:
                row.succs.pop(input.sender)
            else:
                row.succs_to_delete.append(input.sender)
        elif input.sender in row.preds:
            if active:
                row.preds.pop(input.sender)
            else:
                row.preds_to_delete.append(input.sender)
        return [Send(input.sender, Heard(2))]

    def on_heard(self, key: str, row: Printed, input: Received) -> list[Effect]:
        """Algorithms 6 and 10, which share their counter."""
        assert isinstance(input.message, Heard)
        row.acks += 1
        if row.acks != row.acks_expected:
            return []
        if input.message.number == 2:
            row.state = DRAINING
            return [Drain()]
        children, row.children = row.children, []
        start = StartInstance(tuple(sorted(row.preds.items())), tuple(sorted(row.succs.items())))
        return [Send(child, start) for child in children]

    def on_start(self, key: str, row: Printed, input: Received) -> list[Effect]:
        """Algorithm 7."""
        message = input.message
        assert isinstance(message, StartInstance)
        preds, succs = {**dict(message.ups), **row.preds_to_add}, {**dict(message.downs), **row.succs_to_add}
        row.preds = {name: of for name, of in preds.items() if name not in row.preds_to_delete}
        row.succs = {name: of for name, of in succs.items() if name not in row.succs_to_delete}
        row.state = ACTIVE
        return [Activated()]

    def on_drained(self, key: str, row: Printed, input: Drained) -> list[Effect]:
        """Algorithm 10, line 5."""
        row.state = ENDED
        return [Ended()]

    def ignore(self, key: str, row: Printed, input: Any) -> list[Effect]:
        """Who has ended, or does not run yet, decides nothing; who has ended hears nothing."""
        return []


_HEARS = (WAITING, ACTIVE, DRAINING)
_MESSAGES = (NewInstances, Leaving, Heard, StartInstance)
InstanceAsPublished.STEPS = {
    (ACTIVE, Grow): Step(InstanceAsPublished.on_grow, (ACTIVE,)),
    (ACTIVE, Shrink): Step(InstanceAsPublished.on_shrink, (ACTIVE,)),
    **{(s, wish): Step(InstanceAsPublished.ignore, (s,)) for s in STATES if s != ACTIVE for wish in (Grow, Shrink)},
    **{(state, NewInstances): Step(InstanceAsPublished.on_new, (state,)) for state in _HEARS},
    **{(state, Leaving): Step(InstanceAsPublished.on_leaving, (state,)) for state in _HEARS},
    (ACTIVE, Heard): Step(InstanceAsPublished.on_heard, (ACTIVE, DRAINING)),
    (DRAINING, Heard): Step(InstanceAsPublished.ignore, (DRAINING,)),
    (WAITING, StartInstance): Step(InstanceAsPublished.on_start, (ACTIVE,)),
    (DRAINING, Drained): Step(InstanceAsPublished.on_drained, (ENDED,)),
    **{(ENDED, message): Step(InstanceAsPublished.ignore, (ENDED,)) for message in _MESSAGES},
}
