"""Worlds for the controller: persons and rules that wish at once, measurements and changes that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, View, World
from weft.protocol import Effect
from weft.protocol.control import (
    FAILOVER,
    PERSON,
    PRECEDENCE,
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Consider,
    Considered,
    Controller,
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
ACTED = "where it advises, only persons' wishes are asked for"
RELENTED = "only what rested has rested, and only what was kept is forgotten"
FAULTS = (TOGETHER, PASSED, BLIND, HASTE, UNDONE, TWICE, ACTED, RELENTED)
UNMEASURED = (PERSON, FAILOVER)


class Case:
    """Wishes by number (`who of before>after`), what rules wish on each observation, and what comes at any time.

    What a wish touches are the places it leaves and joins. An observation is a text of numbers, or None where it is
    incomplete. `noticed` are changes that come about by another door.
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

    def undoes(self, one: int, other: int) -> bool:
        """Whether a wish takes back what another did."""
        (_, now), (_, then) = self.wishes[one], self.wishes[other]
        return (now.of, now.after) == (then.of, then.before)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split())


class Board(msgspec.Struct, frozen=True):
    """What was told and answered, what is under way, rests and is kept; `fault` is what was wrong first."""

    case: Case
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
                fault = self.wrong(number) or (ACTED if self.advises and self.case.who(number) != PERSON else "")
                return self.but(
                    fault=self.fault or fault, open=_less(self.open, number), asked=_more(self.asked, number),
                    under_way=_more(self.under_way, number),
                )  # fmt: skip
            case Advise(number):
                fault = self.wrong(number) or ("" if self.advises and self.case.who(number) != PERSON else ACTED)
                fault = fault or (TOGETHER if any(self.case.meet(number, one) for one in self.advised) else "")
                advised = self.advised if self.case.who(number) in UNMEASURED else _more(self.advised, number)
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
        if case.who(number) in UNMEASURED:
            return ""
        if not self.looks or number not in (case.looks[self.looks - 1] or ()):
            return BLIND
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
        return Choice(CONTROLLER, Wished(number, who, (shift,), touches, "", look), after)

    def crash(self, site: str) -> Board:
        """The desk is lost with its controller, and what was under way with it."""
        return self.but(open=(), under_way=(), resting=(), kept=(), silent=(), unheard=(), looking=0, late=())

    def but(self, **changes: Any) -> Board:
        """The same board, changed."""
        return msgspec.structs.replace(self, **changes)


def _more(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(sorted({*numbers, number}))


def _less(numbers: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple(one for one in numbers if one != number)


def _without(fault: str) -> Callable[[View], bool]:
    return lambda view: view.ground.fault != fault


def under_a_timer(view: View) -> bool:
    """Whatever waits, rests, is kept or is looked at has its timer, and nothing else has one."""
    rows = view.machine(CONTROLLER).rows
    timed = {key for key, row in rows.items() if row.state != "gathered"}
    return timed == {name for _, name in view.timers}


def remembered(view: View) -> bool:
    """The controller knows of every change that is under way, and of every one that rests."""
    ground, rows = view.ground, view.machine(CONTROLLER).rows
    known = {state: {row.number for row in rows.values() if row.state == state} for state in ("asked", "resting")}
    return known["asked"] == {*ground.under_way} and known["resting"] == {*ground.resting}


def answered(view: View) -> bool:
    """Every wish has its answer, everything rested, persons got what they asked for, and rules what they should."""
    ground: Board = view.ground
    case = ground.case
    if view.busy or view.timers or view.machine(CONTROLLER).rows:
        return False
    if ground.open or ground.under_way or ground.resting or ground.kept:
        return False
    if any(view.faults) or ground.silent_left < case.silent:
        return True  # then a wait may have ended before its turn came
    persons = {number for number in case.free if case.who(number) == PERSON}
    return persons | {*case.expected} <= {*ground.asked}


INVARIANTS = {
    **{fault: _without(fault) for fault in FAULTS},
    "whatever waits has a timer, and nothing else": under_a_timer,
    "what is under way and what rests is known": remembered,
}


def world(
    name: str, case: Case, advises: bool = False, controller: type[Controller] = Controller, **faults: Any
) -> World:
    """A controller, and all that may be told to it."""

    def reborn(name: str, ground: Board | None) -> Controller:
        return controller(name, advises)

    board = Board(case, silent_left=case.silent, advises=advises)
    return World(
        name, lambda: {CONTROLLER: reborn(CONTROLLER, None)}, board, (), INVARIANTS, answered, reborn, (CONTROLLER,),
        **faults,
    )  # fmt: skip


def worlds(
    as_published: bool = False, long: bool = False, controller: type[Controller] = Controller
) -> tuple[World, ...]:
    """The worlds of the controller; it is our own, so nothing is published to compare with."""

    def of(name: str, case: Case, **more: Any) -> World:
        return world(name, case, controller=controller, **more)

    all_kinds = "person o a>b, failover p a>c, promise q b>c, balance r c>d, scale s d>e"
    usual = (
        of("a person", Case("person o a>b", expected="1")),
        of("a rule", Case("balance o a>b", ("1",), expected="1")),
        of("a rule that only advises", Case("balance o a>b, person p c>d", ("1",), expected="1 2"), advises=True),
        of("failover that only advises", Case("failover o a>b, person p b>c"), advises=True),
        of("two persons apart", Case("person o a>b, person p c>d")),
        of("a person who waits further on", Case("person o c>d, person p b>c, failover q a>b")),
        of("two persons at one site", Case("person o a>b, person p b>c, failover q b>d")),
        of("three rules at one site", Case("scale o a>b, balance p b>c, promise q c>a", ("1 2 3",), expected="3")),
        of("three rules that advise", Case("scale o a>b, balance p b>c, promise q c>a", ("1 2 3",), expected="3"),
           advises=True),
        of("two rules apart", Case("balance o a>b, scale p c>d", ("1 2",), expected="1 2")),
        of("not all was measured", Case("balance o a>b, balance p c>d, balance q e>f", ("1", None, "2 3"))),
        of("a person and rules", Case("person o a>b, balance p b>c, scale q d>e", ("2 3",), expected="1 3")),
        of("back and forth", Case("balance o a>b, balance o b>a, balance o b>a", ("1", "2", "3"))),
        of("a person goes back", Case("balance o a>b, person o b>a, failover o b>a", ("1",))),
        of("a change by another door", Case("person o a>b, balance o b>a, balance p b>c", ("2", "3"), noticed="1")),
        of("all who wish", Case(all_kinds, ("3 4 5",))),
        of("no word of a change", Case("balance o a>b, balance o b>a, person p b>c", ("1", "2"), silent=1)),
        of("early timers", Case("person o a>b, person p b>c, balance q c>d", ("3",)), early=2),
        of("early timers and looks", Case("balance o a>b, balance o b>a, scale p a>c", ("1 3", "2")), early=2),
        of("a crash", Case("person o a>b, balance p b>c, balance p c>b", ("2", "3")), crash=1),
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual,
        of("all who wish, twice", Case(f"{all_kinds}, balance r d>c, scale s e>d", ("3 4 5", "6 7"), silent=1),
           early=1),
        of("back and forth, disturbed", Case("balance o a>b, person o b>a, promise o a>b, scale p b>c, balance o b>a",
           ("1 4", None, "3", "5"), silent=1), early=1, crash=1),
    )  # fmt: skip
