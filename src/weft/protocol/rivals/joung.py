"""RA1 and RA2, Joung's two algorithms for group mutual exclusion (Decentral §2.4.3), as rivals.

RA1 is Ricart and Agrawala's algorithm between all members, where members of one group do not hold each other up. In
RA2 whoever gets inside by acks is a captain and captures the members of its own group that it knows to be asking: they
enter at once. Those whom a captured member had let pass must then wait for it: acks tell who was captured and with
which request, and a captured member says when it has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from weft.protocol.exclusion.words import Enter, Entered, Exit, RaAck, RaReq, RaStart
from weft.protocol.machine import Effect, Machine, Received, Row, Send, Step, Steps

IDLE, ASKING, INSIDE = "idle", "asking", "inside"
STATES = (IDLE, ASKING, INSIDE)


class Philosopher(Row, array_like=True):
    """What a member knows: its request and clock, who acknowledged, who waits, and what was heard of captures."""

    state: str = IDLE
    clock: int = 0
    stamp: int = 0
    number: int = 0
    """How many requests it has made."""
    acked: dict[str, int] = msgspec.field(default_factory=dict)
    """Who acknowledged this request, and how many requests the sender had done with by then."""
    waiting: dict[str, int] = msgspec.field(default_factory=dict)
    """Who is to be acknowledged on leaving."""
    let_pass: dict[str, int] = msgspec.field(default_factory=dict)
    """Requests of other groups that it acknowledged, and has not heard to be done with."""
    asking: dict[str, int] = msgspec.field(default_factory=dict)
    """The latest request heard of each member of its own group."""
    captured: dict[str, int] = msgspec.field(default_factory=dict)
    """The latest request of each member that is known to have been captured."""
    was_captured: bool = False


class Ra1(Machine):
    """RA1; `others` are all other members of all groups, with their groups."""

    __slots__ = ("group", "others")
    ROW = Philosopher
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, group: str, others: Mapping[str, str]) -> None:
        super().__init__(name)
        self.group, self.others = group, dict(sorted(others.items()))
        self.rows[name] = Philosopher()

    def key(self, input: Any) -> str:
        """All inputs are about the member itself."""
        return self.name

    @property
    def state(self) -> str:
        """Idle, asking or inside."""
        state: str = self.rows[self.name].state
        return state

    def on_enter(self, key: str, row: Philosopher, input: Enter) -> list[Effect]:
        """Asks all others."""
        row.clock += 1
        row.number += 1
        row.state, row.stamp, row.acked, row.was_captured = ASKING, row.clock, {}, False
        return [Send(other, RaReq(row.stamp, row.number)) for other in self.others]

    def on_req(self, key: str, row: Philosopher, input: Received) -> list[Effect]:
        """Acknowledges its own group, and who goes first; makes others wait."""
        peer, message = input.sender, input.message
        assert isinstance(message, RaReq)
        row.clock = max(row.clock, message.stamp)
        same = self.others[peer] == self.group
        if same:
            row.asking[peer] = message.number
        first = (message.stamp, peer) < (row.stamp, self.name)
        if same or row.state == IDLE or (row.state == ASKING and first):
            if not same:
                row.let_pass[peer] = message.number
            return [self.ack(peer, row, message.number), *self.capture(row, (peer,) if same else ())]
        row.waiting[peer] = message.number
        return []

    def on_ack(self, key: str, row: Philosopher, input: Received) -> list[Effect]:
        """Counts an ack for this request; all of them bring it inside."""
        message = input.message
        assert isinstance(message, RaAck)
        for name, number in message.captured:
            row.captured[name] = max(number, row.captured.get(name, 0))
        if message.done >= row.let_pass.get(input.sender, 0):
            row.let_pass.pop(input.sender, None)
        if row.state != ASKING or message.number != row.number:
            return []
        row.acked[input.sender] = max(message.done, row.acked.get(input.sender, 0))
        if len(row.acked) < len(self.others) or any(
            row.acked[name] < number for name, number in row.captured.items() if name in row.acked
        ):
            return []
        row.state = INSIDE
        return [Entered(), *self.capture(row, tuple(row.asking))]

    def on_exit(self, key: str, row: Philosopher, input: Exit) -> list[Effect]:
        """Acknowledges who waits."""
        row.state, row.stamp = IDLE, 0
        # Whom it let pass before it was captured waits for word that it has left.
        told = {**(row.let_pass if row.was_captured else {}), **row.waiting}
        row.waiting, row.let_pass = {}, {}
        return [self.ack(peer, row, number) for peer, number in sorted(told.items())]

    def ack(self, peer: str, row: Philosopher, number: int) -> Effect:
        """An ack for a member's request, with what is known of captures."""
        done = row.number - (row.state != IDLE)
        theirs = self.others[peer]
        captured = [(name, of) for name, of in sorted(row.captured.items()) if self.others.get(name) != theirs]
        return Send(peer, RaAck(number, done, tuple(captured)))

    def capture(self, row: Philosopher, peers: tuple[str, ...]) -> list[Effect]:
        """RA1 captures nobody."""
        return []


class Ra2(Ra1):
    """RA2: captains capture."""

    __slots__ = ()
    STEPS: ClassVar[Steps]

    def capture(self, row: Philosopher, peers: tuple[str, ...]) -> list[Effect]:
        """A captain brings in each member of its group that asks and was not captured with that request yet."""
        if row.state != INSIDE or row.was_captured:
            return []
        effects: list[Effect] = []
        for peer in peers:
            if max(row.captured.get(peer, 0), row.acked.get(peer, 0)) < row.asking[peer]:
                row.captured[peer] = row.asking[peer]
                effects.append(Send(peer, RaStart(row.asking[peer])))
        return effects

    def on_start(self, key: str, row: Philosopher, input: Received) -> list[Effect]:
        """Enters at once, where that request still stands."""
        assert isinstance(input.message, RaStart)
        if row.state != ASKING or input.message.number != row.number:
            return []
        row.state, row.was_captured = INSIDE, True
        return [Entered()]


Ra1.STEPS = {
    (IDLE, Enter): Step(Ra1.on_enter, (ASKING,)),
    **{(state, RaReq): Step(Ra1.on_req, (state,)) for state in STATES},
    (IDLE, RaAck): Step(Ra1.on_ack, (IDLE,)),
    (ASKING, RaAck): Step(Ra1.on_ack, (ASKING, INSIDE)),
    (INSIDE, RaAck): Step(Ra1.on_ack, (INSIDE,)),
    (INSIDE, Exit): Step(Ra1.on_exit, (IDLE,)),
}
Ra2.STEPS = {
    **Ra1.STEPS,
    (IDLE, RaStart): Step(Ra2.on_start, (IDLE,)),
    (ASKING, RaStart): Step(Ra2.on_start, (ASKING, INSIDE)),
    (INSIDE, RaStart): Step(Ra2.on_start, (INSIDE,)),
}
