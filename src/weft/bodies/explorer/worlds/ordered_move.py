"""Worlds for ordered moves: two sources, an old and a new site, and ways between them that take so many steps of time.

Records take from the least to the greatest time of their way, in every order that this allows; what machines say to one
another takes as long as it likes. Time goes on when nothing that is on its way has to come.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from weft.bodies.explorer.world import Choice, Claim, Taken, View, World
from weft.protocol import Effect, Input, Send
from weft.protocol.ordered_move import (
    Arrived,
    Forward,
    Forwarded,
    Host,
    Leave,
    Left,
    OrderedSite,
    Process,
    Record,
    Subscribe,
    TakeOver,
    Tick,
    Unsubscribe,
)
from weft.protocol.published.ordered_move import OrderedSiteAsPublished

OPERATOR = "pass"
OLD, NEW = "old", "new"
ONCE = "no record is processed twice"
LATE = "nothing is late because of the move"
MEASURED = "the new site is told how long records took to the old one"
SAID = "what is late is said to be, and nothing else"
FORWARD = "forward"
OVER = 1e6

Way = tuple[int, int]
"""The least and the greatest time that records take."""


class Gives(NamedTuple):
    """A source: the moments at which it gives a record, and its ways to the old and to the new site."""

    stream: str
    at: tuple[int, ...]
    to_old: Way
    to_new: Way


class Sent(NamedTuple):
    """A record on a way, and when it was sent."""

    record: Record
    at: int


class Field(msgspec.Struct, frozen=True):
    """The clock, who gets what, what is on which way, and what was processed."""

    sources: tuple[Gives, ...]
    forward: Way
    leave_at: int
    lead: int
    timed: bool = True
    """Whether ways always take as long, so that nothing is late."""
    hold: int | None = None
    """The hold to begin with; None: as long as the longest way to the old site."""
    now: int = 0
    begun: int = 0
    """0 before the operator runs, 1 when it does, 2 when it was told to leave."""
    more: tuple[str, ...] = ()
    """Streams that gave one record more at the end, since none had come by itself yet."""
    subscribed: tuple[tuple[str, str], ...] = ()
    ways: tuple[tuple[str, str, tuple[Sent, ...]], ...] = ()
    done: tuple[tuple[str, int], ...] = ()
    newest: float = -1.0
    left: bool = False
    fault: str = ""

    def perform(self, site: str, effect: Effect) -> Field:
        """The ground after an effect."""
        match effect:
            case Subscribe(_, stream):
                return self.but(subscribed=tuple(sorted({*self.subscribed, (stream, site)})))
            case Unsubscribe(_, stream):
                return self.but(subscribed=tuple(one for one in self.subscribed if one != (stream, site)))
            case Forward(_, _, record):
                return self.put(FORWARD, record.stream, Sent(record, self.now))
            case Process(_, record, late):
                one = (record.stream, record.number)
                is_late = record.time_ms < self.newest
                wrong = ONCE if one in self.done else SAID if late != is_late else LATE if is_late else ""
                # Where ways change, some are late: that does not hide what is wrong after it.
                fault = wrong if self.timed or wrong != LATE else ""
                newest = max(self.newest, record.time_ms)
                return self.but(done=tuple(sorted({*self.done, one})), newest=newest, fault=self.fault or fault)
            case Left():
                return self.but(left=True)
        return self

    def choices(self) -> Iterator[Choice]:
        """A record arrives, time goes on, or, when all is over, a site looks at the clock."""
        if not self.begun:
            hold = max(one.to_old[1] for one in self.sources) if self.hold is None else self.hold
            told: Input = Host(OPERATOR, tuple(one.stream for one in self.sources), float(hold))
            yield Choice(OLD, told, self.but(begun=1))
            return
        leaves = self.begun == 1 and self.now == self.leave_at
        if leaves:
            told = Leave(OPERATOR, NEW, float(self.now), float(self.forward[1]), float(self.lead))
            yield Choice(OLD, told, self.but(begun=2))
        waits = leaves
        for way, stream, sent in self.ways:
            least, most = self.bounds(way, stream)
            took = self.now - sent[0].at
            waits = waits or took >= most
            if took >= least:
                fact = Forwarded if way == FORWARD else Arrived
                after = self.set(way, stream, sent[1:])
                yield Choice(NEW if way == FORWARD else way, fact(OPERATOR, sent[0].record, float(self.now)), after)
        if waits:
            return
        if self.ways or self.now < max(at for source in self.sources for at in source.at):
            yield Choice(OLD, Tick(OPERATOR, float(self.now)), self.later(), heard=False)
            return
        for site in (OLD, NEW):
            yield Choice(site, Tick(OPERATOR, OVER), self)
        for source in self.sources:
            stream = source.stream
            if stream not in self.more and {(stream, OLD), (stream, NEW)} <= {*self.subscribed}:
                # Rare as it may be, a stream that is alive gives a record some time.
                after = self.but(now=self.now + 1, more=tuple(sorted((*self.more, stream))))
                record = Record(stream, len(source.at) + 1, float(after.now))
                yield Choice(OLD, Tick(OPERATOR, float(after.now)), after.give(record), heard=False)

    def later(self) -> Field:
        """One step of time: sources give what happens now."""
        ground = self.but(now=self.now + 1)
        for source in self.sources:
            if ground.now in source.at:
                ground = ground.give(Record(source.stream, source.at.index(ground.now) + 1, float(ground.now)))
        return ground

    def give(self, record: Record) -> Field:
        """A source sends a record to whoever gets its stream."""
        ground = self
        for stream, site in self.subscribed:
            if stream == record.stream:
                ground = ground.put(site, stream, Sent(record, self.now))
        return ground

    def bounds(self, way: str, stream: str) -> Way:
        """How long records take on a way."""
        source = next(one for one in self.sources if one.stream == stream)
        return {OLD: source.to_old, NEW: source.to_new, FORWARD: self.forward}[way]

    def put(self, way: str, stream: str, sent: Sent) -> Field:
        """One record more on a way."""
        before = next((held for one, name, held in self.ways if (one, name) == (way, stream)), ())
        return self.set(way, stream, (*before, sent))

    def set(self, way: str, stream: str, sent: tuple[Sent, ...]) -> Field:
        """The ground with a way in another state."""
        others = [one for one in self.ways if one[:2] != (way, stream)]
        return self.but(
            ways=tuple(sorted([*others, *([(way, stream, sent)] if sent else [])], key=lambda one: one[:2]))
        )

    def crash(self, site: str) -> Field:
        """Nobody crashes here."""
        return self

    def but(self, **changes: Any) -> Field:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def quiet(view: View) -> bool:
    """All that was given has been processed, and the old site has left."""
    ground: Field = view.ground
    given = {(source.stream, number) for source in ground.sources for number in range(1, len(source.at) + 1)}
    more = {(source.stream, len(source.at) + 1) for source in ground.sources if source.stream in ground.more}
    return ground.left and not ground.ways and {*ground.done} == given | more


def _without(fault: str) -> Claim:
    """True as long as this did not happen."""
    return lambda view: view.ground.fault != fault


def world(
    name: str, sources: tuple[Gives, ...], forward: Way, leave_at: int, lead: int = 0, timed: bool = True,
    hold: int | None = None, site: type[OrderedSite] = OrderedSite,
) -> World:  # fmt: skip
    """An operator moves at some moment from the old site to the new one."""
    faults = (ONCE, SAID, LATE) if timed else (ONCE, SAID)
    return World(
        name,
        lambda: {OLD: site(OLD), NEW: site(NEW)},
        Field(sources, forward, leave_at, lead, timed, hold),
        (),
        {fault: _without(fault) for fault in faults},
        quiet,
        steps={MEASURED: partial(told_as_measured, sources)},
    )


def told_as_measured(sources: tuple[Gives, ...], step: Taken) -> bool:
    """Whether the old site tells how long records took to it: as long as they can, or nothing where none came."""
    said = [one.message for one in step.effects if isinstance(one, Send) and isinstance(one.message, TakeOver)]
    if not said:
        return True
    row = step.before.rows[OPERATOR]
    ways = {source.stream: source.to_old for source in sources}
    return {stream for stream, _, _ in said[0].delays_ms} == {*ways} and all(
        ways[stream][0] <= least <= most <= ways[stream][1]
        if row.ways[stream].last
        else (least, most) == (0.0, row.hold_ms)
        for stream, least, most in said[0].delays_ms
    )


def steady(stream: str, at: tuple[int, ...], to_old: int, to_new: int) -> Gives:
    """A source whose ways always take as long."""
    return Gives(stream, at, (to_old, to_old), (to_new, to_new))


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of ordered moves."""
    machines = {"site": OrderedSiteAsPublished} | machines if as_published else machines
    some = tuple(range(1, 7 + int(long)))
    odd, even = some[::2], some[1::2]
    return (
        world("nearer to the new site", (steady("a", odd, 3, 1), steady("b", even, 1, 1)), (1, 1), 3, **machines),
        world("farther from the new site", (steady("a", odd, 1, 4), steady("b", even, 1, 1)), (1, 1), 3, **machines),
        world("the old site is far", (steady("a", some[:4], 5, 1), steady("b", even, 4, 1)), (1, 1), 3, **machines),
        world("agreed ahead", (steady("a", odd, 2, 1), steady("b", even, 1, 3)), (2, 2), 1, lead=2, **machines),
        world(
            "ways that change",
            (Gives("a", some[:3], (1, 2), (1, 2)), steady("b", some[1:2], 1, 2)), (1, 2), 1, timed=False, **machines,
        ),
        world(
            "a hold that is too short", (steady("a", some[:3], 3, 1), steady("b", some[:2], 1, 1)), (1, 1), 2, hold=0,
            timed=False, **machines,
        ),
    )  # fmt: skip
