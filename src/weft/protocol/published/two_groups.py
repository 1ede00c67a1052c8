"""2-FGME, mutual exclusion of two fixed groups (Decentral §5.2, Algorithms 12-15): as published, and corrected.

As published it breaks in small worlds: members of both groups inside, idle ones that enter, waits without end. The
correction has two parts, both needed. *Tag*: a request bears the number of the attempt at its destination, the ack
echoes it, and counts only for the latest attempt at one that is not to be asked again. *Self*: who acknowledges a
requester whose ack it holds drops that ack, and asks again later. It stays open to ask-again storms under long delays;
`member` has the form without them, which is the one in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from weft.protocol.exclusion.words import Ack, End, Enter, Entered, Exit, Req
from weft.protocol.machine import Effect, Machine, Message, Received, Row, Send, Step, Steps

IDLE, REQUESTING, IN_CS = "idle", "requesting", "in_cs"
STATES = (IDLE, REQUESTING, IN_CS)


class Node(Row, array_like=True):
    """The variables of Algorithm 12; `stamp` is the clock of its request, 0 for none. Sets are sorted lists."""

    state: str = IDLE
    clock: int = 0
    stamp: int = 0
    waiting_reqs: dict[str, int] = msgspec.field(default_factory=dict)
    """Who waits for an ack, and the attempt it waits with."""
    reqs_to_send: list[str] = msgspec.field(default_factory=list)
    acks_to_ign: list[str] = msgspec.field(default_factory=list)
    acks_rcvd: list[str] = msgspec.field(default_factory=list)
    competitors_authorized: bool = False
    attempts: dict[str, int] = msgspec.field(default_factory=dict)


def _with(names: list[str], name: str) -> list[str]:
    return sorted({*names, name})


def _without(names: list[str], name: str) -> list[str]:
    return [one for one in names if one != name]


class TwoGroups(Machine):
    """2-FGME, corrected."""

    __slots__ = ("competitors", "group")
    ROW = Node
    STEPS: ClassVar[Steps]
    CORRECTED: ClassVar[bool] = True

    def __init__(self, name: str, group: str, competitors: Mapping[str, str]) -> None:
        super().__init__(name)
        self.group, self.competitors = group, tuple(sorted(competitors))
        self.rows[name] = Node()

    def key(self, input: Any) -> str:
        """All inputs are about the node itself."""
        return self.name

    @property
    def state(self) -> str:
        """Idle, requesting or in the critical section."""
        state: str = self.rows[self.name].state
        return state

    def on_enter(self, key: str, row: Node, input: Enter) -> list[Effect]:
        """Lines 8-17."""
        row.clock += 1
        row.state, row.stamp, row.acks_rcvd = REQUESTING, row.clock, []
        if row.competitors_authorized:
            row.reqs_to_send = list(self.competitors)
            return []
        return self.ask(row, self.competitors)

    def on_req(self, key: str, row: Node, input: Received) -> list[Effect]:
        """Lines 18-57."""
        peer, message = input.sender, input.message
        assert isinstance(message, Req)
        row.clock = max(row.clock, message.stamp)
        first = row.state == IDLE or (message.stamp, peer) < (row.stamp, self.name)
        if row.state != IN_CS and first:
            return self.authorize(row, peer, message.attempt)
        if row.state != IN_CS and row.competitors_authorized:
            effects: list[Effect] = []
            if peer not in row.reqs_to_send:
                effects.append(Send(peer, End(row.clock)))
                self.withdraw(row, peer)
            return [*effects, Send(peer, Ack(message.attempt, renew=True))]
        row.waiting_reqs[peer] = message.attempt
        return []

    def authorize(self, row: Node, peer: str, attempt: int) -> list[Effect]:
        """Lines 20-40: the requester goes first, and its group with it."""
        effects: list[Effect] = [Send(peer, Ack(attempt))]
        if self.CORRECTED and row.state == REQUESTING and peer in row.acks_rcvd:
            row.acks_rcvd = _without(row.acks_rcvd, peer)
            row.reqs_to_send = _with(row.reqs_to_send, peer)
        if row.competitors_authorized:
            return effects
        row.competitors_authorized = True
        if row.state == IDLE:
            return effects
        for other in self.competitors:
            if other == peer:
                continue
            if other in row.waiting_reqs:
                effects.append(Send(other, Ack(row.waiting_reqs.pop(other), renew=True)))
            else:
                effects.append(Send(other, End(row.clock)))
            self.withdraw(row, other)
        return effects

    def withdraw(self, row: Node, peer: str) -> None:
        """Lines 32-37 and 45-50: its ack no longer counts."""
        row.reqs_to_send = _with(row.reqs_to_send, peer)
        if peer in row.acks_rcvd:
            row.acks_rcvd = _without(row.acks_rcvd, peer)
        elif not self.CORRECTED:
            row.acks_to_ign = _with(row.acks_to_ign, peer)

    def on_ack(self, key: str, row: Node, input: Received) -> list[Effect]:
        """Lines 58-76."""
        peer, message = input.sender, input.message
        assert isinstance(message, Ack)
        effects: list[Effect] = []
        counts = self.counts(row, peer, message)
        if message.end or message.renew:
            row.competitors_authorized = False
        if message.end:
            row.acks_to_ign = _without(row.acks_to_ign, peer)
            effects = self.ask_again(row)
            counts = counts and (self.CORRECTED or peer not in row.acks_to_ign)
        if not self.CORRECTED and peer in row.acks_to_ign:
            row.acks_to_ign = _without(row.acks_to_ign, peer)
            return effects
        if not counts:
            return effects
        row.acks_rcvd = _with(row.acks_rcvd, peer)
        if row.acks_rcvd != list(self.competitors):
            return effects
        row.state = IN_CS
        return [*effects, Entered()]

    def counts(self, row: Node, peer: str, message: Ack) -> bool:
        """Whether an ack answers the latest request, and that still stands; as published, any does."""
        if not self.CORRECTED:
            return True
        latest = message.attempt == row.attempts.get(peer, 0)
        return row.state == REQUESTING and latest and peer not in row.reqs_to_send

    def on_end(self, key: str, row: Node, input: Received) -> list[Effect]:
        """Lines 77-86."""
        assert isinstance(input.message, End)
        row.clock = max(row.clock, input.message.clock)
        row.competitors_authorized = False
        row.waiting_reqs.pop(input.sender, None)
        return self.ask_again(row)

    def on_exit(self, key: str, row: Node, input: Exit) -> list[Effect]:
        """Lines 87-98."""
        row.state, row.stamp = IDLE, 0
        if row.waiting_reqs:
            row.competitors_authorized = True
        acks = {peer: Ack(attempt, end=True) for peer, attempt in row.waiting_reqs.items()}
        row.waiting_reqs, row.acks_to_ign = {}, []
        said: dict[str, Message] = {peer: acks.get(peer, End(row.clock)) for peer in self.competitors}
        return [Send(peer, message) for peer, message in said.items()]

    def ask_again(self, row: Node) -> list[Effect]:
        """Lines 63-65 and 83-85; nothing is left to take out of `acks_to_ign` once `reqs_to_send` is empty."""
        again, row.reqs_to_send = row.reqs_to_send, []
        return self.ask(row, again)

    def ask(self, row: Node, peers: Iterable[str]) -> list[Effect]:
        """A request to each, with the number of the attempt there."""
        effects: list[Effect] = []
        for peer in peers:
            if self.CORRECTED:
                row.attempts[peer] = row.attempts.get(peer, 0) + 1
            effects.append(Send(peer, Req(row.stamp, row.attempts.get(peer, 0))))
        return effects


class TwoGroupsAsPublished(TwoGroups):
    """2-FGME as printed."""

    __slots__ = ()
    CORRECTED = False


TwoGroups.STEPS = {
    (IDLE, Enter): Step(TwoGroups.on_enter, (REQUESTING,)),
    **{(state, Req): Step(TwoGroups.on_req, (state,)) for state in STATES},
    # As published, an ack may bring even an idle node inside.
    **{(state, Ack): Step(TwoGroups.on_ack, (state, IN_CS)) for state in STATES},
    **{(state, End): Step(TwoGroups.on_end, (state,)) for state in STATES},
    (IN_CS, Exit): Step(TwoGroups.on_exit, (IDLE,)),
}
