"""What can stand at a place of a state, and the inputs that only stories know."""

from __future__ import annotations

from typing import NamedTuple

from weft.protocol import Input, Message

Pair = tuple[str, str]
TIMERS, GROUND, FAULTS = "timers", "ground", "faults"


class Queue(NamedTuple):
    """Messages under way between two machines; numbered 0 where there are none."""

    pair: Pair
    messages: tuple[Message, ...]


class Snapshot(NamedTuple):
    """A machine as it is."""

    site: str
    snapshot: bytes


class Timers(NamedTuple):
    """The timers that are set; numbered 0 where there are none."""

    timers: tuple[tuple[str, str], ...]


class Place(NamedTuple):
    """How far a script has been told."""

    script: int
    told: int


class Faults(NamedTuple):
    """How often what has gone wrong."""

    early: int = 0
    lost: int = 0
    overtaken: int = 0
    crashed: int = 0
    doubled: int = 0
    torn: int = 0


class Lost(Input, frozen=True):
    """A message that never arrived."""

    sender: str
    message: Message


class Crashed(Input, frozen=True):
    """A machine that lost what it had not remembered."""


class CrashedAfter(Input, frozen=True):
    """A machine that crashed in the midst of a step, after so many of its effects."""

    input: Input
    effects: int
