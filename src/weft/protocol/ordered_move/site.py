"""What does a site do while an operator whose input must be in order comes or leaves? (Order §4.2)

- Old and new site agree on a moment. What happened up to it is the old site's, what happened after it the new one's.
- The new site has the sources send to it, and the old one forwards what happened after the moment, until told to stop.
- The old site processes in order up to the moment, then hands over what the operator knows; the new one waits for that.
- The hold of the new site covers, for every stream, the way that its records may still come: by way of the old site the
  delay there and that of forwarding; by itself the delay measured here, with the spread that the stream had there.
- At the first record that comes by itself the new site has that stream's forwarding stopped *from that number on*.
  The published signal names no number: what was on its way to the old site then is lost. The hold falls once all
  below it have come, not at once: else those still on the way by the old site would be late because of the move.
- On each way records of a stream keep their order. So one that comes by itself is an echo if its number was forwarded,
  and one that is forwarded is an echo if its number lies between the first and the last that came by themselves.
- Records up to the moment that reach the old site after it has handed over are forwarded too: late, but not lost.
"""

from __future__ import annotations

import bisect
from typing import Any, ClassVar

import msgspec

from weft.protocol.machine import Effect, Machine, Received, Row, Send, Step, Steps
from weft.protocol.ordered_move.words import (
    Arrived,
    Ended,
    Forward,
    Forwarded,
    Host,
    Leave,
    Left,
    Process,
    Record,
    State,
    StopForwarding,
    Subscribe,
    TakeOver,
    Tick,
    Unsubscribe,
)

AWAY, HERE, LEAVING, COMING = "away", "here", "leaving", "coming"


class Ways(msgspec.Struct, array_like=True):
    """What a site knows of the ways by which records of a stream come."""

    least_ms: float = -1.0
    most_ms: float = 0.0
    last: int = 0
    """The last number that came by itself."""
    first: int = 0
    """The first number that came by itself after the moment; 0 while none has."""
    forwarded: int = 0
    """The last number that was forwarded: to this site, or by it."""
    stop: int = 0
    """Forwarding stops from this number on; 0 while none was named."""
    ended: bool = True
    """Nothing is forwarded, or will be."""
    upto: int = -1
    """The last number that is to come by the old site, once known."""
    before_ms: float = 0.0
    """How long records take by way of the old site."""
    spread_ms: float = 0.0

    def measure(self, delay_ms: float) -> None:
        """One more delay of a record that came by itself."""
        self.least_ms = delay_ms if self.least_ms < 0 else min(self.least_ms, delay_ms)
        self.most_ms = max(self.most_ms, delay_ms)

    def hold_ms(self) -> float:
        """How long after they happened records may still come."""
        own_ms = max(self.most_ms, self.least_ms + self.spread_ms) if self.least_ms >= 0 else 0.0
        return own_ms if self.ended else max(own_ms, self.before_ms)


class OrderedRow(Row):
    """An operator at this site: what it waits for, what is held back, and where it comes from or goes."""

    state: str = AWAY
    ways: dict[str, Ways] = msgspec.field(default_factory=dict)
    held: list[tuple[float, str, int]] = msgspec.field(default_factory=list)
    hold_ms: float = 0.0
    hold_min_ms: float = 0.0
    newest_ms: float = float("-inf")
    after_ms: float = float("-inf")
    other: str = ""
    stateful: bool = False
    """Whether this site has what the operator knows."""


