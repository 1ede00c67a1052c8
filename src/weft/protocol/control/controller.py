"""The controller: decides which wishes are carried out, and when.

1. Rules look at complete measurements only. With every observation the wishes that rested on the one before lapse; an
   incomplete one lets no rule look.
2. What rules wish on one observation is weighed together, when all of them have looked: promise before balance before
   scale, and of one kind in the order of their numbers.
3. One change in a neighbourhood at a time: nothing is asked for that touches what a change under way touches.
4. A person comes before failover, failover before all other rules. Wishes of these two need no measurements, nor does
   what sites have agreed upon among themselves: they wait until the change under way is over, and no wish of lower
   precedence that touches the same passes one that waits.
5. After a change, made or failed, what it touched rests: rules leave it alone. Who needs no measurements need not wait.
   A change of which no word comes in time counts as made.
6. No rule undoes a change within a period after it, unless it needs no measurements.
7. A change that was made by another door counts as one that was made here.
8. Where the controller only advises, a rule's wish that would be asked for is advised, and nothing is changed by it. A
   person's is asked for, and so is what sites have agreed upon.
9. Every wait is under a timer, and every wish is asked for, advised or declined, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from weft.protocol.control.words import (
    FAILOVER,
    PERSON,
    PRECEDENCE,
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Consider,
    Considered,
    Decline,
    Forgotten,
    Noticed,
    NoWord,
    Observation,
    Rested,
    Shift,
    Wished,
)
from weft.protocol.machine import CancelTimer, Effect, Input, Machine, Row, SetTimer, Step, Steps, TimerFired

NEW, LOOKING = "new", "looking"
GATHERED, WAITING, ASKED, RESTING, KEPT, OVER = "gathered", "waiting", "asked", "resting", "kept", "over"
LOOK = "look"


class ControllerLimits(msgspec.Struct, frozen=True):
    """How long rules may look, a wish may wait, a change may take, and what it touched rests and is kept as it is.

    A rest longer than the period of measurements makes sure that rules see what a change has led to.
    """

    look_ms_max: int = 60_000
    wait_ms_max: int = 1_800_000
    change_ms_max: int = 900_000
    rest_ms: int = 60_000
    keep_ms: int = 240_000


class Wish(Row, array_like=True):
    """One wish and what became of it; in the row of the look, `number` is the observation that rules look at."""

    state: str = NEW
    number: int = 0
    who: str = ""
    shifts: tuple[Shift, ...] = ()
    touches: tuple[str, ...] = ()
    reason: str = ""


class Controller(Machine):
    """Decides on wishes of persons and rules; where it `advises`, what rules wish is told and not done."""

    __slots__ = ("advises", "limits")
    ROW = Wish
    STEPS: ClassVar[Steps]

    def __init__(self, name: str, advises: bool = False, limits: ControllerLimits | None = None) -> None:
        super().__init__(name)
        self.advises = advises
        self.limits = limits or ControllerLimits()

    def key(self, input: Any) -> str:
        """The wish an input is about, which is also the name of its timer; or the look."""
        if isinstance(input, TimerFired):
            return input.name
        return LOOK if isinstance(input, Observation | Considered) else f"wish {input.number}"

    def late(self, key: str, row: Wish, input: Any) -> list[Effect] | None:
        """Word of a look or a wish that is over is passed over."""
        if isinstance(input, Considered) and input.number != row.number:
            return []
        return [] if row.state == NEW and not isinstance(input, Observation | Wished | Noticed) else None

    def concluding(self) -> list[Effect]:
        """Forgets what is over, and asks for what waited where it now can be."""
        self.rows = {key: row for key, row in self.rows.items() if row.state not in (NEW, OVER)}
        effects: list[Effect] = []
        for key, row in self.ranked(WAITING):
            if not self.waits(row):
                effects += self.ask(key, row)
        self.rows = {key: row for key, row in self.rows.items() if row.state != OVER}
        return effects

    def ranked(self, state: str) -> list[tuple[str, Wish]]:
        """Wishes in a state, those first that come first."""
        those = ((key, row) for key, row in self.rows.items() if row.state == state)
        return sorted(those, key=lambda one: _rank(one[1]))

    def beside(self, row: Wish, *states: str) -> list[Wish]:
        """Wishes in some states that touch what a wish touches."""
        those = (one for _, one in sorted(self.rows.items()) if one.state in states)
        return [one for one in those if _shared(row, one)]

    def waits(self, row: Wish) -> bool:
        """True if a change under way, or a wish that comes first, touches what a wish touches."""
        first = any(_rank(one) < _rank(row) for one in self.beside(row, WAITING, GATHERED))
        return first or bool(self.beside(row, ASKED))

    def on_observation(self, key: str, row: Wish, input: Observation) -> list[Effect]:
        """Rules look anew, if there is something to look at."""
        lapsed = self.lapse("it was measured anew")
        if not input.complete:
            row.state = NEW
            return [*lapsed, CancelTimer(LOOK)]
        row.state, row.number = LOOKING, input.number
        return [*lapsed, Consider(input.number), SetTimer(LOOK, self.limits.look_ms_max)]

    def on_look_timer(self, key: str, row: Wish, input: TimerFired) -> list[Effect]:
        """Rules that do not come to an end are not waited for."""
        row.state = NEW
        return self.lapse("the rules did not all look in time")

    def lapse(self, why: str) -> list[Effect]:
        """Drops what rules wished on the last observation."""
        effects: list[Effect] = []
        for _, row in self.ranked(GATHERED):
            row.state = OVER
            effects.append(Decline(row.number, why))
        return effects

    def on_wished(self, key: str, row: Wish, input: Wished) -> list[Effect]:
        """What rests on no observation waits for its turn; the rest for all rules to have looked."""
        row.number, row.who, row.shifts, row.touches = input.number, input.who, input.shifts, input.touches
        row.reason = input.reason
        if not input.seen:
            row.state = WAITING
            return [SetTimer(key, self.limits.wait_ms_max)]
        look = self.rows.get(LOOK)
        if look is None or look.number != input.seen:
            row.state = OVER
            return [Decline(row.number, "it does not rest on the last measurements")]
        row.state = GATHERED
        return []

    def on_considered(self, key: str, row: Wish, input: Considered) -> list[Effect]:
        """All rules have looked: what nothing speaks against is asked for."""
        row.state = NEW
        effects: list[Effect] = [CancelTimer(LOOK)]
        taken: list[Wish] = []
        for key_, wish in self.ranked(GATHERED):
            why = self.why_not(wish, taken)
            if why:
                wish.state = OVER
                effects.append(Decline(wish.number, why))
            else:
                taken.append(wish)
                effects += self.ask(key_, wish)
        return effects

    def why_not(self, row: Wish, taken: Iterable[Wish]) -> str:
        """What speaks against a rule's wish; empty where nothing does."""
        for state, why in ((ASKED, "is being changed"), (WAITING, "waits for a change"), (RESTING, "rests")):
            for one in self.beside(row, state):
                if state != WAITING or _rank(one) < _rank(row):
                    return f"{_shared(row, one)[0]} {why}"
        for one in taken:
            if _shared(row, one):
                return f"{_shared(row, one)[0]} is changed by another rule"
        undone = [one for one in self.rows.values() if one.state == KEPT and _undoes(row, one)]
        return f"it would undo a change of {undone[0].shifts[0].of}" if undone else ""

    def ask(self, key: str, row: Wish) -> list[Effect]:
        """A wish is carried out, or advised."""
        if self.advises and not (row.who == PERSON or (row.state == WAITING and row.who != FAILOVER)):
            waited: list[Effect] = [CancelTimer(key)] if row.state == WAITING else []
            row.state = OVER
            return [*waited, Advise(row.number, row.who, row.shifts, row.reason)]
        row.state = ASKED
        return [AskFor(row.number), SetTimer(key, self.limits.change_ms_max)]

    def on_wait_timer(self, key: str, row: Wish, input: TimerFired) -> list[Effect]:
        """It has waited long enough."""
        row.state = OVER
        return [Decline(row.number, f"what it touches was being changed for {self.limits.wait_ms_max / 1000:g} s")]

    def on_made(self, key: str, row: Wish, input: ChangeMade) -> list[Effect]:
        """What was changed rests."""
        return self.rest(key, row)

    def on_no_word(self, key: str, row: Wish, input: TimerFired) -> list[Effect]:
        """It may have been made: it counts as a change that is over."""
        return [NoWord(row.number), *self.rest(key, row)]

    def on_failed(self, key: str, row: Wish, input: ChangeFailed) -> list[Effect]:
        """Nothing was changed that could be undone, but asking again at once would fail again."""
        row.shifts = ()
        return self.rest(key, row)

    def on_noticed(self, key: str, row: Wish, input: Noticed) -> list[Effect]:
        """A change made elsewhere is rested after, too."""
        row.number, row.shifts, row.touches = input.number, input.shifts, input.touches
        return self.rest(key, row)

    def rest(self, key: str, row: Wish) -> list[Effect]:
        """Leaves what was touched alone for a while."""
        row.state = RESTING
        return [SetTimer(key, self.limits.rest_ms)]

    def on_rested(self, key: str, row: Wish, input: TimerFired) -> list[Effect]:
        """Rules may change it again, but not back."""
        if not row.shifts:
            row.state = OVER
            return [Rested(row.number), Forgotten(row.number)]
        row.state = KEPT
        return [Rested(row.number), SetTimer(key, self.limits.keep_ms)]

    def on_kept(self, key: str, row: Wish, input: TimerFired) -> list[Effect]:
        """Rules may change it back."""
        row.state = OVER
        return [Forgotten(row.number)]

    def ignore(self, key: str, row: Wish, input: Input) -> list[Effect]:
        """Word of a change that came after it was waited for no longer, or twice."""
        return []


