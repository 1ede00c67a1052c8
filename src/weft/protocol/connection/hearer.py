"""What has a process heard from its peers? The last number of each one's session.

- A number not above the last is known already: it is acknowledged again and not handed on.
- A number above the next means that those between were given up by the peer: they are missed, with a word.
- A greater session begins anew: the peer has restarted. A lower one is a past life, which is no longer heard.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.protocol.connection.words import Arrived, Close, Deliver, Missed, WriteAck
from weft.protocol.machine import Effect, Machine, Row, Step, Steps

HEARING = "hearing"


class Heard(Row):
    """The session of one peer, and the last message of it that was handed on."""

    state: str = HEARING
    session: int = 0
    last: int = 0


class Hearer(Machine):
    """Hands on what each peer says, each message once and in order, and acknowledges it."""

    __slots__ = ()

    ROW: ClassVar[type[Row]] = Heard

    def key(self, input: Any) -> str:
        """The peer that an input is about."""
        peer: str = input.peer
        return peer

    def on_arrived(self, peer: str, row: Heard, input: Arrived) -> list[Effect]:
        """A message: new, known, or of a past life."""
        if input.session < row.session:
            return [Close(input.link, f"session {input.session} of {peer} is over: {row.session} has come after it")]
        begins = input.session > row.session
        if begins:
            row.session, row.last = input.session, 0
        if input.number <= row.last:
            return [WriteAck(input.link, row.session, row.last)]
        # A session that is new to this process may have been heard by its former life: that is no gap.
        gap = [] if begins or input.number == row.last + 1 else [Missed(peer, row.last, input.number)]
        row.last = input.number
        return [*gap, Deliver(peer, input.data), WriteAck(input.link, row.session, row.last)]

    STEPS: ClassVar[Steps] = {(HEARING, Arrived): Step(on_arrived, (HEARING,))}
