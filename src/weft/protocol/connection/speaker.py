"""What does a process still owe its peers? Messages, numbered, kept until they are acknowledged.

- Every message to a peer gets the next number of this session, and is written in order.
- When a connection comes, all that is not acknowledged is written again, the oldest first.
- No more than a window is under way; the rest waits here. Where more waits than may, the oldest is lost, with a word.
- An acknowledgement of what was never written is none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.connection.words import Acked, LinkDown, LinkUp, Lost, Offered, SpeakerLimits, WriteCarry
from weft.protocol.machine import Effect, Machine, Row, Step, Steps

APART, LINKED = "apart", "linked"
BOTH = (APART, LINKED)


class Owed(Row):
    """What one peer has not acknowledged yet: consecutive numbers, the last of which is `last`."""

    state: str = APART
    link: int = 0
    last: int = 0
    written: int = 0
    """The last that was written to this connection."""
    base: int = 0
    """The window begins after this: acknowledged, or no longer owed when nothing was under way."""
    held: list[bytes] = msgspec.field(default_factory=list)
    held_bytes: int = 0

    @property
    def first(self) -> int:
        """The number of the oldest message that is held."""
        return self.last - len(self.held) + 1


class Speaker(Machine):
    """Numbers what is said to each peer, keeps it until it is acknowledged, and says it again over a new connection."""

    __slots__ = ("limits", "session")

    ROW: ClassVar[type[Row]] = Owed

    def __init__(self, name: str, session: int, limits: SpeakerLimits) -> None:
        super().__init__(name)
        self.session = session
        self.limits = limits

    def key(self, input: Any) -> str:
        """The peer that an input is about."""
        peer: str = input.peer
        return peer

    def on_offered(self, peer: str, row: Owed, input: Offered) -> list[Effect]:
        """One message more, and perhaps one too many."""
        row.last += 1
        row.held.append(input.data)
        row.held_bytes += len(input.data)
        lost: list[Effect] = []
        limits = self.limits
        while len(row.held) > 1 and (len(row.held) > limits.messages_max or row.held_bytes > limits.bytes_max):
            lost.append(Lost(peer, row.first))
            row.held_bytes -= len(row.held.pop(0))
        return lost + self.write(row)

    def on_up(self, peer: str, row: Owed, input: LinkUp) -> list[Effect]:
        """A connection: what was written to the one before may be gone."""
        if input.link <= row.link:
            return []
        row.state, row.link = LINKED, input.link
        row.written = row.base = row.first - 1
        return self.write(row)

    def on_down(self, peer: str, row: Owed, input: LinkDown) -> list[Effect]:
        """The connection is gone, unless it was replaced already."""
        if input.link == row.link:
            row.state = APART
        return []

    def on_acked(self, peer: str, row: Owed, input: Acked) -> list[Effect]:
        """The peer has taken some; there is room for more under way."""
        if input.session != self.session or input.number > row.last:
            return []
        while row.held and row.first <= input.number:
            row.held_bytes -= len(row.held.pop(0))
        row.base = max(row.base, input.number)
        return self.write(row)

    def write(self, row: Owed) -> list[Effect]:
        """What may go out now."""
        written: list[Effect] = []
        if row.state == LINKED:
            if row.base >= row.written:  # nothing is under way: what fell out meanwhile is not waited for
                row.written = row.base = max(row.base, row.first - 1)
            upto = min(row.last, row.base + self.limits.window)
            for number in range(max(row.written + 1, row.first), upto + 1):
                written.append(WriteCarry(row.link, number, row.held[number - row.first]))
                row.written = number
        return written

    def extra(self) -> Any:
        """The session, for the snapshot."""
        return self.session

    def set_extra(self, extra: Any) -> None:
        """Takes the session back."""
        self.session = extra

    STEPS: ClassVar[Steps] = {
        (APART, Offered): Step(on_offered, (APART,)),
        (LINKED, Offered): Step(on_offered, (LINKED,)),
        (APART, Acked): Step(on_acked, (APART,)),
        (LINKED, Acked): Step(on_acked, (LINKED,)),
        (APART, LinkUp): Step(on_up, BOTH),
        (LINKED, LinkUp): Step(on_up, (LINKED,)),
        (APART, LinkDown): Step(on_down, (APART,)),
        (LINKED, LinkDown): Step(on_down, BOTH),
    }
