"""What members of groups that exclude one another are told, ask for, and say to one another.

What a body owes them besides the common contract: messages arrive, in the order sent; members do not crash (Decentral
§5.2.1). `Enter` is told to an idle member, `Exit` to one that is inside.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Effect, Input, Message

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Stamp = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]


class Enter(Input, frozen=True):
    """Whoever this member acts for wants to be inside."""


class Exit(Input, frozen=True):
    """Whoever this member acts for is done inside."""


class Entered(Effect, frozen=True):
    """The member is inside, and nobody of a group in conflict with its own is."""


class Refuse(Effect, frozen=True):
    """A message was not taken, and changed nothing."""

    sender: str
    message: str
    why: str


class AskFork(Message, frozen=True):
    """Give me the fork we share, which has changed hands so many times; my request bears this stamp."""

    stamp: Stamp
    handovers: Count


class GiveFork(Message, frozen=True):
    """The fork we share, and how many times it has changed hands now; with a stamp, I ask for it again at once."""

    handovers: Stamp
    stamp: Count = 0


MESSAGES = AskFork | GiveFork
"""What members say in use; the messages below are those of forms kept to compare with."""


class Req(Message, frozen=True):
    """A request for the critical section (Algorithm 12); `attempt` counts requests to this destination."""

    stamp: Stamp
    attempt: Count = 0


class Ack(Message, frozen=True):
    """An acknowledgement (Algorithms 13-15): `renew`, its sender still requests; `end`, its sender has left."""

    attempt: Count = 0
    renew: bool = False
    end: bool = False


class End(Message, frozen=True):
    """Its sender has left, or withdraws its request for a while (Algorithms 13-15)."""

    clock: Count


class RaReq(Message, frozen=True):
    """A request in RA1 and RA2; `number` counts the requests of its sender."""

    stamp: Stamp
    number: Stamp


class RaAck(Message, frozen=True):
    """An ack for a request; how many requests its sender has done with, and who was captured with which request."""

    number: Stamp
    done: Count
    captured: tuple[tuple[str, int], ...] = ()


class RaStart(Message, frozen=True):
    """A captain captures a member of its group with this request: it enters at once (RA2)."""

    number: Stamp
