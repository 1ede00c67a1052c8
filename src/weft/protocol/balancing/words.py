"""What sites say to one another when they balance, what they are told, and what they ask of their bodies.

Loads are whole numbers, one per resource that counts (memory, CPU or both), in units that all sites share.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Effect, Input, Message

PARTS_MAX = 2_000

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
Loads = Annotated[tuple[Amount, ...], msgspec.Meta(min_length=1, max_length=8)]
Picks = Annotated[tuple[Annotated[int, msgspec.Meta(ge=0, lt=PARTS_MAX)], ...], msgspec.Meta(max_length=PARTS_MAX)]


class Part(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An operator with its load."""

    operator: Name
    loads: Loads


Transfer = Annotated[tuple[Part, ...], msgspec.Meta(min_length=1, max_length=PARTS_MAX)]
"""Operators that go together or not at all."""
Transfers = Annotated[tuple[Transfer, ...], msgspec.Meta(max_length=PARTS_MAX)]


class Offer(Message, frozen=True):
    """An overloaded site asks a neighbour which of these transfers it would take (opOfferRequest)."""

    number: Number
    transfers: Transfers


class OfferReply(Message, frozen=True):
    """Room is kept for the transfers accepted, by their places in the offer; urgent: the site is underloaded."""

    number: Number
    accepted: Picks = ()
    urgent: bool = False


class Demand(Message, frozen=True):
    """An underloaded site asks a neighbour for operators, of so much load at most (opDemandRequest)."""

    number: Number
    room: Loads


class DemandReply(Message, frozen=True):
    """These transfers are kept ready, all of them; urgent: the site is overloaded."""

    number: Number
    transfers: Transfers = ()
    urgent: bool = False


class Pick(Message, frozen=True):
    """Hand over these of the transfers kept ready, by their places in the reply (opDemandTransferRequest)."""

    number: Number
    picked: Picks


class Clear(Message, frozen=True):
    """Of this negotiation nothing more will come: forget what is kept for it."""

    number: Number


class Handover(Message, frozen=True):
    """These operators run nowhere now; take them (opOfferTransferRequest). Said again until it is answered."""

    number: Number
    serial: Number
    operators: Transfer
    reason: Reason = ""


class Taken(Message, frozen=True):
    """The operators of this handover run here (opOfferTransferReply)."""

    serial: Number


class NotTaken(Message, frozen=True):
    """The operators of this handover do not run here and never will by it."""

    serial: Number
    reason: Reason = ""


class Begin(Input, frozen=True):
    """The site is up: run what it answers for, and go on with what was under way."""


class Check(Input, frozen=True):
    """A period has passed: this is what operators take now; those that are not named take what they took."""

    loads: tuple[Part, ...] = ()


class Stopped(Input, frozen=True):
    """The operators that were to stop for a neighbour have worked off what they had, and run no more."""

    peer: str
    serial: int


class Settle(Input, frozen=True):
    """Every answer is in: these transfers were chosen of a neighbour's (told by the machine to itself)."""

    chosen: Picks


class Remember(Effect, frozen=True):
    """Write down what must outlive a crash, at once and before the effects that follow: `Memory.after` says how."""

    count: int
    verb: str = ""
    peer: str = ""
    serial: int = 0
    number: int = 0
    operators: tuple[Part, ...] = ()
    reason: str = ""


class Stop(Effect, frozen=True):
    """Let operators work off what they have and stop, then tell `Stopped`; what comes for them waits."""

    peer: str
    serial: int
    operators: tuple[str, ...]


class Start(Effect, frozen=True):
    """Run operators, with the state they came with; `giver` is the site they came from, empty where they were here."""

    operators: tuple[str, ...]
    giver: str = ""
    reason: str = ""


class Refuse(Effect, frozen=True):
    """A message was refused and nothing changed; for the story."""

    sender: str
    message: str
    reason: str


MESSAGES = Offer | OfferReply | Demand | DemandReply | Pick | Clear | Handover | Taken | NotTaken
