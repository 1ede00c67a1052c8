"""What is really so around a controller: wishes told and answered, changes under way, what rests and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice
from weft.protocol import Effect
from weft.protocol.control import (
    FAILOVER,
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

CONTROLLER = "controller"
TOGETHER = "no two changes under way touch the same"
PASSED = "no wish passes one that comes first and touches the same"
BLIND = "no rule's wish is carried out but on the last measurements, and these complete"
HASTE = "no rule changes what rests"
UNDONE = "no rule undoes what was changed a while ago"
TWICE = "every wish is answered once"
ACTED = "where it advises, only persons' wishes and what sites agreed upon are asked for"
RELENTED = "only what rested has rested, and only what was kept is forgotten"
UNWEIGHED = "what rules wish is weighed when all of them have looked"
OTHERWISE = "advice is told as it was wished"
FAULTS = (TOGETHER, PASSED, BLIND, HASTE, UNDONE, TWICE, ACTED, RELENTED, UNWEIGHED, OTHERWISE)


class Plot:
    """Wishes by number (`who of before>after`), what rules wish on each observation, and what comes at any time.

    What a wish touches are the places it leaves and joins. An observation is a text of numbers, or None where it is
    incomplete. `noticed` are changes that come about by another door. A wish of balance or scale that no observation
    names is what sites have agreed upon among themselves.
    """

    def __init__(
        self, wishes: str, looks: tuple[str | None, ...] = (), noticed: str = "", expected: str = "", silent: int = 0,
    ) -> None:  # fmt: skip
        self.wishes: dict[int, tuple[str, Shift]] = {}
        for number, text in enumerate(wishes.split(", "), 1):
            who, of, way = text.split()
            self.wishes[number] = (who, Shift(of, *way.split(">")))
        self.looks = tuple(None if look is None else _numbers(look) for look in looks)
        self.noticed = _numbers(noticed)
        looked = {number for look in self.looks for number in look or ()}
        self.free = tuple(number for number in self.wishes if number not in looked and number not in self.noticed)
        self.expected = _numbers(expected)
        self.silent = silent

    def who(self, number: int) -> str:
        """Whose wish it is."""
        return self.wishes[number][0]

    def shift(self, number: int) -> Shift:
        """What a wish would change."""
        return self.wishes[number][1]

    def touches(self, number: int) -> tuple[str, ...]:
        """What a wish touches."""
        _, shift = self.wishes[number]
        return (shift.of, shift.before, shift.after)

    def meet(self, one: int, other: int) -> bool:
        """Whether two wishes touch the same."""
        return one != other and bool({*self.touches(one)} & {*self.touches(other)})

    def first(self, one: int, other: int) -> bool:
        """Whether a wish comes before another."""
        return PRECEDENCE.index(self.who(one)) < PRECEDENCE.index(self.who(other))

    def acts(self, number: int) -> bool:
        """Whether a wish is carried out also where rules only advise."""
        return number in self.free and self.who(number) != FAILOVER

    def undoes(self, one: int, other: int) -> bool:
        """Whether a wish takes back what another did."""
        (_, now), (_, then) = self.wishes[one], self.wishes[other]
        return (now.of, now.after) == (then.of, then.before)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split())


class Board(msgspec.Struct, frozen=True):
    """What was told and answered, what is under way, rests and is kept; `fault` is what was wrong first."""

    case: Plot
    looks: int = 0
    looking: int = 0
    """The observation that rules look at; 0 where they have looked, or may not."""
    late: tuple[int, ...] = ()
    """Observations that rules still look at though another came since."""
    told: tuple[int, ...] = ()
    open: tuple[int, ...] = ()
    under_way: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    advised: tuple[int, ...] = ()
    """What was advised on the last observation."""
    resting: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    """Changes under way of which no word will come."""
    unheard: tuple[int, ...] = ()
    """Changes of which word will come though it is waited for no longer."""
    silent_left: int = 0
    advises: bool = False
    fault: str = ""

    def __hash__(self) -> int:
        return hash((
            self.looks, self.looking, self.late, self.told, self.open, self.under_way, self.asked, self.advised,
            self.resting, self.kept, self.silent, self.unheard, self.silent_left, self.fault,
        ))  # fmt: skip

    def perform(self, site: str, effect: Effect) -> Board:
        """The board after an effect."""
        match effect:
            case Consider(number):
                fault = BLIND if self.case.looks[number - 1] is None else ""
                return self.but(fault=self.fault or fault, looking=number, advised=())
            case AskFor(number):
                fault = self.wrong(number) or (ACTED if self.advises and not self.case.acts(number) else "")
                return self.but(
                    fault=self.fault or fault, open=_less(self.open, number), asked=_more(self.asked, number),
                    under_way=_more(self.under_way, number),
                )  # fmt: skip
            case Advise(number, who, shifts, reason):
                told = (who, shifts, reason) == (self.case.who(number), (self.case.shift(number),), _reason(number))
                fault = self.wrong(number) if told else OTHERWISE
                fault = fault or ("" if self.advises and not self.case.acts(number) else ACTED)
                fault = fault or (TOGETHER if any(self.case.meet(number, one) for one in self.advised) else "")
                advised = self.advised if number in self.case.free else _more(self.advised, number)
                return self.but(
                    fault=self.fault or fault, open=_less(self.open, number), asked=_more(self.asked, number),
                    advised=advised,
                )  # fmt: skip
            case Decline(number):
                fault = "" if number in self.open else TWICE
                return self.but(fault=self.fault or fault, open=_less(self.open, number))
            case NoWord(number):
                fault = "" if number in self.under_way else TWICE
                unheard = self.unheard if number in self.silent else _more(self.unheard, number)
                return self.but(
                    fault=self.fault or fault, under_way=_less(self.under_way, number), unheard=unheard,
                    resting=_more(self.resting, number), kept=_more(self.kept, number),
                )  # fmt: skip
            case Rested(number):
                fault = "" if number in self.resting else RELENTED
                return self.but(fault=self.fault or fault, resting=_less(self.resting, number))
            case Forgotten(number):
                fault = RELENTED if number in self.resting else ""
                return self.but(fault=self.fault or fault, kept=_less(self.kept, number))
        return self

    def wrong(self, number: int) -> str:
        """What is wrong with carrying out a wish now; empty where nothing is."""
        case = self.case
        if number not in self.open:
            return TWICE
        if any(case.meet(number, one) for one in self.under_way):
            return TOGETHER
        if any(case.meet(number, one) and case.first(one, number) for one in self.open):
            return PASSED
        if number in case.free:
            return ""
        if not self.looks or number not in (case.looks[self.looks - 1] or ()):
            return BLIND
        if self.looking:
            return UNWEIGHED
        if any(case.meet(number, one) for one in self.resting):
            return HASTE
        return UNDONE if any(case.undoes(number, one) for one in self.kept) else ""

    def choices(self) -> Iterator[Choice]:
        """What persons, rules, measurements and changes under way may tell next."""
        case = self.case
        for number in (*case.free, *case.noticed):
            if number not in self.told:
                yield self.telling(number)
        if self.looks < len(case.looks):
            number = self.looks + 1
            whole = case.looks[self.looks] is not None
            late = _more(self.late, self.looking) if self.looking else self.late
            after = self.but(looks=number, looking=0, late=late)
            yield Choice(CONTROLLER, Observation(number, whole, () if whole else ("rate",)), after)
        for look in (*self.late, *((self.looking,) if self.looking else ())):
            yield from self.considering(look)
        for number in self.unheard:
            yield Choice(CONTROLLER, ChangeMade(number), self.but(unheard=_less(self.unheard, number)))
        for number in self.under_way:
            if number in self.silent:
                continue
            rest = _less(self.under_way, number)
            resting = _more(self.resting, number)
            made = self.but(under_way=rest, resting=resting, kept=_more(self.kept, number))
            yield Choice(CONTROLLER, ChangeMade(number), made)
            yield Choice(CONTROLLER, ChangeFailed(number), self.but(under_way=rest, resting=resting))
            if self.silent_left:
                silent = self.but(silent=_more(self.silent, number), silent_left=self.silent_left - 1)
                yield Choice(CONTROLLER, ChangeMade(number), silent, due=False, heard=False)

    def considering(self, look: int) -> Iterator[Choice]:
        """What rules say on an observation: every wish, in any order, then that they have looked."""
        waiting = [number for number in self.case.looks[look - 1] or () if number not in self.told]
        for number in waiting:
            yield self.telling(number, look)
        if not waiting:
            done = self.but(looking=0) if look == self.looking else self.but(late=_less(self.late, look))
            yield Choice(CONTROLLER, Considered(look), done)

    def telling(self, number: int, look: int = 0) -> Choice:
        """A wish, or a change made elsewhere, is told."""
        who, shift = self.case.wishes[number]
        told, touches = _more(self.told, number), self.case.touches(number)
        if number in self.case.noticed:
            after = self.but(told=told, resting=_more(self.resting, number), kept=_more(self.kept, number))
            return Choice(CONTROLLER, Noticed(number, (shift,), touches), after)
        after = self.but(told=told, open=_more(self.open, number))
        return Choice(CONTROLLER, Wished(number, who, (shift,), touches, _reason(number), look), after)

    def crash(self, site: str) -> Board:
        """The desk is lost with its controller, and what was under way with it."""
        return self.but(open=(), under_way=(), resting=(), kept=(), silent=(), unheard=(), looking=0, late=())

    def but(self, **changes: Any) -> Board:
        """The same board, changed."""
        return msgspec.structs.replace(self, **changes)


def _reason(number: int) -> str:
    return f"reason {number}"


def _more(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(sorted({*numbers, number}))


def _less(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(one for one in numbers if one != number)
