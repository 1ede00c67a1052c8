"""What is known of a peer? Where it is, its line, its clock; and what went wrong, told without filling a disk."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.bodies.live.wire.line import Line
from weft.bodies.live.wire.parties import Party
from weft.bodies.live.wire.traffic import Traffic

KINDS_MAX = 1_000
NEW = 0.25
"""How much the last round trip counts beside those before it."""


class Clock(NamedTuple):
    """How far a peer's clock is ahead of ours, and how long a word and its answer took then."""

    ahead_ms: float
    round_trip_ms: float


@dataclass(slots=True)
class Peer:
    """One other process."""

    party: Party
    line: Line
    where: tuple[str, int] | None = None
    calling: bool = False
    accepted: int = 0
    failures: int = 0
    clock: Clock | None = None
    round_trip_ms: float | None = None
    """As it is of late: clocks are told apart by the quickest, this follows what changes."""
    traffic: Traffic = field(default_factory=Traffic)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    _asked: dict[tuple[int, int], float] = field(default_factory=dict)

    def asked(self, link: int, number: int) -> None:
        """A ping goes out."""
        self._asked = {key: at for key, at in self._asked.items() if key[1] > number - 5}
        self._asked[link, number] = time.time() * 1000

    def answered(self, link: int, number: int, clock_ms: float) -> None:
        """Its answer is here; the quickest one of a connection's first tells the clocks apart best."""
        sent_ms = self._asked.pop((link, number), None)
        if sent_ms is None:
            return
        now_ms = time.time() * 1000
        found = Clock(clock_ms - (sent_ms + now_ms) / 2, now_ms - sent_ms)
        before_ms = self.round_trip_ms
        self.round_trip_ms = (
            found.round_trip_ms if before_ms is None else (1 - NEW) * before_ms + NEW * found.round_trip_ms
        )
        if self.clock is None or number in (1, 6) or found.round_trip_ms <= self.clock.round_trip_ms * 1.5:
            self.clock = found


class Tally:
    """Counts what went wrong, by what it was, and tells of it when it was the first, second, fourth, eighth time."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.counts: dict[str, int] = {}
        self._tell = tell

    def note(self, what: str) -> None:
        """Something went wrong once more."""
        # Addresses of memory, ports and sizes differ each time: what is alike without its numbers is one kind.
        kind = re.sub(r"\d+", "#", what)[:200]
        if kind not in self.counts and len(self.counts) >= KINDS_MAX:
            kind = "other"
        count = self.counts[kind] = self.counts.get(kind, 0) + 1
        if count & (count - 1) == 0:
            self._tell(f"# {what}" + (f" ({count} times)" if count > 1 else ""))
