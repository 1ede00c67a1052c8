"""The preparer: what one site does ahead of the fragments that a change will start there, and for those that end.

1. A fragment to come is made ready, and where it goes on is written down, by the body: one thing at a time for each
   fragment. What is asked meanwhile waits, and only the last of it.
2. The same, asked again, is answered again and not done twice; for another change, or after other ends, it is done
   anew, and what was made ready for the former is dropped first.
3. What was made ready and is neither carried over nor started in time is dropped. What was carried over is not: the
   journal may rest on it. Only the word that this very change is off drops that.
4. A fragment that a change has started is no longer to come: words of that change, or of one before, that arrive late
   touch nothing.
5. Of a channel to drain it is told once it is, for the change and the ends it was asked about.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.change_messages import (
    After,
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    FragmentDiscarded,
    FragmentNotPrepared,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
    after_of,
)
from weft.protocol.machine import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Message,
    Received,
    Row,
    Send,
    SetTimer,
    Step,
    Steps,
    TimerFired,
)
from weft.protocol.moving.words import (
    CarriedOver,
    Carry,
    ChannelDrained,
    Cool,
    Drain,
    LetIn,
    NotCarriedOver,
    NotWarmed,
    Warm,
    Warmed,
)
from weft.protocol.words import REASON_CHARS_MAX, Parcel

ABSENT, PREPARING, READY, CARRYING, CARRIED = "absent", "preparing", "ready", "carrying", "carried"
DRAINING = "draining"
STATES = (ABSENT, PREPARING, READY, CARRYING, CARRIED, DRAINING)


class PreparerLimits(msgspec.Struct, frozen=True):
    """How long what was made ready is kept for a change that says no more."""

    ready_ms_max: int = 600_000


class ToCome(Row, array_like=True):
    """One fragment to come, or one channel to drain, for a change; `next` is what is asked while a body works."""

    state: str = ABSENT
    number: int = 0
    owner: str = ""
    task: Parcel = Parcel()
    ends: tuple[Parcel, ...] = ()
    after: After = ()
    carried: Parcel = Parcel()
    awaits: tuple[str, ...] = ()
    reason: str = ""
    impossible: bool = False
    next: PrepareFragment | CarryOver | DiscardFragment | None = None


class Preparer(Machine):
    """Makes ready what is to come; sits beside the agent that runs the fragments."""

    __slots__ = ("limits",)
    ROW = ToCome
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, limits: PreparerLimits | None = None) -> None:
        super().__init__(name)
        self.limits = limits or PreparerLimits()

    def key(self, input: Any) -> str:
        """The fragment or the channel an input is about, which is also the name of its timer."""
        if isinstance(input, TimerFired):
            return input.name
        told: Any = input.message if isinstance(input, Received) else input
        drains = isinstance(told, DrainChannel | ChannelDrained)
        return f"drain {told.channel} {told.fragment}" if drains else f"start {told.fragment}"

    def late(self, key: str, row: ToCome, input: Any) -> list[Effect] | None:
        """Word of the body about something that is asked no longer is passed over."""
        return [] if row.state == ABSENT and not isinstance(input, Received) else None

    def concluding(self) -> list[Effect]:
        """Forgets what is not there."""
        self.rows = {key: row for key, row in self.rows.items() if row.state != ABSENT}
        return []

    def started(self, fragment: str) -> list[Effect]:
        """A fragment is launched: what was made ready for it is taken, or dropped with that."""
        row = self.rows.get(f"start {fragment}")
        if row is None or row.state in (PREPARING, CARRYING):
            return []
        del self.rows[f"start {fragment}"]
        return [CancelTimer(f"start {fragment}")] if row.state == READY else []

    def on_prepare(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """Makes it ready, unless it is."""
        asked = input.message
        assert isinstance(asked, PrepareFragment)
        row.owner = input.sender
        same = (row.number, row.task, row.ends) == (asked.number, asked.task, asked.ends)
        if row.state == READY and same:
            return [Send(row.owner, self.readiness(asked.fragment, row))]
        if row.state == CARRIED and row.number == asked.number and row.task == asked.task:
            return []  # the change is past that
        return [*self.leave(key, row, asked.fragment), *self.prepare(row, asked)]

    def on_carry(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """Writes down where it goes on, unless that is done."""
        asked = input.message
        assert isinstance(asked, CarryOver)
        row.owner = input.sender
        if row.state == CARRIED and (row.number, row.task, row.after) == _asked(asked):
            return [Send(row.owner, Carried(row.number, asked.fragment, row.after, row.carried))]
        if row.state == READY and (row.number, row.task) == (asked.number, asked.task):
            return [CancelTimer(key), *self.carry(row, asked)]
        return [*self.leave(key, row, asked.fragment), *self.carry(row, asked)]

    def on_discard(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """Drops what was carried over for this change, or made ready for it or for one before it."""
        asked = input.message
        assert isinstance(asked, DiscardFragment)
        older = row.state == READY and row.number < asked.number
        same = row.state != ABSENT and row.number == asked.number
        dropped = self.drop(key, row, asked.fragment) if same or older else []
        return [*dropped, Send(input.sender, FragmentDiscarded(asked.number, asked.fragment))]

    def on_gate(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """What waits for the last batch of another may know that it has begun."""
        asked = input.message
        assert isinstance(asked, OpenGate)
        fits = row.number == asked.number and asked.ended.fragment in row.awaits
        return [LetIn(row.number, asked.fragment, asked.ended)] if fits else []

    def on_busy(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """The body works: unless that is what is asked, it waits."""
        asked = input.message
        match asked:
            case PrepareFragment():
                doing = row.state == PREPARING and (row.number, row.task) == (asked.number, asked.task)
                past = row.state == CARRYING and row.number == asked.number
                if (doing or past) and row.next is None:
                    return []
            case CarryOver():
                if row.state == CARRYING and (row.number, row.task, row.after) == _asked(asked):
                    row.next = None
                    return []
            case DiscardFragment() if asked.number < row.number:
                return [Send(input.sender, FragmentDiscarded(asked.number, asked.fragment))]
        assert isinstance(asked, PrepareFragment | CarryOver | DiscardFragment)
        row.next, row.owner = asked, input.sender
        return []

    def on_warmed(self, key: str, row: ToCome, input: Warmed | NotWarmed) -> list[Effect]:
        """It is ready, or as ready as can be."""
        row.state = READY
        if isinstance(input, NotWarmed):
            row.reason, row.impossible = input.reason[:REASON_CHARS_MAX] or "it is not ready", input.impossible
        else:
            row.awaits = input.awaits
        if row.next is not None:
            return self.go_on(key, row)
        kept = SetTimer(key, self.limits.ready_ms_max)
        return [kept, Send(row.owner, self.readiness(input.fragment, row))]

    def on_carried(self, key: str, row: ToCome, input: CarriedOver | NotCarriedOver) -> list[Effect]:
        """It is written down where it goes on, or cannot be."""
        answer: Message
        if isinstance(input, CarriedOver):
            row.state, row.carried = CARRIED, input.carried
            answer = Carried(row.number, input.fragment, row.after, row.carried)
        else:
            row.state = READY
            answer = NotCarried(row.number, input.fragment, row.after, input.reason[:REASON_CHARS_MAX])
        if row.next is not None:
            return self.go_on(key, row)
        kept: list[Effect] = [SetTimer(key, self.limits.ready_ms_max)] if row.state == READY else []
        return [*kept, Send(row.owner, answer)]

    def go_on(self, key: str, row: ToCome) -> list[Effect]:
        """Does what was asked while the body worked."""
        asked, row.next = row.next, None
        received = Received(row.owner, asked)  # type: ignore[arg-type]
        match asked:
            case PrepareFragment():
                return self.on_prepare(key, row, received)
            case CarryOver():
                return self.on_carry(key, row, received)
        return self.on_discard(key, row, received)

    def on_kept_too_long(self, key: str, row: ToCome, input: TimerFired) -> list[Effect]:
        """The change says no more."""
        return self.drop(key, row, key.partition(" ")[2])

    def prepare(self, row: ToCome, asked: PrepareFragment) -> list[Effect]:
        """Lets the body make it ready."""
        row.state, row.number, row.task, row.ends = PREPARING, asked.number, asked.task, asked.ends
        return [Warm(row.number, asked.fragment, row.task, row.ends)]

    def carry(self, row: ToCome, asked: CarryOver) -> list[Effect]:
        """Lets the body write down where it goes on."""
        row.state = CARRYING
        row.number, row.task, row.after = _asked(asked)
        return [Carry(row.number, asked.fragment, row.task, asked.ended)]

    def leave(self, key: str, row: ToCome, fragment: str) -> list[Effect]:
        """Makes room for another change: what was made ready is dropped, what was carried over stays on disk."""
        return self.drop(key, row, fragment) if row.state == READY else self.forget(row)

    def drop(self, key: str, row: ToCome, fragment: str) -> list[Effect]:
        """Nothing of it is left."""
        timer: list[Effect] = [CancelTimer(key)] if row.state == READY else []
        cool = Cool(row.number, fragment, row.task)
        return [*timer, cool, *self.forget(row)]

    def forget(self, row: ToCome) -> list[Effect]:
        """Nothing of it is known any more."""
        row.state, row.awaits, row.after = ABSENT, (), ()
        row.task, row.ends, row.carried, row.reason, row.impossible = Parcel(), (), Parcel(), "", False
        return []

    def readiness(self, fragment: str, row: ToCome) -> Message:
        """How ready it is."""
        if row.reason:
            return FragmentNotPrepared(row.number, fragment, row.reason, row.impossible)
        return FragmentPrepared(row.number, fragment, row.awaits)

    def on_drain(self, key: str, row: ToCome, input: Received) -> list[Effect]:
        """Lets the body watch the channel, unless it does."""
        asked = input.message
        assert isinstance(asked, DrainChannel)
        row.owner = input.sender
        if row.state == DRAINING and (row.number, row.after) == (asked.number, asked.after):
            return []
        row.state, row.number, row.after = DRAINING, asked.number, asked.after
        return [Drain(asked.number, asked.channel, asked.fragment, asked.after)]

    def on_drained(self, key: str, row: ToCome, input: ChannelDrained) -> list[Effect]:
        """It is empty, as far as it was asked about."""
        if (row.number, row.after) != (input.number, input.after):
            return []
        row.state = ABSENT
        return [Send(row.owner, ChannelIsDrained(input.number, input.channel, input.fragment, input.after))]

    def ignore(self, key: str, row: ToCome, input: Input) -> list[Effect]:
        """There is nothing that it could be about."""
        return []


def _asked(asked: CarryOver) -> tuple[int, Parcel, After]:
    return asked.number, asked.task, after_of(asked.ended)


_ORDERS = (PrepareFragment, CarryOver, DiscardFragment)
Preparer.STEPS = {
    **{(state, PrepareFragment): Step(Preparer.on_prepare, (PREPARING, state)) for state in (ABSENT, READY, CARRIED)},
    **{(state, CarryOver): Step(Preparer.on_carry, (CARRYING, state)) for state in (ABSENT, READY, CARRIED)},
    **{(state, DiscardFragment): Step(Preparer.on_discard, (ABSENT, state)) for state in (ABSENT, READY, CARRIED)},
    **{(state, order): Step(Preparer.on_busy, (state,)) for state in (PREPARING, CARRYING) for order in _ORDERS},
    (READY, OpenGate): Step(Preparer.on_gate, (READY,)),
    **{(state, OpenGate): Step(Preparer.ignore, (state,)) for state in (ABSENT, PREPARING, CARRYING, CARRIED)},
    **{(PREPARING, fact): Step(Preparer.on_warmed, STATES[:-1]) for fact in (Warmed, NotWarmed)},
    **{(CARRYING, fact): Step(Preparer.on_carried, STATES[:-1]) for fact in (CarriedOver, NotCarriedOver)},
    (READY, TimerFired): Step(Preparer.on_kept_too_long, (ABSENT,)),
    **{(state, DrainChannel): Step(Preparer.on_drain, (DRAINING,)) for state in (ABSENT, DRAINING)},
    (DRAINING, ChannelDrained): Step(Preparer.on_drained, (ABSENT, DRAINING)),
}
