"""What would happen to records if an ordered operator moved? Record by record, in virtual time.

Messages between the two sites, forwarded records and subscriptions take time; everything on one way keeps its order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.protocol import Effect, Received, Send
from weft.protocol.ordered_move import (
    Arrived,
    Forward,
    Forwarded,
    Host,
    Leave,
    OrderedSite,
    Process,
    Record,
    Subscribe,
    Tick,
    Unsubscribe,
)

OPERATOR, OLD, NEW = "operator", "old", "new"


@dataclass(frozen=True, slots=True)
class Given:
    """A record of a source, and how long it takes to the old and to the new site."""

    record: Record
    to_old_ms: float
    to_new_ms: float


@dataclass(slots=True)
class Moved:
    """What a move came to: records handed to the operator, which of them late, what was forwarded, and the hold."""

    processed: list[tuple[str, int]] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    """When a record was handed on late, at either site or after one that the other site had handed on."""
    forwarded: int = 0
    holds: list[tuple[float, float]] = field(default_factory=list)
    """The hold of the new site over time."""


class _Body:
    """Two sites, sources, and what is under way."""

    def __init__(self, link_ms: float, site: Callable[[str], OrderedSite]) -> None:
        self.sites = {OLD: site(OLD), NEW: site(NEW)}
        self.link_ms, self.now_ms, self.found = link_ms, 0.0, Moved()
        self.subscribed: set[tuple[str, str]] = set()
        self.newest_ms = float("-inf")
        self._events: list[tuple[float, int, str, Any]] = []
        self._count = 0
        self._last: dict[tuple[str, str], float] = {}

    def at(self, time_ms: float, site: str, what: Any, way: str = "") -> None:
        """Something is to happen; on one way nothing overtakes."""
        if way:
            time_ms = self._last[site, way] = max(time_ms, self._last.get((site, way), 0.0))
        self._count += 1
        heapq.heappush(self._events, (time_ms, self._count, site, what))

    def run(self) -> None:
        """Goes on until nothing is under way."""
        while self._events:
            self.now_ms, _, site, what = heapq.heappop(self._events)
            if isinstance(what, Given):
                for to, took_ms in ((OLD, what.to_old_ms), (NEW, what.to_new_ms)):
                    if (to, what.record.stream) in self.subscribed:
                        self.at(self.now_ms + took_ms, to, what.record, way=what.record.stream)
            elif isinstance(what, Subscribe):
                self.subscribed.add((site, what.stream))
            elif isinstance(what, Unsubscribe):
                self.subscribed.discard((site, what.stream))
            elif isinstance(what, Record):
                self.tell(site, Arrived(OPERATOR, what, self.now_ms))
            elif isinstance(what, Forward):
                self.tell(site, Forwarded(OPERATOR, what.record, self.now_ms))
            else:
                self.tell(site, what)

    def tell(self, site: str, input: Any) -> None:
        """Tells a site something, and does what it asks for."""
        for effect in self.sites[site].handle(input):
            self.perform(site, effect)
        row = self.sites[NEW].rows.get(OPERATOR)
        if row is not None and row.hold_ms and (not self.found.holds or self.found.holds[-1][1] != row.hold_ms):
            self.found.holds.append((self.now_ms, row.hold_ms))

    def perform(self, site: str, effect: Effect) -> None:
        """One effect."""
        match effect:
            case Send(to, message):
                self.at(self.now_ms + self.link_ms, to, Received(site, message), way="messages")
            case Forward(_, to, record):
                self.found.forwarded += 1
                self.at(self.now_ms + self.link_ms, to, effect, way=f"forward {record.stream}")
            case Subscribe() | Unsubscribe():
                # The source hears of it a way later.
                self.at(self.now_ms + (self.link_ms if self.now_ms > 0 else 0.0), site, effect)
            case Process(_, record, late):
                self.found.processed.append((record.stream, record.number))
                if late or record.time_ms < self.newest_ms:
                    self.found.late_ms.append(self.now_ms)
                self.newest_ms = max(self.newest_ms, record.time_ms)


def moved(
    given: Sequence[Given], leave_ms: float, link_ms: float, hold_ms: float, lead_ms: float = 0.0,
    site: Callable[[str], OrderedSite] = OrderedSite,
) -> Moved:  # fmt: skip
    """An operator moves at a moment, over a link of so many ms, from a site where its hold was `hold_ms`."""
    body = _Body(link_ms, site)
    streams = tuple(dict.fromkeys(one.record.stream for one in given))
    body.at(0.0, OLD, Host(OPERATOR, streams, hold_ms))
    for one in given:
        body.at(one.record.time_ms, "", one)
    body.at(leave_ms, OLD, Leave(OPERATOR, NEW, leave_ms, link_ms, lead_ms))
    _finish(body, given)
    return body.found


def classic(given: Sequence[Given], leave_ms: float, hold_ms: float) -> Moved:
    """Without forwarding: what happens after the moment comes by itself, and the hold is the one that was right."""
    return _alone([one for one in given if one.record.time_ms > leave_ms], hold_ms, lambda one: one.to_new_ms)


def forwarding_all(given: Sequence[Given], leave_ms: float, link_ms: float, hold_ms: float) -> Moved:
    """With full forwarding: everything goes by way of the old site for good."""
    after = [one for one in given if one.record.time_ms > leave_ms]
    found = _alone(after, hold_ms + link_ms, lambda one: one.to_old_ms + link_ms)
    found.forwarded = len(after)
    return found


def _alone(given: Sequence[Given], hold_ms: float, took_ms: Callable[[Given], float]) -> Moved:
    body = _Body(0.0, OrderedSite)
    body.at(0.0, NEW, Host(OPERATOR, tuple(dict.fromkeys(one.record.stream for one in given)), hold_ms))
    for one in given:
        body.at(one.record.time_ms + took_ms(one), NEW, one.record, way=one.record.stream)
    _finish(body, given)
    return body.found


def _finish(body: _Body, given: Sequence[Given]) -> None:
    """At the end time goes on until nothing is held back."""
    end_ms = max(one.record.time_ms for one in given) + 1e6
    for site in (OLD, NEW, OLD, NEW):
        body.at(end_ms := end_ms + 1e6, site, Tick(OPERATOR, end_ms))
    body.run()


def numbered(times_ms: Mapping[str, Sequence[float]], took: Callable[[str, float], tuple[float, float]]) -> list[Given]:
    """The records of streams in the order of time; `took` says how long each takes to the old and the new site."""
    return [
        Given(Record(stream, number, time_ms), *took(stream, time_ms))
        for stream, times in times_ms.items()
        for number, time_ms in enumerate(times, 1)
    ]
