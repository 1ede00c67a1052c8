"""Worlds for connections: a speaker at a, a hearer at b, wires that break, keep what was on them or bring it twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from weft.bodies.explorer.world import Choice, Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.protocol import Effect, Input, Machine
from weft.protocol.connection import (
    Acked,
    Arrived,
    Close,
    Deliver,
    Hearer,
    LinkDown,
    LinkUp,
    Lost,
    Missed,
    Offered,
    Speaker,
    SpeakerLimits,
    WriteAck,
    WriteCarry,
)

ORDER = "what is said is heard in order, and not twice"
PAST = "a past life of the peer is no longer heard"
CHANGED = "a message keeps its number and what it says"
SILENT = "what is not heard was lost with a word"
WINDOW = "no more than the window is under way"
KEPT = "nothing is lost that there was room for"
ROOM = "what is owed is counted, the newest is kept, and nothing is given up that there is room for"
ROOMY = SpeakerLimits()
FAULTS = (ORDER, PAST, CHANGED, SILENT, WINDOW, KEPT)

Carry = tuple[int, int, bytes]
Ack = tuple[int, int]


class Wire(NamedTuple):
    """One connection: what is on it both ways, and whether a still takes it for whole."""

    link: int
    carries: tuple[Carry, ...] = ()
    acks: tuple[Ack, ...] = ()
    seen: bool = True
    whole: bool = True


class Wires(msgspec.Struct, frozen=True):
    """All connections so far that still bring something, and what was said, heard and lost."""

    limits: SpeakerLimits
    breaks_left: int = 0
    doubles: int = 0
    doubles_left: int = 0
    links: int = 0
    wires: tuple[Wire, ...] = ()
    session: int = 1
    life: int = 0
    heard: tuple[tuple[int, int, int], ...] = ()
    """Life of b, session of a, number."""
    lost: tuple[Ack, ...] = ()
    taken: int = 0
    """The session of the message that b is about to hear."""
    fault: str = ""

    def perform(self, site: str, effect: Effect) -> Wires:
        """The ground after an effect."""
        match effect:
            case WriteCarry(link, number, data):
                fault = self.fault if data == b"%d" % number else CHANGED
                wire = self.wire(link)
                if wire is None or not wire.whole:
                    return self.but(fault=fault)
                under_way = (*wire.carries, (self.session, number, data))
                if len(under_way) > self.limits.window + self.doubles - self.doubles_left:
                    fault = WINDOW
                return self.put(wire._replace(carries=under_way)).but(fault=fault)
            case WriteAck(link, session, number):
                wire = self.wire(link)
                if wire is None or not wire.whole or not wire.seen:
                    return self
                return self.put(wire._replace(acks=(*wire.acks, (session, number))))
            case Deliver(_, data):
                return self.hear(int(data))
            case Lost(_, number):
                return self.but(lost=tuple(sorted({*self.lost, (self.session, number)})))
            case Missed(_, after, before):
                session = self.wires_session
                gone = {number for one, number in self.lost if one == session}
                silent = not {*range(after + 1, before)} <= gone
                return self.but(fault=SILENT) if silent else self
            case Close(link, _):
                wire = self.wire(link)
                return self if wire is None else self.put(wire._replace(carries=(), whole=False))
        return self

    @property
    def wires_session(self) -> int:
        """The session that b hears: the greatest that it was told of."""
        return max((session for _, session, _ in self.heard), default=0)

    def hear(self, number: int) -> Wires:
        """Something is handed on at b; it belongs to the message that was taken from a wire just before."""
        session = self.taken
        before = [one for one in self.heard if one[0] == self.life]
        fault = self.fault
        if any(one[1] > session for one in before):
            fault = PAST
        elif any(one[1] == session and one[2] >= number for one in before):
            fault = ORDER
        return self.but(heard=tuple(sorted({*self.heard, (self.life, session, number)})), fault=fault)

    def choices(self) -> Iterator[Choice]:
        """What may come next."""
        if not any(wire.seen for wire in self.wires):
            up = self.but(links=self.links + 1, wires=(*self.wires, Wire(self.links + 1)))
            yield Choice("a", LinkUp("b", self.links + 1), up)
        for wire in self.wires:
            if wire.carries:
                session, number, data = wire.carries[0]
                told = Arrived("a", wire.link, session, number, data)
                rest = self.put(wire._replace(carries=wire.carries[1:]))
                yield Choice("b", told, rest.but(taken=session))
                if self.doubles_left:
                    again = self.but(doubles_left=self.doubles_left - 1, taken=session)
                    yield Choice("b", told, again, due=False)
                if not wire.seen:
                    yield Choice("b", told, self.put(wire._replace(carries=())), due=False, heard=False)
            if wire.seen and wire.acks:
                session, number = wire.acks[0]
                yield Choice("a", Acked("b", session, number), self.put(wire._replace(acks=wire.acks[1:])))
            if wire.seen and not wire.whole and not wire.acks:
                yield Choice("a", LinkDown("b", wire.link), self.put(wire._replace(seen=False)))
            if wire.seen and wire.whole and self.breaks_left:
                broken = self.but(breaks_left=self.breaks_left - 1)
                left = wire._replace(seen=False, acks=(), whole=False)
                yield Choice("a", LinkDown("b", wire.link), broken.put(left), due=False)

    def crash(self, site: str) -> Wires:
        """One end is gone: what it had not heard is gone too; what it had said may still arrive."""
        if site == "b":
            wires = tuple(wire._replace(carries=(), whole=False) for wire in self.wires)
            return self.but(wires=wires, life=self.life + 1).tidy()
        wires = tuple(wire._replace(acks=(), seen=False, whole=False) for wire in self.wires)
        return self.but(wires=wires, session=self.session + 1).tidy()

    def wire(self, link: int) -> Wire | None:
        """A connection that still brings something."""
        return next((wire for wire in self.wires if wire.link == link), None)

    def put(self, wire: Wire) -> Wires:
        """The ground with one connection in another state."""
        return self.but(wires=tuple(wire if one.link == wire.link else one for one in self.wires)).tidy()

    def tidy(self) -> Wires:
        """Without connections that bring nothing any more."""
        return self.but(wires=tuple(wire for wire in self.wires if wire.seen or wire.carries))

    def but(self, **changes: Any) -> Wires:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def stale(machine: Any) -> Iterator[Input]:
    """What a speaker may be told that is out of date, or was never so; a hearer is told nothing of the kind."""
    if not hasattr(machine, "session"):
        return
    for peer, row in machine.rows.items():
        for number in (row.first, row.last):
            yield Acked(peer, machine.session - 1, number)
            yield Acked(peer, machine.session + 1, number)
        yield Acked(peer, machine.session, row.last + 1)
        yield LinkUp(peer, row.link)
        yield LinkDown(peer, row.link - 1)
        if row.link:
            yield LinkUp(peer, row.link - 1)


def kept_within(limits: SpeakerLimits, step: Taken) -> bool:
    """Whether what is owed is counted, the newest is kept, and others are given up only where there is no room."""
    if not isinstance(step.input, Offered):
        return True
    row = step.after.rows[step.input.peer]
    before = step.before.rows.get(step.input.peer)
    held = [*(before.held if before else ()), step.input.data]
    lost = len([effect for effect in step.effects if isinstance(effect, Lost)])
    if row.held != held[lost:] or not row.held or row.held_bytes != sum(map(len, row.held)):
        return False

    def fits(those: list[bytes]) -> bool:
        return len(those) <= limits.messages_max and sum(map(len, those)) <= limits.bytes_max

    return (fits(row.held) or len(row.held) == 1) and (not lost or not fits(held[lost - 1 :]))


def quiet(view: View) -> bool:
    """Nothing is under way or owed, and all of this session was heard by some life of b, or lost with a word."""
    ground: Wires = view.ground
    if view.busy or not view.told or any(row.held for row in view.machine("a").rows.values()):
        return False
    told = {number for _, session, number in ground.heard if session == ground.session}
    told |= {number for session, number in ground.lost if session == ground.session}
    return told >= {*range(1, view.machine("a").rows["b"].last + 1)} and view.machine("a").rows["b"].last > 0


def world(
    name: str,
    messages: int,
    limits: SpeakerLimits = ROOMY,
    breaks: int = 0,
    doubles: int = 0,
    speaker: type[Speaker] = Speaker,
    hearer: type[Hearer] = Hearer,
    **faults: Any,
) -> World:
    """So many messages from a to b."""

    def reborn(name: str, ground: Wires | None) -> Machine:
        return speaker("a", ground.session if ground else 1, limits) if name == "a" else hearer("b")

    roomy = messages <= limits.messages_max and messages <= limits.bytes_max
    claims = {fault: (lambda view, fault=fault: view.ground.fault != fault) for fault in FAULTS}
    if roomy:
        claims[KEPT] = lambda view, fault="": not view.ground.lost

    def machines() -> dict[str, Machine]:
        return {"a": reborn("a", None), "b": reborn("b", None)}

    return World(
        name,
        machines,
        Wires(limits, breaks, doubles, doubles),
        (tuple(("a", Offered("b", b"%d" % number)) for number in range(1, messages + 1)),),
        {**claims, **strange.passing(machines, ("a",), stale)},
        quiet,
        reborn,
        steps={ROOM: partial(kept_within, limits)},
        **faults,
    )


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of connections; the protocol is our own, so nothing is published to compare with."""
    more = int(long)
    small = SpeakerLimits(messages_max=2, window=1)
    return (
        world("a connection that breaks", 3 + more, breaks=2 + more, **machines),
        world("doubled on the way", 3 + more, breaks=1, doubles=2, **machines),
        world("a narrow window", 3, SpeakerLimits(window=2), breaks=2 + more, doubles=1, **machines),
        world("more than there is room for", 4, small, breaks=1 + more, **machines),
        world("room for two, all under way", 4, SpeakerLimits(messages_max=2), breaks=2, **machines),
        world("more than there is room for, two under way", 5, SpeakerLimits(messages_max=2, window=2), **machines),
        world("more bytes than there is room for", 4, SpeakerLimits(bytes_max=2, window=1), breaks=1, **machines),
        world("no room for a whole one", 2, SpeakerLimits(bytes_max=0), breaks=1, **machines),
        world("the peer restarts", 3, breaks=1, mortal=("b",), crash=2, **machines),
        world("the speaker restarts", 2, breaks=1, doubles=more, mortal=("a",), crash=1 + more, **machines),
        world("both restart", 2, breaks=more, mortal=("a", "b"), crash=2, **machines),
    )
