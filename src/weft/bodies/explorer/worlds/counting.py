"""Worlds for the counting rule: a home that is cut off and goes on writing, copies of it, and one that takes it away.

Site a wrote the stream under epoch 1 and cannot be reached by t, which takes the stream away under epoch 2: it tells
the fence to the sites that have copies, learns what they hold, and writes from the number on that `taken_from` gives.
Copies may hear either of the two, fences and segments, again and in any order, and may never hear a home's fence. In
some worlds the stream is taken away from t, too: then t must not go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from weft.bodies.explorer.world import Choice, Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.protocol import Effect, Input, Machine, Message
from weft.protocol.machine import Received, Row, Send, SetTimer, Step, Steps, TimerFired
from weft.protocol.stream_rule import Counted, Entry, FenceEntry, SegmentEntry, count, taken_from

OLD, NEW, LATER = 1, 2, 3
STREAM = "s"
ONCE = "a copy counts each number once and in order"
FENCED_OFF = "who was fenced off is not counted"
GAP = "who takes a stream goes on from what every copy has"
TAKEN_AWAY = "who takes a stream goes on only when every copy has heard its fence, and none a later one"
FAULTS = (ONCE, FENCED_OFF, GAP)

Count = Callable[[Counted, Entry], tuple[Counted, bool]]
Decide = Callable[[int, Sequence[str], Mapping[str, Counted]], int | None]


class FenceCopy(Message, frozen=True):
    """The stream belongs to an epoch from now on."""

    epoch: int


class CopyHolds(Message, frozen=True):
    """What a copy has come to."""

    epoch: int
    following: int


class Heard(Input, frozen=True):
    """An entry of the log came from a home: a fence, or a segment with its number."""

    epoch: int
    number: int = -1


class TakeAway(Input, frozen=True):
    """Take the stream away from a site that cannot be reached."""


class Keep(Effect, frozen=True):
    """What a copy has come to is on disk; `counts`: with one more segment, of this epoch."""

    epoch: int
    following: int
    counts: int = 0


class GoOn(Effect, frozen=True):
    """The stream is written here from this number on."""

    number: int


class Copied(Row):
    """How far a copy has come."""

    state: str = "copy"
    epoch: int = OLD
    following: int = 0


class Copy(Machine):
    """A copy of the stream, which counts what it hears."""

    __slots__ = ("rule",)
    ROW: ClassVar[type[Row]] = Copied

    def __init__(self, name: str, rule: Count, held: Counted) -> None:
        super().__init__(name)
        self.rule = rule
        self.rows[STREAM] = Copied("copy", *held)

    def key(self, input: Any) -> str:
        """There is one stream."""
        return STREAM

    def on_heard(self, key: str, row: Copied, input: Heard) -> list[Effect]:
        """An entry from a home."""
        entry = FenceEntry(input.epoch) if input.number < 0 else SegmentEntry(input.epoch, input.number)
        return self.take(row, entry)

    def on_fence(self, key: str, row: Copied, input: Any) -> list[Effect]:
        """A fence from whoever takes the stream: on disk before it is answered."""
        kept = self.take(row, FenceEntry(input.message.epoch))
        return [*kept, Send(input.sender, CopyHolds(row.epoch, row.following))]

    def take(self, row: Copied, entry: Entry) -> list[Effect]:
        """Count an entry."""
        held, counts = self.rule(Counted(row.epoch, row.following), entry)
        if not counts:
            return []
        row.epoch, row.following = held
        return [Keep(row.epoch, row.following, entry.epoch if isinstance(entry, SegmentEntry) else 0)]

    STEPS: ClassVar[Steps] = {
        ("copy", Heard): Step(on_heard, ("copy",)),
        ("copy", FenceCopy): Step(on_fence, ("copy",)),
    }


class Taking(Row):
    """What the taker was told so far."""

    state: str = "idle"
    told: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)


class Taker(Machine):
    """Takes a stream away: tells the fence until every copy has answered, then goes on."""

    __slots__ = ("copies", "decide")
    ROW: ClassVar[type[Row]] = Taking

    def __init__(self, name: str, copies: tuple[str, ...], decide: Decide, begun: bool) -> None:
        super().__init__(name)
        self.copies, self.decide = copies, decide
        self.rows[STREAM] = Taking("going on" if begun else "idle")

    def key(self, input: Any) -> str:
        """There is one stream."""
        return STREAM

    def tell(self, key: str, row: Taking, input: Any) -> list[Effect]:
        """Tell those that have not answered."""
        if row.state == "going on":
            return []
        row.state = "telling"
        silent = [name for name in self.copies if name not in row.told]
        return [*(Send(name, FenceCopy(NEW)) for name in silent), SetTimer(STREAM, 1000)]

    def on_holds(self, key: str, row: Taking, input: Received) -> list[Effect]:
        """One more has answered."""
        message = input.message
        assert isinstance(message, CopyHolds)
        row.told[input.sender] = (message.epoch, message.following)
        told = {name: Counted(*held) for name, held in row.told.items()}
        number = self.decide(NEW, self.copies, told)
        if row.state != "telling" or number is None:
            return []
        row.state = "going on"
        return [GoOn(number)]

    STEPS: ClassVar[Steps] = {
        ("idle", TakeAway): Step(tell, ("telling",)),
        ("telling", TakeAway): Step(tell, ("telling",)),
        ("going on", TakeAway): Step(tell, ("going on",)),
        ("telling", TimerFired): Step(tell, ("telling",)),
        ("going on", TimerFired): Step(tell, ("going on",)),
        ("idle", CopyHolds): Step(lambda machine, key, row, input: [], ("idle",)),
        ("telling", CopyHolds): Step(on_holds, ("telling", "going on")),
        ("going on", CopyHolds): Step(lambda machine, key, row, input: [], ("going on",)),
    }


class Logs(msgspec.Struct, frozen=True):
    """What each home has written, what each copy has on disk, and what it has counted."""

    segments: int
    twice: bool = False
    """Whether the stream may be taken away from who takes it."""
    old: int = 0
    begun: int = -1
    new: int = 0
    disks: tuple[tuple[str, int, int], ...] = ()
    counted: tuple[tuple[str, tuple[int, ...]], ...] = ()
    fault: str = ""

    def held(self, name: str) -> Counted:
        """What a copy has on disk."""
        return next((Counted(epoch, following) for one, epoch, following in self.disks if one == name), Counted(OLD, 0))

    def perform(self, site: str, effect: Effect) -> Logs:
        """The ground after an effect."""
        match effect:
            case Keep(epoch, following, counts):
                before, fault = self.held(site), self.fault
                if counts and following != before.following + 1:
                    fault = ONCE
                elif (counts and counts != before.epoch) or (counts == OLD and self.begun >= 0):
                    fault = FENCED_OFF
                disks = tuple(sorted([*(one for one in self.disks if one[0] != site), (site, epoch, following)]))
                epochs = {**dict(self.counted), site: dict(self.counted).get(site, ()) + ((counts,) if counts else ())}
                return self.but(disks=disks, counted=tuple(sorted(epochs.items())), fault=fault)
            case GoOn(number):
                least = min(following for _, _, following in self.disks) if self.disks else 0
                return self.but(begun=number, new=number, fault=self.fault if number <= least else GAP)
        return self

    def choices(self) -> Iterator[Choice]:
        """The homes write; copies hear from either what it has, the next and what they know already."""
        if self.old < self.segments:
            yield Choice("t", TakeAway(), self.but(old=self.old + 1), due=False, heard=False)
        if self.begun >= 0 and self.new < self.segments:
            yield Choice("t", TakeAway(), self.but(new=self.new + 1), heard=False)
        for name, _, following in self.disks:
            for number in (following - 1, following):
                if 0 <= number < self.old:
                    yield Choice(name, Heard(OLD, number), self, due=False)
                if 0 <= self.begun <= number < self.new:
                    yield Choice(
                        name, Heard(NEW, number), self, due=number == following and self.held(name).epoch == NEW
                    )
            yield Choice(name, Heard(OLD), self, due=False)
            if self.begun >= 0:
                yield Choice(name, Heard(NEW), self, due=self.held(name).epoch < NEW)
            if self.twice:
                yield Choice(name, Heard(LATER), self, due=False)

    def crash(self, site: str) -> Logs:
        """What is on disk stays."""
        return self

    def but(self, **changes: Any) -> Logs:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def _without(fault: str) -> Callable[[View], bool]:
    return lambda view: view.ground.fault != fault


def quiet(view: View) -> bool:
    """The stream was taken, and every copy has all of it; unless it was taken away from who took it."""
    ground: Logs = view.ground
    if any(epoch == LATER for _, epoch, _ in ground.disks):
        return not view.flight
    return ground.begun >= 0 and all(following == ground.segments for _, _, following in ground.disks)


def heard_by_all(step: Taken) -> bool:
    """Whether who goes on was told by every copy that its own fence is the last."""
    if not any(isinstance(effect, GoOn) for effect in step.effects):
        return True
    told = step.after.rows[STREAM].told
    return {*told} == {*step.after.copies} and all(epoch == NEW for epoch, _ in told.values())


def stale(machine: Any) -> Iterator[Input]:
    """What does not count: of epochs that are over or were never fenced, again, behind a gap."""
    if isinstance(machine, Copy):
        row = machine.rows[STREAM]
        yield from (Heard(epoch, row.following) for epoch in (row.epoch - 1, row.epoch + 1))
        yield from (Heard(row.epoch, number) for number in (row.following - 1, row.following + 1) if number >= 0)
        yield from (Heard(epoch) for epoch in (row.epoch - 1, row.epoch))


def world(
    name: str,
    copies: str,
    segments: int,
    rule: Count = count,
    decide: Decide = taken_from,
    copy: type[Copy] = Copy,
    twice: bool = False,
    **faults: Any,
) -> World:
    """A stream of so many segments, with copies at these sites."""
    names = tuple(copies)

    def reborn(name: str, ground: Logs | None) -> Machine:
        if name == "t":
            return Taker("t", names, decide, ground is not None and ground.begun >= 0)
        return copy(name, rule, Counted(OLD, 0) if ground is None else ground.held(name))

    def machines() -> dict[str, Machine]:
        return {one: reborn(one, None) for one in (*names, "t")}

    return World(
        name,
        machines,
        Logs(segments, twice, disks=tuple((one, OLD, 0) for one in names)),
        ((("t", TakeAway()),),),
        {**{fault: _without(fault) for fault in FAULTS}, **strange.passing(machines, names, stale)},
        quiet,
        reborn,
        steps={TAKEN_AWAY: heard_by_all},
        **faults,
    )


def worlds(as_published: bool = False, long: bool = False, **parts: Any) -> tuple[World, ...]:
    """The worlds of the counting rule; it is our own, so nothing is published to compare with."""
    more = int(long)
    return (
        world("one copy", "c", 3 + more, lose=1, double=1, **parts),
        world("two copies", "cd", 2 + more, lose=1 + more, double=more, **parts),
        world("copies that crash", "cd", 2, mortal=("c", "d"), crash=1 + more, torn=1, **parts),
        world("taken away twice", "cd", 1 + more, twice=True, lose=1, **parts),
        world("the taker crashes", "cd", 2, mortal=("t",), crash=1 + more, lose=1, **parts),
    )
