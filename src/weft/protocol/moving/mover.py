"""The mover: takes a running deployment from one plan to another, while records flow.

1. One change at a time, in the order of their numbers. What a change ends and starts is worked out when its turn
   comes, against the plan then in force.
2. What is to start is made ready at its site before anything ends. That it is not ready in time, or cannot be made so,
   only costs time; that it can never run ends the change, and nothing has changed.
3. Fragments end upstream first, each at a batch boundary. One that must drain a channel is asked to end when all before
   it have ended and the channel is drained; others end side by side. Where something made ready waits for that, it is
   told as soon as the last batch of one has begun.
4. When all have ended, every site that is to start something writes down where that goes on. One that cannot, or does
   not answer, ends the change: so nothing is decided that is not on disk.
5. One write of the body decides. Before it the old plan is in force: whatever goes wrong, what was asked to end is
   wanted again, from its own checkpoint. After it the new plan is in force: whatever goes wrong, its fragments are
   wanted. While it is under way neither is known, so it is only asked for again.
6. What was lost with its site is not asked to end: it may be alive all the same, and is kept from writing by the
   fence of the epoch that takes over. Nothing of it is waited for, so such a change can only be decided.
7. What a change starts has epochs above all that any earlier change started, whichever fragment wrote its streams.
8. Every wait is under a timer; what is not answered is said again, so many times. An answer counts only for the ends
   that it names. Where a change is off, sites are told until they have dropped what was made ready for it. A change
   that is over has been called changed or not changed, once.
9. Nothing here outlives a crash: the journal alone says which plan is in force.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.change_messages import (
    Carried,
    CarryOver,
    ChannelIsDrained,
    DiscardFragment,
    DrainChannel,
    EndedAt,
    FragmentDiscarded,
    FragmentNotPrepared,
    FragmentPrepared,
    NotCarried,
    OpenGate,
    PrepareFragment,
    after_of,
)
from weft.protocol.hosting.words import EndCleanly, Unwant, Want
from weft.protocol.machine import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Received,
    Row,
    Send,
    SetTimer,
    Step,
    Steps,
    TimerFired,
)
from weft.protocol.moving.words import (
    Ask,
    Cancel,
    Change,
    Changed,
    Decide,
    Decided,
    End,
    Ended,
    Finishing,
    Moot,
    NotChanged,
    Start,
    Tell,
    Turn,
    Undecided,
    Up,
    least_epoch,
)
from weft.protocol.words import Parcel

NEW, QUEUED, ASKED, PREPARING, ENDING, CARRYING = "new", "queued", "asked", "preparing", "ending", "carrying"
DECIDING, STARTING, ABORTING, OVER = "deciding", "starting", "aborting", "over"
NOT_YET, TURNS, NO_MORE = "not yet", "turns", "no more"
THE_END = "the run ends"
STATES = (NEW, QUEUED, ASKED, PREPARING, ENDING, CARRYING, DECIDING, STARTING, ABORTING, OVER)


class MoverLimits(msgspec.Struct, frozen=True):
    """How long a mover waits before it says something again, and how often; fragments' patience is the conductor's."""

    say_ms: int = 5_000
    asks_max: int = 6
    prepares_max: int = 6
    ends_max: int = 24
    carries_max: int = 24
    starts_max: int = 36


class Moving(Row, array_like=True):
    """One change: what it ends and starts, how many ends were asked for, and which fragments or channels it awaits.

    `told` are the ends whose last batch somebody waits for, `ended` where those came to that have ended, `carried` what
    starts must be told, `drops` what sites have not dropped yet, `said` how often the present phase was waited for.
    """

    state: str = NEW
    number: int = 0
    ends: tuple[End, ...] = ()
    starts: tuple[Start, ...] = ()
    asked: int = 0
    awaits: tuple[str, ...] = ()
    drains: tuple[str, ...] = ()
    drained: bool = False
    reason: str = ""
    lost: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    ended: tuple[EndedAt, ...] = ()
    carried: tuple[tuple[str, Parcel], ...] = ()
    drops: tuple[str, ...] = ()
    said: int = 0


class Mover(Machine):
    """Makes changes of the plan, one at a time; sits beside the conductor that runs the fragments."""

    __slots__ = ("gives", "limits")
    ROW = Moving
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, limits: MoverLimits | None = None) -> None:
        super().__init__(name)
        self.limits = limits or MoverLimits()
        self.gives = NOT_YET

    def extra(self) -> str:
        """Whether turns are given."""
        return self.gives

    def set_extra(self, extra: str) -> None:
        """Takes it back."""
        self.gives = extra

    def key(self, input: Any) -> str:
        """The change an input is about, which is also the name of its timer."""
        if isinstance(input, TimerFired):
            return input.name
        word: Any = input.message if isinstance(input, Received) else input
        return f"change {word.number}"

    def late(self, key: str, row: Moving, input: Any) -> list[Effect] | None:
        """Word of a change that is over, or was never asked for, is passed over; what is ready for it is dropped."""
        if row.state != NEW or isinstance(input, Ask):
            return None
        if isinstance(input, Received) and isinstance(input.message, FragmentPrepared):
            return [Send(input.sender, DiscardFragment(input.message.number, input.message.fragment))]
        return []

    def begin(self) -> list[Effect]:
        """Gives turns from now on."""
        self.gives = TURNS
        return self.concluding()

    def leave(self) -> list[Effect]:
        """Gives no more turns; every change stays as the journal has it, which one that is being decided waits for."""
        self.gives = NO_MORE
        effects: list[Effect] = []
        for key, row in sorted(self.rows.items()):
            if row.state == STARTING:
                effects += self.over(key, row, Changed(row.number, THE_END))
            elif row.state != DECIDING:
                effects += self.over(key, row, NotChanged(row.number, row.reason or THE_END))
        return effects + self.concluding()

    def concluding(self) -> list[Effect]:
        """Forgets what is over, and gives the next its turn."""
        self.rows = {key: row for key, row in self.rows.items() if row.state != OVER}
        if self.gives != TURNS or not self.rows or any(row.state != QUEUED for row in self.rows.values()):
            return []
        row = min(self.rows.values(), key=lambda row: row.number)
        row.state = ASKED
        return [Turn(row.number), SetTimer(f"change {row.number}", self.limits.say_ms)]

    def waiting(self, key: str, row: Moving, effects: list[Effect]) -> list[Effect]:
        """Something new is waited for, under a timer."""
        row.said = 1
        return [*effects, SetTimer(key, self.limits.say_ms)]

    def again(self, key: str, row: Moving, times_max: int, effects: list[Effect]) -> list[Effect]:
        """What is waited for is said again; nothing at all where that was done often enough."""
        if row.said >= times_max:
            return []
        row.said += 1
        return [*effects, SetTimer(key, self.limits.say_ms)]

    def on_ask(self, key: str, row: Moving, input: Ask) -> list[Effect]:
        """Waits for its turn."""
        row.state, row.number, row.said = QUEUED, input.number, 1
        return self.abort(key, row, THE_END) if self.gives == NO_MORE else []

    def on_change(self, key: str, row: Moving, input: Change) -> list[Effect]:
        """Makes ready what is to start, but for what was lost: that is not touched ahead of its fence."""
        row.state, row.ends, row.starts, row.lost = PREPARING, input.ends, input.starts, input.lost or ()
        row.awaits = tuple(one for one in _names(input.starts) if one not in row.lost)
        return self.waiting(key, row, self.preparing(row)) if row.awaits else self.end(key, row)

    def preparing(self, row: Moving) -> list[Effect]:
        """What sites are asked to make ready and have not answered."""
        ends = tuple(end.stands for end in row.ends)
        waiting = [one for one in row.starts if one.fragment in row.awaits]
        return [Send(one.site, PrepareFragment(row.number, one.fragment, one.task, ends)) for one in waiting]

    def on_moot(self, key: str, row: Moving, input: Moot) -> list[Effect]:
        """There is nothing to do."""
        return self.over(key, row, NotChanged(row.number, input.reason))

    def on_ask_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """No word of what to do."""
        late = NotChanged(row.number, "what to change was not worked out in time")
        return self.again(key, row, self.limits.asks_max, []) or self.over(key, row, late)

    def on_prepared(self, key: str, row: Moving, input: Received) -> list[Effect]:
        """When the last is ready, or as ready as can be, the old end."""
        word = input.message
        assert isinstance(word, FragmentPrepared | FragmentNotPrepared)
        if isinstance(word, FragmentPrepared):
            row.told = tuple(sorted({*row.told, *word.awaits}))
        elif word.impossible:
            return self.abort(key, row, word.reason)
        row.awaits = _without(row.awaits, word.fragment)
        return [] if row.awaits else self.end(key, row)

    def on_prepare_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """What is not ready starts cold."""
        again = self.again(key, row, self.limits.prepares_max, self.preparing(row))
        if again:
            return again
        row.awaits = ()
        return self.end(key, row)

    def end(self, key: str, row: Moving) -> list[Effect]:
        """Asks as many to end as may; when all have, sites write down where what starts goes on."""
        row.state = ENDING
        effects: list[Effect] = []
        while row.asked < len(row.ends):
            end = row.ends[row.asked]
            if end.drains and not row.drained:
                if not row.awaits:
                    row.drains = end.drains
                    effects += self.draining(row)
                break
            row.asked, row.drained = row.asked + 1, False
            row.awaits = tuple(sorted((*row.awaits, end.fragment)))
            effects.append(Tell(EndCleanly(end.fragment, row.number, end.fragment in row.told)))
        if row.awaits or row.drains:
            return self.waiting(key, row, effects)
        return self.carry(key, row)

    def draining(self, row: Moving) -> list[Effect]:
        """The channels that the next to end has to drain."""
        end, after = row.ends[row.asked], after_of(row.ended)
        return [Send(end.site, DrainChannel(row.number, one, end.fragment, after)) for one in row.drains]

    def on_drained(self, key: str, row: Moving, input: Received) -> list[Effect]:
        """When the last channel is empty, its reader may end."""
        word = input.message
        assert isinstance(word, ChannelIsDrained)
        if word.after != after_of(row.ended) or word.channel not in row.drains:
            return []  # it was empty another time
        row.drains = _without(row.drains, word.channel)
        if row.drains:
            return []
        row.drained = True
        return self.end(key, row)

    def on_finishing(self, key: str, row: Moving, input: Finishing) -> list[Effect]:
        """Whoever goes on from there may know already where."""
        starts = [one for one in row.starts if one.fragment not in row.lost]
        return [Send(one.site, OpenGate(row.number, one.fragment, input.ended)) for one in starts]

    def on_ended(self, key: str, row: Moving, input: Ended) -> list[Effect]:
        """A clean end is a step on; any other can be repaired only by the fragment's own checkpoint."""
        if not input.clean:
            return self.abort(key, row, f"{input.fragment} did not end at a batch boundary")
        ended = EndedAt(input.fragment, input.epoch, input.stands)
        row.ended = tuple(sorted((*row.ended, ended), key=lambda one: one.fragment))
        row.awaits = _without(row.awaits, input.fragment)
        return [] if row.awaits else self.end(key, row)

    def on_end_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """Drains are asked for again; after long enough, the old plan goes on."""
        again = self.again(key, row, self.limits.ends_max, self.draining(row) if row.drains else [])
        return again or self.abort(key, row, f"{', '.join(row.awaits or row.drains)} did not end in time")

    def carry(self, key: str, row: Moving) -> list[Effect]:
        """Nothing of the old is alive: let sites write down where what starts goes on."""
        row.state, row.awaits = CARRYING, tuple(one for one in _names(row.starts) if one not in row.lost)
        return self.waiting(key, row, self.carrying(row)) if row.awaits else self.decide(key, row)

    def carrying(self, row: Moving) -> list[Effect]:
        """What sites are asked to carry over and have not answered."""
        waiting = [one for one in row.starts if one.fragment in row.awaits]
        return [Send(one.site, CarryOver(row.number, one.fragment, one.task, row.ended)) for one in waiting]

    def on_carried(self, key: str, row: Moving, input: Received) -> list[Effect]:
        """When all is written down, let the body decide."""
        word = input.message
        assert isinstance(word, Carried)
        if word.after != after_of(row.ended) or word.fragment not in row.awaits:
            return []  # it goes on from other ends
        row.awaits = _without(row.awaits, word.fragment)
        row.carried = tuple(sorted((*row.carried, (word.fragment, word.carried)), key=lambda one: one[0]))
        return [] if row.awaits else self.decide(key, row)

    def on_not_carried(self, key: str, row: Moving, input: Received) -> list[Effect]:
        """The old plan goes on."""
        word = input.message
        assert isinstance(word, NotCarried)
        return self.abort(key, row, word.reason) if word.after == after_of(row.ended) else []

    def on_carry_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """It is asked for again; after long enough, the old plan goes on."""
        again = self.again(key, row, self.limits.carries_max, self.carrying(row))
        return again or self.abort(key, row, f"{', '.join(row.awaits)} was not carried over in time")

    def decide(self, key: str, row: Moving) -> list[Effect]:
        """All is on disk that the new plan rests on: let the body write what is in force."""
        row.state = DECIDING
        return [Decide(row.number, row.carried), SetTimer(key, self.limits.say_ms)]

    def on_decide_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """It may be written or not: only the body can say."""
        return self.decide(key, row)

    def on_undecided(self, key: str, row: Moving, input: Undecided) -> list[Effect]:
        """The old plan goes on."""
        return self.abort(key, row, input.reason)

    def on_decided(self, key: str, row: Moving, input: Decided) -> list[Effect]:
        """The new plan is in force: its fragments are wanted, those it does not have are not."""
        if self.gives == NO_MORE:
            return self.over(key, row, Changed(row.number, THE_END))
        row.state, row.awaits = STARTING, _names(row.starts)
        gone = [Tell(Unwant(end.fragment)) for end in row.ends if end.fragment not in row.awaits]
        if not row.awaits:
            return [*gone, *self.over(key, row, Changed(row.number))]
        least, tasks = least_epoch(row.number), dict(input.tasks)
        wants = [
            Tell(Want(one.fragment, one.site, least, row.number, one.fragment in row.lost, tasks.get(one.fragment)))
            for one in row.starts
        ]
        return self.waiting(key, row, [*gone, *wants])

    def abort(self, key: str, row: Moving, reason: str) -> list[Effect]:
        """The old plan stays in force: what was asked to end is wanted again, what was made ready is dropped."""
        row.drops = tuple(one for one in _names(row.starts) if one not in row.lost)
        drops = self.dropping(row)
        if self.gives == NO_MORE:
            return [*drops, *self.over(key, row, NotChanged(row.number, reason))]
        old = row.ends[: row.asked]
        row.state, row.reason, row.awaits, row.drains = ABORTING, reason, _names(old), ()
        wants = [Tell(Want(end.fragment, end.site, change=row.number)) for end in old]
        return self.waiting(key, row, [*drops, *wants]) if row.awaits or row.drops else self.unless_waiting(key, row)

    def dropping(self, row: Moving) -> list[Effect]:
        """What sites have not said that they have dropped."""
        left = [one for one in row.starts if one.fragment in row.drops]
        return [Send(one.site, DiscardFragment(row.number, one.fragment)) for one in left]

    def on_discarded(self, key: str, row: Moving, input: Received) -> list[Effect]:
        """Nothing is left of it at a site."""
        word = input.message
        assert isinstance(word, FragmentDiscarded)
        row.drops = _without(row.drops, word.fragment)
        return self.unless_waiting(key, row)

    def on_up(self, key: str, row: Moving, input: Up) -> list[Effect]:
        """When the last one runs, the change is over."""
        row.awaits = _without(row.awaits, input.fragment)
        return self.unless_waiting(key, row)

    def unless_waiting(self, key: str, row: Moving) -> list[Effect]:
        """Over, unless something is awaited."""
        return [] if row.awaits or row.drops else self.over(key, row, self.verdict(row))

    def on_up_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """The plan is in force though not all of it was seen to run; the conductor goes on trying."""
        again = self.again(key, row, self.limits.starts_max, self.dropping(row))
        return again or self.over(key, row, self.verdict(row))

    def verdict(self, row: Moving) -> Effect:
        """What has become of the change."""
        missing = f"{', '.join(row.awaits)} does not run yet" if row.awaits else ""
        if row.state == STARTING:
            return Changed(row.number, missing)
        return NotChanged(row.number, f"{row.reason}; {missing}" if missing else row.reason)

    def on_cancel(self, key: str, row: Moving, input: Cancel) -> list[Effect]:
        """As if it had not been asked for."""
        return self.abort(key, row, "cancelled")

    def over(self, key: str, row: Moving, verdict: Effect) -> list[Effect]:
        """The change is over."""
        row.state = OVER
        return [CancelTimer(key), verdict]

    def ignore(self, key: str, row: Moving, input: Input) -> list[Effect]:
        """Word that comes late or twice."""
        return []


