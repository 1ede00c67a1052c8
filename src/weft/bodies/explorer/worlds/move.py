"""Worlds for a change of placement: a desk and agents at two sites, while records flow, batches break and sites die."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import Claim, View, World
from weft.bodies.explorer.worlds.move_ground import ALIVE, DESK, FAULTS, Plant, plant
from weft.bodies.explorer.worlds.move_plan import Case
from weft.protocol import Input, Machine
from weft.protocol.hosting import Agent, AgentLimits, ConductorLimits
from weft.protocol.moving import Ask, Cancel, Desk

SITES = ("a", "b")


def one_home(view: View) -> bool:
    """Of each operator at most one launch can write."""
    return all(len(view.ground.writers(operator)) <= 1 for operator, _ in view.ground.sites)


def never_given_up(view: View) -> bool:
    """No fragment is down."""
    return all(row.state != "down" for row in view.machine(DESK).conductor.rows.values())


def undisturbed(view: View) -> bool:
    """Whether nothing has gone wrong so far."""
    state, before = view.state, view.state.ground.case
    faults = state.lost + state.crashed + state.early + state.overtaken
    return not faults and (state.ground.deaths_left, state.ground.undecided_left) == before.faults


def as_expected(view: View) -> bool:
    """Where nothing goes wrong, what can be changed is, what was ready came first, and nothing was refused."""
    if not undisturbed(view):
        return True
    ground = view.ground
    expected = ground.case.expected
    wrong = any(expected.get(number, changed) != changed for number, changed in ground.said)
    return not (wrong or ground.cold or ground.refusals)


def nothing_touched(view: View) -> bool:
    """What cannot be is refused before anything ends."""
    case = view.ground.case
    if any(case.expected.values()) or not case.expected:
        return True
    return all(row.state != "stopping" for row in view.machine(DESK).conductor.rows.values())


def quiet(view: View) -> bool:
    """The plan in force runs and nothing else; every record is in every sink; every change has its verdict."""
    ground: Plant = view.ground
    desk = view.machine(DESK)
    if view.flight or desk.mover.rows or ground.warm or any(choice.due for choice in ground.choices()):
        return False
    running = {(name, piece.site) for name, piece in ground.plan.items()}
    if any(site != DESK for site, _ in view.timers):
        return False
    if not view.state.crashed and {number for number, _ in ground.said} != set(ground.case.changes):
        return False
    for fragment, row in desk.conductor.rows.items():
        wanted = (fragment, row.want) in running
        lives = [one for one in ground.lives if one.fragment == fragment and ground.writes(one)]
        if [one[:4] for one in lives] != ([(row.want, fragment, row.epoch, ALIVE)] if wanted else []):
            return False
        if row.state != ("running" if wanted else "idle") or bool(row.want) != wanted:
            return False
    sinks = {stream: 0 for piece in ground.plan.values() for stream in piece.writes if stream.startswith("k")}
    sinks.update(ground.sinks)
    return all(count == ground.case.records for count in sinks.values())


def _without(fault: str) -> Claim:
    return lambda view: view.ground.fault != fault


INVARIANTS = {
    "of each operator at most one launch can write": one_home,
    **{claim: _without(claim) for claim in FAULTS},
    "with so few faults nothing is given up": never_given_up,
    "where nothing goes wrong, changes are made, warm and without a refusal": as_expected,
    "a change that cannot be touches nothing": nothing_touched,
}


def world(
    name: str,
    case: Case,
    *more: Input,
    mortal: tuple[str, ...] = (*SITES, DESK),
    deaths: int = 0,
    undecided: int = 0,
    agent: type[Agent] = Agent,
    desk: type[Desk] = Desk,
    **faults: int,
) -> World:
    """A world in which the changes of a case are asked for in order, and `more` is told at any time."""
    case.faults = (deaths, undecided)
    limits = ConductorLimits(tries_max=4, restarts_max=4, steady_polls=1)

    def reborn(name: str, ground: Plant | None) -> Machine:
        disk = {fragment: epoch for site, fragment, epoch in ground.disks if site == name} if ground else {}
        if name == DESK:
            return desk(name, disk, limits)
        return agent(name, disk, AgentLimits(halt_tries_max=2))

    asks = tuple((DESK, Ask(number)) for number in case.changes)
    return World(
        name,
        lambda: {name: reborn(name, None) for name in (*SITES, DESK)},
        plant(case, deaths, undecided),
        (asks, *(((DESK, input),) for input in more)),
        INVARIANTS,
        quiet,
        reborn,
        mortal,
        **faults,
    )


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of a change; the protocol is our own, so nothing is published to compare with."""
    more = int(long)

    def of(name: str, case: Case, *inputs: Input, **faults: Any) -> World:
        return world(name, case, *inputs, **faults, **machines)

    apart, back = ("1a 2b", "1b"), ("1a", "1b", "1a")
    few = 1 + more
    out, out_few = Case("1a 2a", "2b", stateful=True), Case("1a 2a", "2b", records=few)
    return (
        of("a stateless fragment moves", Case("1a", "1b"), lose=1, crash=1, early=more),
        of("a stateful fragment moves", Case("1a 2a", "1b 2b", stateful=True), lose=1, crash=1, deaths=more),
        of("an impossible move", Case("1a", "1b", impossible=(1,)), lose=1, crash=1),
        of("a refused move", Case("1a", "1b", refused=(1,)), lose=1, crash=1),
        of("a move and back", Case(*back), lose=1, early=1 + more),
        of("a move and back, with a crash", Case(*back), crash=1, lose=more),
        of("messages overtake one another", Case("1a", "1b"), early=1, overtake=1, lose=more),
        of("a full disk and a death", Case("1a", "1b"), undecided=1, lose=1, deaths=1),
        of("out of a fragment, badly warmed", Case("1a 2a", "2b", soft=True), early=1 + more, lose=1),
        of("into a fragment", Case(*apart, stateful=True), lose=1, early=more),
        of("into a fragment, with a death", Case(*apart), deaths=1, early=1),
        of("into a fragment, cancelled", Case(*apart, expected={}), Cancel(1), lose=1, undecided=1),
        of("two queries at once", Case("1a 3a", "1b 3b", records=1), lose=1, early=more),
        of("two moves at once", Case("1a 3b", "1b", "3a", records=1), lose=1, early=more),
        of("two moves of one fragment", Case("1a 2a", "1b", "2b", records=1), lose=1, early=1),
        of("two moves, with a crash", Case("1a 3b", "1b", "3a", records=more), crash=1),
        of("two moves of one fragment, with a crash", Case("1a 2a", "1b", "2b", records=1), crash=1),
        of("out of a fragment, with a crash", out, crash=1),
        of("out of a fragment, with a crash and a loss", out_few, lose=1, crash=1),
        of("two queries at once, with a crash", Case("1a 3a", "1b 3b", records=more), crash=1),
        of("into a fragment, with a crash", Case(*apart, records=few), crash=1, lose=more),
    )