class OrderedSite(Machine):
    """Holds records back so that operators get them in order, also while an operator moves."""

    __slots__ = ()

    ROW: ClassVar[type[Row]] = OrderedRow

    def key(self, input: Any) -> str:
        """The operator that an input is about."""
        about: Any = input.message if isinstance(input, Received) else input
        name: str = about.operator
        return name

    # ---- where it runs -----------------------------------------------------------------------------------------------
    def on_host(self, key: str, row: OrderedRow, input: Host) -> list[Effect]:
        """It starts here, with nothing before it."""
        row.state, row.stateful = HERE, True
        row.hold_ms = row.hold_min_ms = input.hold_ms
        row.ways = {stream: Ways() for stream in input.streams}
        return [Subscribe(key, stream) for stream in input.streams]

    def on_arrived(self, key: str, row: OrderedRow, input: Arrived) -> list[Effect]:
        """A record by itself: the usual case."""
        ways = row.ways[input.record.stream]
        if input.record.number <= ways.last:
            return []
        ways.last = input.record.number
        ways.measure(input.at_ms - input.record.time_ms)
        if input.record.number > ways.forwarded:  # else it came by the former site, before that stopped
            self.keep(row, input.record)
        return self.release(key, row, input.at_ms)

    def on_tick(self, key: str, row: OrderedRow, input: Tick) -> list[Effect]:
        """Time has passed: something may be due."""
        return self.release(key, row, input.at_ms)

    def keep(self, row: OrderedRow, record: Record) -> None:
        """Holds a record back."""
        bisect.insort(row.held, (record.time_ms, record.stream, record.number))

    def release(self, key: str, row: OrderedRow, at_ms: float) -> list[Effect]:
        """Hands on what nothing older can come before any more."""
        row.hold_ms = max(row.hold_min_ms, max((ways.hold_ms() for ways in row.ways.values()), default=0.0))
        found: list[Effect] = []
        while row.stateful and row.held and row.held[0][0] + row.hold_ms <= at_ms:
            found.append(self.hand_on(key, row))
        return found

    def hand_on(self, key: str, row: OrderedRow) -> Effect:
        """The oldest that is held goes to the operator."""
        time_ms, stream, number = row.held.pop(0)
        late, row.newest_ms = time_ms < row.newest_ms, max(row.newest_ms, time_ms)
        return Process(key, Record(stream, number, time_ms), late)

    # ---- the old site ------------------------------------------------------------------------------------------------
    def on_leave(self, key: str, row: OrderedRow, input: Leave) -> list[Effect]:
        """It shall go: the moment is agreed upon, and what comes after it is forwarded."""
        row.state, row.other = LEAVING, input.to
        row.after_ms = max(input.at_ms + input.lead_ms, row.newest_ms)
        for ways in row.ways.values():
            ways.ended, ways.first, ways.forwarded, ways.stop, ways.upto = False, 0, 0, 0, -1
        # Of a stream that never came nothing is known but that the hold was enough.
        known = [(stream, ways.least_ms, ways.most_ms) for stream, ways in row.ways.items()]
        delays = tuple((name, least, most) if least >= 0 else (name, 0.0, row.hold_ms) for name, least, most in known)
        said = TakeOver(key, row.after_ms, input.forward_ms, delays)
        return [Send(row.other, said), *self.until_moment(key, row, input.at_ms)]

    def on_leaving(self, key: str, row: OrderedRow, input: Arrived) -> list[Effect]:
        """A record comes to the old site: it is still its own, or is forwarded, or comes to the new one by itself."""
        record, found = input.record, list[Effect]()
        ways = row.ways[record.stream]
        if record.number <= ways.last or (ways.stop and ways.ended):
            return []
        ways.last = record.number
        ways.measure(input.at_ms - record.time_ms)
        if record.time_ms <= row.after_ms and row.stateful:
            self.keep(row, record)
        elif not ways.stop or record.number < ways.stop:
            ways.forwarded = record.number
            found.append(Forward(key, row.other, record))
        return [*found, *self.until_moment(key, row, input.at_ms), *self.ending(key, row, record.stream)]

    def on_leaving_tick(self, key: str, row: OrderedRow, input: Tick) -> list[Effect]:
        """Time has passed at the old site."""
        return self.until_moment(key, row, input.at_ms)

    def on_stop(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """A stream comes to the new site by itself, from a number on."""
        message = input.message
        assert isinstance(message, StopForwarding)
        row.ways[message.stream].stop = message.below
        return self.ending(key, row, message.stream)

    def until_moment(self, key: str, row: OrderedRow, at_ms: float) -> list[Effect]:
        """Goes on up to the moment; then what the operator knows goes to the new site."""
        if not row.stateful:
            return []
        found = self.release(key, row, at_ms)
        if row.after_ms + row.hold_ms > at_ms:
            return found
        row.stateful = False
        return [*found, Send(row.other, State(key, row.newest_ms)), *self.left(key, row)]

    def ending(self, key: str, row: OrderedRow, stream: str) -> list[Effect]:
        """A stream is no longer needed here once all below the named number have come."""
        ways = row.ways[stream]
        if ways.ended or not ways.stop or ways.last < ways.stop - 1:
            return []
        ways.ended = True
        return [Unsubscribe(key, stream), Send(row.other, Ended(key, stream, ways.forwarded)), *self.left(key, row)]

    def left(self, key: str, row: OrderedRow) -> list[Effect]:
        """The old site forgets the operator when it has handed it over and forwards nothing any more."""
        if row.stateful or not all(ways.ended for ways in row.ways.values()):
            return []
        row.state, row.ways, row.other = AWAY, {}, ""
        row.after_ms = row.newest_ms = float("-inf")
        row.hold_ms = row.hold_min_ms = 0.0
        return [Left(key)]

    # ---- the new site ------------------------------------------------------------------------------------------------
    def on_take_over(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """It comes here: sources are asked to send, and the hold covers both ways."""
        said = input.message
        assert isinstance(said, TakeOver)
        row.state, row.other, row.after_ms = COMING, input.sender, said.after_ms
        for stream, least_ms, most_ms in said.delays_ms:
            ways = row.ways.setdefault(stream, Ways())
            ways.ended, ways.before_ms, ways.spread_ms = False, most_ms + said.forward_ms, most_ms - least_ms
        row.hold_ms = max(ways.hold_ms() for ways in row.ways.values())
        return [Subscribe(key, stream) for stream, _, _ in said.delays_ms]

    def on_forwarded_early(self, key: str, row: OrderedRow, input: Forwarded) -> list[Effect]:
        """What is forwarded may be here before the word of the move is."""
        ways = row.ways.setdefault(input.record.stream, Ways())
        if input.record.number > ways.forwarded:
            ways.forwarded = input.record.number
            self.keep(row, input.record)
        return []

    def on_coming(self, key: str, row: OrderedRow, input: Arrived) -> list[Effect]:
        """A record by itself: what happened up to the moment is the old site's, what was forwarded is known."""
        record = input.record
        ways = row.ways[record.stream]
        if record.number <= ways.last:
            return []
        ways.last = record.number
        ways.measure(input.at_ms - record.time_ms)
        found: list[Effect] = []
        if record.time_ms > row.after_ms:
            if not ways.first:
                ways.first = record.number
                found.append(Send(row.other, StopForwarding(key, record.stream, record.number)))
            if record.number > ways.forwarded:
                self.keep(row, record)
        return [*found, *self.release(key, row, input.at_ms)]

    def on_forwarded(self, key: str, row: OrderedRow, input: Forwarded) -> list[Effect]:
        """A record by way of the old site, or its echo."""
        record = input.record
        ways = row.ways[record.stream]
        if record.number > ways.forwarded:
            ways.forwarded = record.number
            if record.time_ms > row.after_ms:
                ways.before_ms = max(ways.before_ms, input.at_ms - record.time_ms)
            if not ways.first <= record.number <= ways.last or not ways.first:
                self.keep(row, record)
        return self.settled(key, row, record.stream, input.at_ms)

    def on_ended(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """The old site forwards a stream no longer; what it forwarded may still be on the way."""
        said = input.message
        assert isinstance(said, Ended)
        row.ways[said.stream].upto = said.last
        return self.settled(key, row, said.stream, None)

    def settled(self, key: str, row: OrderedRow, stream: str, at_ms: float | None) -> list[Effect]:
        """Once all that was forwarded of a stream has come, its hold is that of its own way."""
        ways = row.ways[stream]
        found = self.release(key, row, at_ms) if at_ms is not None else []
        if not ways.ended and 0 <= ways.upto <= ways.forwarded:
            ways.ended = True
        return [*found, *self.arrived_whole(row)]

    def on_state(self, key: str, row: OrderedRow, input: Received) -> list[Effect]:
        """What the operator knows is here."""
        assert isinstance(input.message, State)
        row.stateful, row.newest_ms = True, max(row.newest_ms, input.message.newest_ms)
        return self.arrived_whole(row)

    def arrived_whole(self, row: OrderedRow) -> list[Effect]:
        """The move is over when what the operator knows is here and every stream comes by itself."""
        if row.stateful and all(ways.ended for ways in row.ways.values()):
            row.state, row.other = HERE, ""
        return []

    STEPS: ClassVar[Steps] = {
        (AWAY, Host): Step(on_host, (HERE,)),
        (AWAY, Forwarded): Step(on_forwarded_early, (AWAY,)),
        (AWAY, TakeOver): Step(on_take_over, (COMING,)),
        (AWAY, Arrived): Step(lambda machine, key, row, input: [], (AWAY,)),
        (AWAY, Tick): Step(lambda machine, key, row, input: [], (AWAY,)),
        (HERE, Arrived): Step(on_arrived, (HERE,)),
        (HERE, Tick): Step(on_tick, (HERE,)),
        (HERE, Leave): Step(on_leave, (LEAVING, AWAY)),
        (LEAVING, Arrived): Step(on_leaving, (LEAVING, AWAY)),
        (LEAVING, Tick): Step(on_leaving_tick, (LEAVING, AWAY)),
        (LEAVING, StopForwarding): Step(on_stop, (LEAVING, AWAY)),
        (COMING, Arrived): Step(on_coming, (COMING,)),
        (COMING, Tick): Step(on_tick, (COMING,)),
        (COMING, Forwarded): Step(on_forwarded, (COMING, HERE)),
        (COMING, Ended): Step(on_ended, (COMING, HERE)),
        (COMING, State): Step(on_state, (COMING, HERE)),
    }