def _rank(row: Wish) -> tuple[int, int]:
    return PRECEDENCE.index(row.who), row.number


def _shared(one: Wish, other: Wish) -> list[str]:
    """What both touch, in the order in which the first names it."""
    return [name for name in one.touches if name in other.touches]


def _undoes(row: Wish, done: Wish) -> bool:
    """True if a wish takes something back to where a change took it from."""
    before = {shift.of: shift.before for shift in done.shifts}
    return any(before.get(shift.of) == shift.after for shift in row.shifts)


Controller.STEPS = {
    (NEW, Observation): Step(Controller.on_observation, (NEW, LOOKING)),
    (LOOKING, Observation): Step(Controller.on_observation, (NEW, LOOKING)),
    (LOOKING, Considered): Step(Controller.on_considered, (NEW,)),
    (LOOKING, TimerFired): Step(Controller.on_look_timer, (NEW,)),
    (NEW, Wished): Step(Controller.on_wished, (WAITING, GATHERED, OVER)),
    (NEW, Noticed): Step(Controller.on_noticed, (RESTING,)),
    (WAITING, TimerFired): Step(Controller.on_wait_timer, (OVER,)),
    (ASKED, ChangeMade): Step(Controller.on_made, (RESTING,)),
    (ASKED, ChangeFailed): Step(Controller.on_failed, (RESTING,)),
    (ASKED, TimerFired): Step(Controller.on_no_word, (RESTING,)),
    (RESTING, TimerFired): Step(Controller.on_rested, (KEPT, OVER)),
    (KEPT, TimerFired): Step(Controller.on_kept, (OVER,)),
    **{(state, word): Step(Controller.ignore, (state,)) for state in (RESTING, KEPT)
       for word in (ChangeMade, ChangeFailed)},
}  # fmt: skip
