"""What a site is told of the delays of a query, asks for, and says to others.

What a body owes it besides the common contract: `life` is greater than in any earlier life of the site; a `Beat` comes
every so often for every query, at all sites about equally often. Times are whole milliseconds.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.words import Effect, Epoch, Input, Message, Name

OPERATORS_MAX = 1_024
SITES_MAX = 1_024
QUERIES_MAX = 1_024
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Sites = Annotated[tuple[Name, ...], msgspec.Meta(max_length=SITES_MAX)]
Times = Annotated[tuple[tuple[Name, Millis], ...], msgspec.Meta(max_length=OPERATORS_MAX)]


class TakesPart(Input, frozen=True):
    """Operators of a query run at these sites, this one among them; what is measured goes through the hub."""

    query: str
    hub: str
    sites: tuple[str, ...]


class LeavesOff(Input, frozen=True):
    """Nothing of a query runs here any more."""

    query: str


class DelayMeasured(Input, frozen=True):
    """How long records of a query were at its operators here; at the site of its results, what these took in all."""

    query: str
    took_ms: Times
    delay_ms: int | None = None


class DelayBeat(Input, frozen=True):
    """A while has passed for a query."""

    query: str


class DelaysAre(Effect, frozen=True):
    """What is known here of a query by now: words of sites, this one's too, of those not silent for too long."""

    query: str
    words: tuple[DelayWord, ...]


class DelayWord(msgspec.Struct, frozen=True, array_like=True):
    """What a site has measured, as it says itself; `number` rises within a life."""

    site: Name
    life: Epoch
    number: Count
    took_ms: Times = ()
    delay_ms: Millis | None = None


class DelayTold(Message, frozen=True):
    """A word about a query, from whoever measured it or handed on."""

    query: Name
    word: DelayWord


class DelayPart(msgspec.Struct, frozen=True, array_like=True):
    """A query, the site through which its delays go, and all its sites."""

    query: Name
    hub: Name
    sites: Sites


class DelayParts(Message, frozen=True):
    """All the queries that a site takes part in; of others it need know nothing any more."""

    parts: Annotated[tuple[DelayPart, ...], msgspec.Meta(max_length=QUERIES_MAX)] = ()


MESSAGES = DelayTold | DelayParts