def _names(those: tuple[End | Start, ...]) -> tuple[str, ...]:
    return tuple(sorted(one.fragment for one in those))


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(one for one in names if one != name)


_ANSWERS = (FragmentPrepared, FragmentNotPrepared, FragmentDiscarded, ChannelIsDrained, Carried, NotCarried)
_BEFORE = (QUEUED, ASKED)
_MIDDLE = (PREPARING, ENDING, CARRYING)
_AFTER = (DECIDING, STARTING, ABORTING)
Mover.STEPS = {
    # Answers of sites that come late or twice, or to an earlier life of this desk.
    **{(state, word): Step(Mover.ignore, (state,)) for state in (*_BEFORE, *_MIDDLE, *_AFTER) for word in _ANSWERS},
    # What is asked for when it is decided already; a decision that was asked for again is told again.
    **{(state, Cancel): Step(Mover.ignore, (state,)) for state in _AFTER},
    (STARTING, Decided): Step(Mover.ignore, (STARTING,)),
    (ABORTING, Undecided): Step(Mover.ignore, (ABORTING,)),
    (NEW, Ask): Step(Mover.on_ask, (QUEUED, OVER)),
    **{(state, Cancel): Step(Mover.on_cancel, (OVER,)) for state in _BEFORE},
    (ASKED, Change): Step(Mover.on_change, (PREPARING, ENDING, CARRYING, DECIDING)),
    (ASKED, Moot): Step(Mover.on_moot, (OVER,)),
    (ASKED, TimerFired): Step(Mover.on_ask_timer, (ASKED, OVER)),
    **{(state, Cancel): Step(Mover.on_cancel, (ABORTING, OVER)) for state in _MIDDLE},
    (PREPARING, FragmentPrepared): Step(Mover.on_prepared, (PREPARING, ENDING, CARRYING)),
    (PREPARING, FragmentNotPrepared): Step(Mover.on_prepared, (PREPARING, ENDING, CARRYING, ABORTING, OVER)),
    (PREPARING, TimerFired): Step(Mover.on_prepare_timer, (PREPARING, ENDING, CARRYING)),
    (ENDING, ChannelIsDrained): Step(Mover.on_drained, (ENDING,)),
    (ENDING, Finishing): Step(Mover.on_finishing, (ENDING,)),
    (ENDING, Ended): Step(Mover.on_ended, (ENDING, CARRYING, DECIDING, ABORTING)),
    (ENDING, TimerFired): Step(Mover.on_end_timer, (ENDING, ABORTING, OVER)),
    (CARRYING, Carried): Step(Mover.on_carried, (CARRYING, DECIDING)),
    (CARRYING, NotCarried): Step(Mover.on_not_carried, (CARRYING, ABORTING, OVER)),
    (CARRYING, TimerFired): Step(Mover.on_carry_timer, (CARRYING, ABORTING, OVER)),
    (DECIDING, Decided): Step(Mover.on_decided, (STARTING, OVER)),
    (DECIDING, Undecided): Step(Mover.on_undecided, (ABORTING, OVER)),
    (DECIDING, TimerFired): Step(Mover.on_decide_timer, (DECIDING,)),
    (STARTING, Up): Step(Mover.on_up, (STARTING, OVER)),
    (STARTING, TimerFired): Step(Mover.on_up_timer, (STARTING, OVER)),
    (ABORTING, Up): Step(Mover.on_up, (ABORTING, OVER)),
    (ABORTING, FragmentDiscarded): Step(Mover.on_discarded, (ABORTING, OVER)),
    (ABORTING, TimerFired): Step(Mover.on_up_timer, (ABORTING, OVER)),
}
