"""What the directory at a site is told, asks for, and says to others.

What a body owes it besides the common contract: `life` is greater than in any earlier life of the site; a `Beat` comes
every so often, at all sites about equally often.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Effect, Epoch, Input, Message, Name

NAMES_MAX = 4_096
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=NAMES_MAX)]


def site_key(site: str) -> str:
    """The name under which a site itself is found, whatever it offers: so everybody's load can be asked for."""
    return f"site {site}"


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """A site offers what was asked for; its load as it last told."""

    site: Name
    load: float


class Begin(Input, frozen=True):
    """The site is there, and knows of these others."""

    members: tuple[str, ...]


class OffersAre(Input, frozen=True):
    """The streams that the site makes now, all of them, named by meaning."""

    names: tuple[str, ...]


class Loaded(Input, frozen=True):
    """How loaded the site is now."""

    load: float


class Beat(Input, frozen=True):
    """A while has passed."""


class Seek(Input, frozen=True):
    """Somebody here wants to know who offers something."""

    number: int
    name: str


class End(Input, frozen=True):
    """The site leaves in order."""


class Found(Effect, frozen=True):
    """The answer to a Seek: who offers it; nobody where that is empty."""

    number: int
    name: str
    offers: tuple[Offer, ...]


class JoinRing(Message, frozen=True):
    """A site is there, in this life; also said to one that was silent, to hear whether it is back."""

    life: Epoch


class WelcomeToRing(Message, frozen=True):
    """The answer to a JoinRing."""

    life: Epoch


class PutOffers(Message, frozen=True):
    """All that a site offers and the hearer is to hold, which replaces what was put before; empty: hold nothing."""

    life: Epoch
    number: Count
    load: float
    names: Names = ()


class OffersHeld(Message, frozen=True):
    """A PutOffers of a life of the one who offers has come; `life` is the hearer's own."""

    life: Epoch
    of: Epoch
    number: Count


class AskOffers(Message, frozen=True):
    """Who offers this?"""

    number: Count
    name: Name


class TellOffers(Message, frozen=True):
    """Who offers it, as far as this site holds."""

    number: Count
    name: Name
    offers: Annotated[tuple[Offer, ...], msgspec.Meta(max_length=NAMES_MAX)] = ()


class LeaveRing(Message, frozen=True):
    """A site has left in order, in this life."""

    life: Epoch


MESSAGES = JoinRing | WelcomeToRing | PutOffers | OffersHeld | AskOffers | TellOffers | LeaveRing
