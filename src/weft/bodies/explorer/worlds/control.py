"""Worlds for the controller: persons, rules and sites that wish at once, measurements and changes that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft.bodies.explorer.world import Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.control_ground import CONTROLLER, FAULTS, Board, Plot
from weft.protocol import Input, Machine
from weft.protocol.control import (
    Advise,
    AskFor,
    ChangeFailed,
    ChangeMade,
    Considered,
    Controller,
    Decline,
    Forgotten,
    Rested,
)

UNKNOWN = 99


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


def moved(view: View) -> bool:
    """The controller knows what every change moves, and of one that failed that it moved nothing."""
    ground, case = view.ground, view.ground.case
    rows = [row for row in view.machine(CONTROLLER).rows.values() if row.state in ("asked", "resting", "kept")]
    failed = {row.number for row in rows if row.state == "resting" and row.number not in ground.kept}
    return all(row.shifts == (() if row.number in failed else (case.shift(row.number),)) for row in rows)


def kept_after_rest(step: Taken) -> bool:
    """What was moved is kept as it is after its rest; what failed is forgotten then."""
    rested = [effect.number for effect in step.effects if isinstance(effect, Rested)]
    rows = {row.number: row for row in step.before.rows.values()}
    return all((Forgotten(number) in step.effects) != bool(rows[number].shifts) for number in rested)


def declined_with_cause(step: Taken) -> bool:
    """What rules wished is declined, when all have looked, only for what touches the same, or for what it undoes."""
    if not isinstance(step.input, Considered):
        return True
    rows = {row.number: row for row in step.before.rows.values() if row.who or row.shifts}
    asked = {effect.number for effect in step.effects if isinstance(effect, AskFor | Advise)}
    beside = [row for row in rows.values() if row.state in ("asked", "waiting", "resting") or row.number in asked]
    kept = [(shift.of, shift.before) for row in rows.values() if row.state == "kept" for shift in row.shifts]
    for number in (effect.number for effect in step.effects if isinstance(effect, Decline)):
        touched = any({*rows[number].touches} & {*row.touches} for row in beside)
        if not touched and not any((shift.of, shift.after) in kept for shift in rows[number].shifts):
            return False
    return True


def answered(view: View) -> bool:
    """Every wish has its answer, everything rested, and persons, sites and rules got what they should."""
    ground: Board = view.ground
    case = ground.case
    if view.busy or view.timers or view.machine(CONTROLLER).rows:
        return False
    if ground.open or ground.under_way or ground.resting or ground.kept:
        return False
    if any(view.faults) or ground.silent_left < case.silent:
        return True  # then a wait may have ended before its turn came
    acted = {number for number in case.free if case.acts(number)}
    return acted | {*case.expected} <= {*ground.asked}


def stale(machine: Any) -> Iterator[Input]:
    """Word of looks and changes that are over, or that nobody asked for."""
    look = machine.rows.get("look")
    for number in (UNKNOWN, look.number - 1 if look else 0, look.number + 1 if look else 0):
        yield Considered(number)
    over = [row.number for row in machine.rows.values() if row.state in ("resting", "kept")]
    for number in (UNKNOWN, *over):
        yield ChangeMade(number)
        yield ChangeFailed(number)


INVARIANTS = {
    **{fault: _without(fault) for fault in FAULTS},
    "whatever waits has a timer, and nothing else": under_a_timer,
    "what is under way and what rests is known": remembered,
    "what changes move is known": moved,
}
STEPS = {
    "what was moved is kept after its rest, what failed is forgotten": kept_after_rest,
    "what rules wished is declined only for what touches the same, or for what it undoes": declined_with_cause,
}


def world(
    name: str, case: Plot, advises: bool = False, controller: type[Controller] = Controller, **faults: Any
) -> World:
    """A controller, and all that may be told to it."""

    def reborn(name: str, ground: Board | None) -> Controller:
        return controller(name, advises)

    board = Board(case, silent_left=case.silent, advises=advises)

    def machines() -> dict[str, Machine]:
        return {CONTROLLER: reborn(CONTROLLER, None)}

    claims = {**INVARIANTS, **strange.passing(machines, (CONTROLLER,), stale)}
    return World(
        name, machines, board, (), claims, answered, reborn, (CONTROLLER,), steps=STEPS, **faults,
    )  # fmt: skip


def worlds(
    as_published: bool = False, long: bool = False, controller: type[Controller] = Controller
) -> tuple[World, ...]:
    """The worlds of the controller; it is our own, so nothing is published to compare with."""

    def of(name: str, case: Plot, **more: Any) -> World:
        return world(name, case, controller=controller, **more)

    all_kinds = "person o a>b, failover p a>c, promise q b>c, balance r c>d, scale s d>e"
    usual = (
        of("a person", Plot("person o a>b", expected="1")),
        of("a rule", Plot("balance o a>b", ("1",), expected="1")),
        of("a rule that only advises", Plot("balance o a>b, person p c>d", ("1",), expected="1 2"), advises=True),
        of("failover that only advises", Plot("failover o a>b, person p b>c"), advises=True),
        of("two persons apart", Plot("person o a>b, person p c>d")),
        of("a person who waits further on", Plot("person o c>d, person p b>c, failover q a>b")),
        of("two persons at one site", Plot("person o a>b, person p b>c, failover q b>d")),
        of("three rules at one site", Plot("scale o a>b, balance p b>c, promise q c>a", ("1 2 3",), expected="3")),
        of("three rules that advise", Plot("scale o a>b, balance p b>c, promise q c>a", ("1 2 3",), expected="3"),
           advises=True),
        of("two rules apart", Plot("balance o a>b, scale p c>d", ("1 2",), expected="1 2")),
        of("not all was measured", Plot("balance o a>b, balance p c>d, balance q e>f", ("1", None, "2 3"))),
        of("a person and rules", Plot("person o a>b, balance p b>c, scale q d>e", ("2 3",), expected="1 3")),
        of("back and forth", Plot("balance o a>b, balance o b>a, balance o b>a", ("1", "2", "3"))),
        of("a person goes back", Plot("balance o a>b, person o b>a, failover o b>a", ("1",))),
        of("a change by another door", Plot("person o a>b, balance o b>a, balance p b>c", ("2", "3"), noticed="1")),
        of("sites agree upon a change", Plot("balance o a>b, scale p b>c, person q b>d, balance o b>a")),
        of("sites agree while rules look", Plot("scale o a>b, promise p b>c, balance q c>d", ("2",))),
        of("sites agree where rules advise", Plot("scale o a>b, promise p b>c, person q c>a", ("2",)), advises=True),
        of("sites agree upon what rests", Plot("balance o a>b, balance p b>c, scale o b>a", ("1 2",))),
        of("a change by another door, elsewhere", Plot("person o a>b, balance p c>d", ("2",), "1", expected="2")),
        of("a change elsewhere, early timers", Plot("person o a>b, balance p c>d", ("2",), "1"), early=2),
        of("all who wish", Plot(all_kinds, ("3 4 5",))),
        of("no word of a change", Plot("balance o a>b, balance o b>a, person p b>c", ("1", "2"), silent=1)),
        of("early timers", Plot("person o a>b, person p b>c, balance q c>d", ("3",)), early=2),
        of("early timers and looks", Plot("balance o a>b, balance o b>a, scale p a>c", ("1 3", "2")), early=2),
        of("a crash", Plot("person o a>b, balance p b>c, balance p c>b", ("2", "3")), crash=1),
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual,
        of("all who wish, twice", Plot(f"{all_kinds}, balance r d>c, scale s e>d", ("3 4 5", "6 7"), silent=1),
           early=2),
        of("back and forth, disturbed", Plot("balance o a>b, person o b>a, promise o a>b, scale p b>c, balance o b>a",
           ("1 4", None, "3", "5"), silent=1), early=1, crash=1),
    )  # fmt: skip
