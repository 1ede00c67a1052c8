"""The mover: takes a running deployment from one plan to another, while records flow.

1. One change at a time, in the order of their numbers. What a change ends and starts is worked out when its turn
   comes, against the plan then in force.
2. What is to start is made ready before anything ends. That it is not ready in time, or cannot be made so, only costs
   time; that it can never run ends the change, and nothing has changed.
3. Fragments end upstream first, each at a batch boundary. One that must drain a channel is asked to end when all before
   it have ended and the channel is drained; others end side by side.
4. One write of the body decides. Before it the old plan is in force: whatever goes wrong, what was asked to end is
   wanted again, from its own checkpoint. After it the new plan is in force: whatever goes wrong, its fragments are
   wanted. While it is under way neither is known, so it is only asked for again.
5. What was lost with its site is not asked to end: it may be alive all the same, and is kept from writing by the
   fence of the epoch that takes over. Nothing of it is waited for, so such a change can only be decided.
6. What a change starts has epochs above all that any earlier change started, whichever fragment wrote its streams.
7. Every wait is under a timer, and a change that is over has been called changed or not changed, once.
8. Nothing here outlives a crash: the journal alone says which plan is in force.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from weft.protocol.hosting.words import EndCleanly, Unwant, Want
from weft.protocol.machine import CancelTimer, Effect, Input, Machine, Row, SetTimer, Step, Steps, TimerFired
from weft.protocol.moving.words import (
    Ask,
    Cancel,
    Change,
    Changed,
    ChannelDrained,
    Cool,
    Decide,
    Decided,
    Drain,
    End,
    Ended,
    Moot,
    NotChanged,
    NotWarmed,
    Start,
    Tell,
    Turn,
    Undecided,
    Up,
    Warm,
    Warmed,
    least_epoch,
)

NEW, QUEUED, ASKED, PREPARING, ENDING = "new", "queued", "asked", "preparing", "ending"
DECIDING, STARTING, ABORTING, OVER = "deciding", "starting", "aborting", "over"
NOT_YET, TURNS, NO_MORE = "not yet", "turns", "no more"
THE_END = "the run ends"
STATES = (NEW, QUEUED, ASKED, PREPARING, ENDING, DECIDING, STARTING, ABORTING, OVER)


class MoverLimits(msgspec.Struct, frozen=True):
    """How long a mover waits in each phase of a change; the fragments' own patience is the conductor's."""

    ask_ms_max: int = 30_000
    prepare_ms_max: int = 30_000
    end_ms_max: int = 120_000
    decide_ms_max: int = 10_000
    start_ms_max: int = 180_000


class Moving(Row, array_like=True):
    """One change: what it ends and starts, how many ends were asked for, and which fragments or channels it awaits."""

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
        return input.name if isinstance(input, TimerFired) else f"change {input.number}"

    def late(self, key: str, row: Moving, input: Any) -> list[Effect] | None:
        """Word of a change that is over, or was never asked for, is passed over."""
        return [] if row.state == NEW and not isinstance(input, Ask) else None

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
        return [Turn(row.number), SetTimer(f"change {row.number}", self.limits.ask_ms_max)]

    def on_ask(self, key: str, row: Moving, input: Ask) -> list[Effect]:
        """Waits for its turn."""
        row.state, row.number = QUEUED, input.number
        return self.abort(key, row, THE_END) if self.gives == NO_MORE else []

    def on_change(self, key: str, row: Moving, input: Change) -> list[Effect]:
        """Makes ready what is to start."""
        row.state, row.ends, row.starts, row.lost = PREPARING, input.ends, input.starts, input.lost or ()
        row.awaits = _names(input.starts)
        if not row.awaits:
            return self.end(key, row)
        warm = [Warm(row.number, start.fragment, start.site) for start in row.starts]
        return [*warm, SetTimer(key, self.limits.prepare_ms_max)]

    def on_moot(self, key: str, row: Moving, input: Moot) -> list[Effect]:
        """There is nothing to do."""
        return self.over(key, row, NotChanged(row.number, input.reason))

    def on_ask_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """No word of what to do."""
        return self.over(key, row, NotChanged(row.number, "what to change was not worked out in time"))

    def on_warmed(self, key: str, row: Moving, input: Warmed | NotWarmed) -> list[Effect]:
        """When the last is ready, or as ready as can be, the old end."""
        if isinstance(input, NotWarmed) and input.impossible:
            return self.abort(key, row, input.reason)
        row.awaits = _without(row.awaits, input.fragment)
        return [] if row.awaits else self.end(key, row)

    def on_prepare_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """What is not ready starts cold."""
        row.awaits = ()
        return self.end(key, row)

    def end(self, key: str, row: Moving) -> list[Effect]:
        """Asks as many to end as may; when all have, it is time to decide."""
        row.state = ENDING
        effects: list[Effect] = []
        while row.asked < len(row.ends):
            end = row.ends[row.asked]
            if end.drains and not row.drained:
                if not row.awaits:
                    row.drains = end.drains
                    effects += [Drain(row.number, channel, end.fragment) for channel in end.drains]
                break
            row.asked, row.drained = row.asked + 1, False
            row.awaits = tuple(sorted((*row.awaits, end.fragment)))
            effects.append(Tell(EndCleanly(end.fragment, row.number)))
        if row.awaits or row.drains:
            return [*effects, SetTimer(key, self.limits.end_ms_max)]
        return self.decide(key, row)

    def on_drained(self, key: str, row: Moving, input: ChannelDrained) -> list[Effect]:
        """When the last channel is empty, its reader may end."""
        row.drains = _without(row.drains, input.channel)
        if row.drains:
            return []
        row.drained = True
        return self.end(key, row)

    def on_ended(self, key: str, row: Moving, input: Ended) -> list[Effect]:
        """A clean end is a step on; any other can be repaired only by the fragment's own checkpoint."""
        if not input.clean:
            return self.abort(key, row, f"{input.fragment} did not end at a batch boundary")
        row.awaits = _without(row.awaits, input.fragment)
        return [] if row.awaits else self.end(key, row)

    def on_end_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """The old plan goes on."""
        return self.abort(key, row, f"{', '.join(row.awaits or row.drains)} did not end in time")

    def decide(self, key: str, row: Moving) -> list[Effect]:
        """Nothing of the old is alive: let the body write what is in force."""
        row.state = DECIDING
        return [Decide(row.number), SetTimer(key, self.limits.decide_ms_max)]

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
        least = least_epoch(row.number)
        wants = [
            Tell(Want(one.fragment, one.site, least, row.number, one.fragment in row.lost)) for one in row.starts
        ]
        return [*gone, *wants, SetTimer(key, self.limits.start_ms_max)]

    def abort(self, key: str, row: Moving, reason: str) -> list[Effect]:
        """The old plan stays in force: what was asked to end is wanted again."""
        old = row.ends[: row.asked]
        cool = [Cool(row.number, start.fragment, start.site) for start in row.starts]
        if not old or self.gives == NO_MORE:
            return [*cool, *self.over(key, row, NotChanged(row.number, reason))]
        row.state, row.reason, row.awaits, row.drains = ABORTING, reason, _names(old), ()
        wants = [Tell(Want(end.fragment, end.site, change=row.number)) for end in old]
        return [*cool, *wants, SetTimer(key, self.limits.start_ms_max)]

    def on_up(self, key: str, row: Moving, input: Up) -> list[Effect]:
        """When the last one runs, the change is over."""
        row.awaits = _without(row.awaits, input.fragment)
        return [] if row.awaits else self.over(key, row, self.verdict(row))

    def on_up_timer(self, key: str, row: Moving, input: TimerFired) -> list[Effect]:
        """The plan is in force though not all of it was seen to run; the conductor goes on trying."""
        return self.over(key, row, self.verdict(row))

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


