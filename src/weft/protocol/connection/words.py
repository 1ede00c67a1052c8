"""What a speaker and a hearer are told, and ask for.

A connection has a number of its own within a process, greater for each one that is made. What a body owes them besides
the common contract: what is written to a connection arrives in the order written, up to where it broke; a session is
greater than any before it of the same peer.
"""

from __future__ import annotations

import msgspec

from weft.protocol.words import Effect, Input


class SpeakerLimits(msgspec.Struct, frozen=True):
    """What a speaker keeps for a peer until it is acknowledged, and how much of it may be under way at once."""

    messages_max: int = 2_000
    bytes_max: int = 16 << 20
    window: int = 64


class Offered(Input, frozen=True):
    """Something is to be said to a peer."""

    peer: str
    data: bytes


class LinkUp(Input, frozen=True):
    """A connection to a peer is there; one before it is no longer written to."""

    peer: str
    link: int


class LinkDown(Input, frozen=True):
    """A connection is gone; of what was written to it, nobody knows what arrived."""

    peer: str
    link: int


class Acked(Input, frozen=True):
    """A peer has taken all messages of this session up to a number."""

    peer: str
    session: int
    number: int


class Arrived(Input, frozen=True):
    """A message of a peer came in over a connection."""

    peer: str
    link: int
    session: int
    number: int
    data: bytes


class WriteCarry(Effect, frozen=True):
    """Write a numbered message to a connection."""

    link: int
    number: int
    data: bytes


class WriteAck(Effect, frozen=True):
    """Acknowledge, on the connection it came by, all messages of a session up to a number."""

    link: int
    session: int
    number: int


class Deliver(Effect, frozen=True):
    """Hand on what a peer has said."""

    peer: str
    data: bytes


class Lost(Effect, frozen=True):
    """A message was given up before it was acknowledged, for there was no room; who has not heard it never will."""

    peer: str
    number: int


class Missed(Effect, frozen=True):
    """Messages between two numbers were never heard: the peer had no room to keep them."""

    peer: str
    after: int
    before: int


class Close(Effect, frozen=True):
    """End a connection, whose peer belongs to a past session."""

    link: int
    why: str


def pause_ms(failures: int, least_ms: int = 100, most_ms: int = 5_000) -> int:
    """How long to wait before a connection is tried again after so many failures: twice as long each time."""
    return min(most_ms, least_ms << min(max(0, failures - 1), 16))
