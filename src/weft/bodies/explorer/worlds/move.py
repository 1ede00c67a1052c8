"""Worlds for a change of placement: a desk and agents at two sites, while records flow, batches break and sites die."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import Claim, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.move_ground import Plant, plant
from weft.bodies.explorer.worlds.move_plan import CHANNEL, MoveCase
from weft.bodies.explorer.worlds.move_steps import STEPS
from weft.bodies.explorer.worlds.move_strange import done_anew, stale
from weft.bodies.explorer.worlds.move_words import ALIVE, DESK, FAULTS
from weft.protocol import Input, Machine
from weft.protocol.hosting import AgentLimits, ConductorLimits
from weft.protocol.moving import Ask, Cancel, Desk, Host, Leave, MoverLimits

SITES = ("a", "b")
LIMITS = MoverLimits(1, 1, 2, 2, 2, 2)


def one_home(view: View) -> bool:
    """Of each operator at most one launch can write."""
    return all(len(view.ground.writers(operator)) <= 1 for operator, _ in view.ground.sites)


def never_given_up(view: View) -> bool:
    """No fragment is down."""
    return all(row.state != "down" for row in view.machine(DESK).conductor.rows.values())


def undisturbed(view: View) -> bool:
    """Whether nothing has gone wrong so far."""
    ground = view.ground
    left = (ground.deaths_left, ground.undecided_left, ground.silent_left)
    return not any(view.faults) and left == ground.case.faults


def as_expected(view: View) -> bool:
    """Where nothing goes wrong, what can be changed is, after all was ready, and runs when it is said to."""
    if not undisturbed(view):
        return True
    ground = view.ground
    expected = ground.case.expected
    wrong = any(expected.get(number, changed) != changed for number, changed in ground.said)
    return not (wrong or ground.cold or ground.refusals or ground.missed)


def stuck_is_fenced(view: View) -> bool:
    """A launch that its agent cannot end stands behind the fence."""
    hosted = [(site, name, row) for site in SITES for name, row in view.machine(site).agent.rows.items()]
    stuck = {(site, name, row.epoch) for site, name, row in hosted if row.state == "stuck"}
    return not any(life[:3] in stuck and view.ground.writes(life) for life in view.ground.lives)


def waits_are_real(view: View) -> bool:
    """What a change awaits has not come yet, of the body unless it kept silent; and without awaiting none waits."""
    desk, ground = view.machine(DESK), view.ground
    rows = desk.conductor.rows
    for change in desk.mover.rows.values():
        number, awaited = change.number, set(change.awaits)
        match change.state:
            case "ending":
                real = awaited == {name for name, row in rows.items() if row.ends == number}
            case "starting" | "aborting":
                real = awaited == {name for name, row in rows.items() if row.starts == number}
            case "preparing" if undisturbed(view):
                real = awaited >= {one.fragment for one in ground.warm if one.number == number and not one.ready}
            case "carrying" if undisturbed(view):
                real = awaited >= {one.fragment for one in ground.carrying if one.number == number}
            case "deciding":
                real = not awaited
            case _:
                real = True
        waits = change.awaits or change.drains or change.drops or change.state in ("queued", "asked", "deciding")
        if not real or not waits:
            return False
    return True


def under_a_timer(view: View) -> bool:
    """Every change whose turn has come waits under a timer."""
    changes = view.machine(DESK).mover.rows
    return all((DESK, key) in view.timers for key, row in changes.items() if row.state != "queued")


def nothing_touched(view: View) -> bool:
    """What cannot be is refused before anything ends, unless its site could not be asked as often as one asks."""
    case = view.ground.case
    if any(case.expected.values()) or not case.expected or sum(view.faults) >= LIMITS.prepares_max:
        return True
    return all(row.state != "stopping" for row in view.machine(DESK).conductor.rows.values())


def quiet(view: View) -> bool:
    """The plan in force runs and nothing else; every record is in every sink; every change has its verdict."""
    ground: Plant = view.ground
    desk = view.machine(DESK)
    if view.flight or desk.mover.rows or any(choice.due for choice in ground.choices()):
        return False
    if any(site != DESK for site, _ in view.timers):
        return False
    if not view.faults.crashed and {number for number, _ in ground.said} != set(ground.case.changes):
        return False
    if ground.warm or ground.carrying:
        return False
    running = {(name, piece.site) for name, piece in ground.plan.items()}
    for fragment, row in desk.conductor.rows.items():
        wanted = (fragment, row.want) in running
        lives = [one[:4] for one in ground.lives if one.fragment == fragment and ground.writes(one)]
        runs = wanted and row.state == "running" and lives == [(row.want, fragment, row.epoch, ALIVE)]
        rests = not lives and (row.state == "done" if wanted else row.state == "idle" and not row.want)
        if not (runs or rests):
            return False
    written = dict(ground.sinks)
    sinks = [stream for piece in ground.plan.values() for stream in piece.writes if stream != CHANNEL]
    return all(written.get(stream, 0) == ground.case.records for stream in sinks)


def stopped(view: View) -> bool:
    """Nothing runs, nothing is wanted, and every change has its verdict."""
    rests = all(row.state == "idle" and not row.want for row in view.machine(DESK).conductor.rows.values())
    return settled(view) and rests and not any(view.ground.writes(life) for life in view.ground.lives)


def settled(view: View) -> bool:
    """Nothing is under way, and every change has its verdict."""
    ground = view.ground
    if view.flight or view.machine(DESK).mover.rows or any(choice.due for choice in ground.choices()):
        return False
    return {number for number, _ in ground.said} == set(ground.case.changes)


def _without(fault: str) -> Claim:
    return lambda view: view.ground.fault != fault


INVARIANTS = {
    "of each operator at most one launch can write": one_home,
    **{claim: _without(claim) for claim in FAULTS},
    "where nothing goes wrong, changes are made, warm, and run when it is said": as_expected,
    "what is stuck can write nothing": stuck_is_fenced,
    "what a change awaits has not come yet": waits_are_real,
    "every change whose turn has come waits under a timer": under_a_timer,
    "a change that cannot be touches nothing": nothing_touched,
}


PATIENT = {**INVARIANTS, "with so few faults nothing is given up": never_given_up}


def world(
    name: str,
    case: MoveCase,
    *more: Input,
    mortal: tuple[str, ...] = (*SITES, DESK),
    deaths: int = 0,
    undecided: int = 0,
    silent: int = 0,
    patient: bool = True,
    host: type[Host] = Host,
    desk: type[Desk] = Desk,
    **faults: Any,
) -> World:
    """A world in which the changes of a case are asked for in order, and `more` is told at any time.

    Where it is not `patient`, more timers fire early than patience lasts for, and fragments may be given up.
    """
    case.faults = (deaths, undecided, silent)
    limits = ConductorLimits(tries_max=4, restarts_max=4, steady_polls=1)

    def reborn(name: str, ground: Plant | None) -> Machine:
        disk = {fragment: epoch for site, fragment, epoch in ground.disks if site == name} if ground else {}
        if name == DESK:
            return desk(name, disk, limits, LIMITS)
        return host(name, disk, AgentLimits(halt_tries_max=2))

    def machines() -> dict[str, Machine]:
        return {name: reborn(name, None) for name in (*SITES, DESK)}

    asks = tuple((DESK, Ask(number)) for number in case.changes)
    return World(
        name,
        machines,
        plant(case),
        (asks, *(((DESK, input),) for input in more)),
        {
            **(PATIENT if patient else INVARIANTS),
            **strange.answering(machines, (*SITES, DESK), stale),
            **done_anew(machines, SITES),
        },
        (stopped if Leave() in more else quiet) if patient else settled,
        reborn,
        mortal,
        steps=STEPS,
        **faults,
    )


def brisk(**machines: Any) -> tuple[World, ...]:
    """Worlds of one fault each, seen through in seconds, which together see nearly all that the others do."""

    def of(name: str, case: MoveCase, *inputs: Input, **faults: Any) -> World:
        return world(name, case, *inputs, **faults, **machines)

    one, apart = ("1a", "1b"), ("1a 2b", "1b")
    return (
        of("a loss", MoveCase(*one, records=1), lose=1),
        of("two queries at once", MoveCase("1a 3a", "1b 3b", records=0)),
        of("two moves, a death", MoveCase(*one, "1a", records=1), deaths=1),
        of("a full disk", MoveCase(*one, records=1), undecided=1),
        of("a query comes", MoveCase("1a", "3b", records=1)),
        of("a site is taken to be gone", MoveCase("1a", "1!b", records=1), lose=1),
        of("a site is gone", MoveCase("1a", "1!b", records=1), crash=1),
        of("a query goes", MoveCase("1a 3a", "3-", records=1)),
        of("an impossible move", MoveCase(*one, records=1, impossible=(1,)), lose=1),
        of("a refused move", MoveCase(*one, records=0, refused=(1,)), lose=1),
        of("into a fragment", MoveCase(*apart, records=1)),
        of("into a fragment, cancelled", MoveCase(*apart, records=0, expected={}), Cancel(1)),
        of("the run ends", MoveCase(*one, records=0, expected={}), Leave(), undecided=1),
        of("inputs end", MoveCase(*one, records=1, may_drain=True), lose=1),
        of("badly warmed", MoveCase("1a 2a", "2b", stateful=True, soft=True, records=1)),
        of("a full disk, a death, another move", MoveCase(*one, "1b", records=1), undecided=1, deaths=1),
        of("early timers", MoveCase(*one, records=1), early=1),
        of("overtaken", MoveCase(*one, records=1), overtake=1, early=1),
        of("a crash", MoveCase(*one, records=1, outdated=True), crash=1),
        of("a silent body", MoveCase("1a 2a", "2b", records=0), silent=2),
        of("into a fragment, a silent body", MoveCase(*apart, records=0), silent=1),
        of("into a fragment, early timers", MoveCase(*apart, records=1), early=1),
        of("into a fragment, a death", MoveCase(*apart, records=2), deaths=1),
        of("a site that does not halt", MoveCase(*one, records=0), early=3, patient=False),
        of("let in early, a loss", MoveCase("1a 2a", "2b", records=1, early=True), lose=1),
        of("a word comes twice", MoveCase(*one, "1a", records=0, early=True), double=2),
        of("into a fragment, two channels", MoveCase(*apart, records=1, side=True), lose=1),
        of("two readers to drain", MoveCase("1a 2b 3a", "1b 3b", records=0, beside=True)),
        of(
            "off, and its site never hears of that, then taken over",
            MoveCase("1a", "1b", "1!b", records=0, expected={}),
            Cancel(1),
            mortal=(),
            lose=2,
        ),
        of(
            "two in turn, the first off, a word that comes late",
            MoveCase("1a", "1b", "1b", records=0),
            mortal=(),
            undecided=1,
            overtake=1,
        ),
        of("a word comes twice and late", MoveCase(*one, records=0), mortal=(), double=1, overtake=1),
        of("carried over, a crash and a full disk", MoveCase(*one, records=0), crash=1, undecided=1),
    )


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of a change; the protocol is our own, so nothing is published to compare with."""
    more = int(long)

    def of(name: str, case: MoveCase, *inputs: Input, **faults: Any) -> World:
        return world(name, case, *inputs, **faults, **machines)

    apart, back = ("1a 2b", "1b"), ("1a", "1b", "1a")
    few = 1 + more
    came_back = MoveCase("1a", "1!b", "1a", records=more)
    out, out_few = MoveCase("1a 2a", "2b", stateful=True, records=few), MoveCase("1a 2a", "2b", records=more)
    return (
        of("a stateless fragment moves", MoveCase("1a", "1b"), lose=1, crash=1, early=more),
        of("a stateful fragment moves", MoveCase("1a 2a", "1b 2b", stateful=True), lose=1, crash=1, deaths=more),
        of("an impossible move", MoveCase("1a", "1b", impossible=(1,)), lose=1, crash=1),
        of("a refused move", MoveCase("1a", "1b", refused=(1,)), lose=1, crash=1),
        of("a move and back", MoveCase(*back), lose=1, early=1 + more),
        of("a move and back, with a crash", MoveCase(*back), crash=1, lose=more),
        of("messages overtake one another", MoveCase("1a", "1b"), early=1, overtake=1, lose=more),
        of("a full disk and a death", MoveCase("1a", "1b"), undecided=1, lose=1, deaths=1),
        of("out of a fragment, badly warmed", MoveCase("1a 2a", "2b", soft=True), early=1 + more, lose=1),
        of("a query comes and goes", MoveCase("1a", "3b", "3-"), lose=1),
        of("a site is taken to be gone", MoveCase("1a 2a", "1!b 2!b", stateful=True), lose=1, early=more),
        of("a site is gone", MoveCase("1a 2a", "1!b 2!b", stateful=True, records=few), crash=1, lose=more),
        of("two queries at a site that is taken to be gone", MoveCase("1a 3a", "1!b 3!b", records=1), lose=more),
        of("a site is gone, and comes back", MoveCase("1a", "1!b", "1a", records=1), crash=1, deaths=more),
        of("a site is taken to be gone and comes back, the desk is lost", came_back, mortal=(DESK,), crash=1),
        of("a site is taken to be gone, with a full disk", MoveCase("1a", "1!b"), undecided=1, lose=1, deaths=1),
        of("into a fragment", MoveCase(*apart, stateful=True), lose=1, early=more),
        of("into a fragment, with a death", MoveCase(*apart, records=1), deaths=1, early=1),
        of("into a fragment, cancelled", MoveCase(*apart, expected={}), Cancel(1), lose=1, undecided=1),
        of("the run ends", MoveCase(*apart, records=1, expected={}), Leave(), lose=1),
        of("inputs end", MoveCase("1a", "1b", may_drain=True), lose=1, early=1),
        of("a silent body", MoveCase(*apart), silent=2, lose=1),
        of("a site that does not halt", MoveCase("1a", "1b"), early=3 + more, patient=False),
        of("two queries at once", MoveCase("1a 3a", "1b 3b", records=1), lose=1, early=more),
        of("two moves at once", MoveCase("1a 3b", "1b", "3a", records=1), lose=1, early=more),
        of("two moves of one fragment", MoveCase("1a 2a", "1b", "2b", records=1), lose=1, early=1),
        of("two moves, with a crash", MoveCase("1a 3b", "1b", "3a", records=more), crash=1),
        of("two moves of one fragment, with a crash", MoveCase("1a 2a", "1b", "2b", records=more), crash=1),
        of("out of a fragment, with a crash", out, crash=1),
        of("out of a fragment, with a crash and a loss", out_few, lose=1, crash=1),
        of("two queries at once, with a crash", MoveCase("1a 3a", "1b 3b", records=more), crash=1),
        of("into a fragment, with a crash", MoveCase(*apart, records=more), crash=1, lose=more),
        of(
            "the desk comes back, early timers",
            MoveCase("1a", "1b", records=0),
            mortal=(DESK,),
            crash=1,
            early=1 + more,
            patient=False,
        ),
        of("words come twice", MoveCase(*back, records=1, early=True), double=2, lose=more),
        of("words come twice, with a crash", MoveCase("1a", "1b", records=1, early=True), double=1, crash=1),
        of("let in early, with a crash", MoveCase("1a 2a", "2b", records=1, early=True), crash=1, lose=more),
        of("two channels to drain", MoveCase(*apart, records=1, side=True), lose=1, double=1),
        of("two readers to drain", MoveCase("1a 2b 3a", "1b 3b", records=1, beside=True), lose=1, early=more),
        of("two channels to drain, with a crash", MoveCase(*apart, records=more, side=True), crash=1),
        of("a full disk, with a crash", MoveCase("1a", "1b", "1a", records=more), undecided=1, crash=1, early=more),
    )
