"""The words of an ordered move. Times are those of records and of sites' clocks, in one domain (Order §4), in ms."""

from __future__ import annotations

import msgspec

from weft.protocol.words import Effect, Input, Message


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One record: its stream, its number there (a source counts what it gives), and when it happened."""

    stream: str
    number: int
    time_ms: float


class Host(Input, frozen=True):
    """An operator starts at this site, with the streams that it reads and the hold to begin with."""

    operator: str
    streams: tuple[str, ...]
    hold_ms: float = 0.0


class Arrived(Input, frozen=True):
    """A record came from its source."""

    operator: str
    record: Record
    at_ms: float


class Forwarded(Input, frozen=True):
    """A record came by way of the former site."""

    operator: str
    record: Record
    at_ms: float


class Tick(Input, frozen=True):
    """Time has passed."""

    operator: str
    at_ms: float


class Leave(Input, frozen=True):
    """The operator shall move: to which site, how long what is forwarded takes to it, and how far ahead to agree."""

    operator: str
    to: str
    at_ms: float
    forward_ms: float
    lead_ms: float = 0.0


class TakeOver(Message, frozen=True):
    """From here on: what happens after a moment is the new site's, and how long records took to the old one."""

    operator: str
    after_ms: float
    forward_ms: float
    delays_ms: tuple[tuple[str, float, float], ...]
    """Every stream with its least and its greatest delay at the old site."""


class State(Message, frozen=True):
    """All up to the agreed moment has been processed; this is what the operator knows by then."""

    operator: str
    newest_ms: float
    """The youngest record that it was handed."""


class StopForwarding(Message, frozen=True):
    """From a number on, records of a stream come by themselves."""

    operator: str
    stream: str
    below: int


class Ended(Message, frozen=True):
    """A stream is no longer forwarded; the last that was has this number, or 0."""

    operator: str
    stream: str
    last: int


class Process(Effect, frozen=True):
    """Hand a record to the operator; late is one that is older than another that was handed to it."""

    operator: str
    record: Record
    late: bool


class Forward(Effect, frozen=True):
    """Pass a record on to the new site."""

    operator: str
    to: str
    record: Record


class Subscribe(Effect, frozen=True):
    """Have a source send its records here."""

    operator: str
    stream: str


class Unsubscribe(Effect, frozen=True):
    """Have a source send its records here no longer."""

    operator: str
    stream: str


class Left(Effect, frozen=True):
    """The old site has nothing more to do with the operator."""

    operator: str