# What was not ready in time, a channel whose reader is wanted again, and what is asked for when it is decided already.
_LATE = {
    *{(state, fact) for state in (ENDING, DECIDING, STARTING, ABORTING) for fact in (Warmed, NotWarmed)},
    *{(state, Cancel) for state in (DECIDING, STARTING, ABORTING)},
    (ABORTING, ChannelDrained),
    # A decision that was asked for again is told again.
    (STARTING, Decided),
    (ABORTING, Undecided),
}
Mover.STEPS = {
    **{(state, fact): Step(Mover.ignore, (state,)) for state, fact in _LATE},
    (NEW, Ask): Step(Mover.on_ask, (QUEUED, OVER)),
    (QUEUED, Cancel): Step(Mover.on_cancel, (OVER,)),
    (ASKED, Cancel): Step(Mover.on_cancel, (OVER,)),
    (ASKED, Change): Step(Mover.on_change, (PREPARING, ENDING, DECIDING)),
    (ASKED, Moot): Step(Mover.on_moot, (OVER,)),
    (ASKED, TimerFired): Step(Mover.on_ask_timer, (OVER,)),
    (PREPARING, Cancel): Step(Mover.on_cancel, (OVER,)),
    (PREPARING, Warmed): Step(Mover.on_warmed, (PREPARING, ENDING, DECIDING)),
    (PREPARING, NotWarmed): Step(Mover.on_warmed, (PREPARING, ENDING, DECIDING, OVER)),
    (PREPARING, TimerFired): Step(Mover.on_prepare_timer, (ENDING, DECIDING)),
    (ENDING, Cancel): Step(Mover.on_cancel, (ABORTING, OVER)),
    (ENDING, ChannelDrained): Step(Mover.on_drained, (ENDING,)),
    (ENDING, Ended): Step(Mover.on_ended, (ENDING, DECIDING, ABORTING)),
    (ENDING, TimerFired): Step(Mover.on_end_timer, (ABORTING, OVER)),
    (DECIDING, Decided): Step(Mover.on_decided, (STARTING, OVER)),
    (DECIDING, Undecided): Step(Mover.on_undecided, (ABORTING, OVER)),
    (DECIDING, TimerFired): Step(Mover.on_decide_timer, (DECIDING,)),
    (STARTING, Up): Step(Mover.on_up, (STARTING, OVER)),
    (STARTING, TimerFired): Step(Mover.on_up_timer, (OVER,)),
    (ABORTING, Up): Step(Mover.on_up, (ABORTING, OVER)),
    (ABORTING, TimerFired): Step(Mover.on_up_timer, (OVER,)),
}
