"""Worlds for reports: sites that measure and come back in another life, a desk that is lost, comes back, and asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.reporting_ground import (
    BATCHES,
    COMMITS,
    DESK,
    FRAGMENT,
    GAP,
    ONCE,
    REPORT,
    SOUND,
    WORK,
    AskAll,
    Letter,
    Listener,
    Office,
    SiteGone,
    Teller,
)
from weft.protocol import Input, Machine, Received, Send, SetTimer
from weft.protocol.reporting import Inbox, Outbox, OutboxLimits, Reported

EARLY = "a question is answered when all is known that had happened before it"
STANDS = "how a site stands is told by its present life, and by its last report"
GONE = "of a site that is gone nothing stands"
WAITING = "a report tells how much waits for its turn"
BOUNDED = "a report is no larger than may be, and no more is said than may be"


def answered(view: View) -> bool:
    """Whether a desk believes that all was told only when it has all that had happened when it asked."""
    ground: Office = view.ground
    held = view.machine(DESK).box.sites
    if not ground.asked or ground.shrinks:
        return True
    return all(
        site not in held or held[site].complete < ground.asked or ground.now(site)[0] != life
        or held[site].taken.get(str(life), 0) >= count
        for site, life, count in ground.then
    )  # fmt: skip


def known_life(step: Taken) -> bool:
    """Whether what a report changes is of a life no earlier, and a report no older, than those heard before."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, Letter):
        return True
    before, after = (one.box.sites.get(step.input.sender) for one in (step.before, step.after))
    report = step.input.message.report
    if before is None or report.life not in before.taken:
        return {*after.fragments} == {one.fragment for one in report.now.fragments}
    if (after.life, after.number) < (before.life, before.number):
        return False
    if report.life != after.life or (report.life, report.number) <= (before.life, before.number):
        return bool(after.fragments == before.fragments and after.complete == before.complete)
    shown = after.fragments.get(FRAGMENT)
    return bool(after.number == report.number and (not report.now.fragments or shown == report.now.fragments[0]))


def work_counted(view: View) -> bool:
    """Whether work is counted as it was told, unless a life was heard of only after the one that came after it."""
    return bool(view.faults.overtaken or view.ground.fault != WORK)


def forgotten(step: Taken) -> bool:
    """Whether nothing stands of a site that is gone."""
    return not isinstance(step.input, SiteGone) or step.after.box.fragment(step.input.site, FRAGMENT) is None


def waiting_told(step: Taken) -> bool:
    """Whether what is said tells how much waits for its turn."""
    said = [one.message for one in step.effects if isinstance(one, Send) and isinstance(one.message, Letter)]
    return not said or said[-1].report.more == len(step.after.extra()[1]["_waiting"])


def bounded(limits: OutboxLimits) -> StepClaim:
    """Whether what is said at once is within the limits."""

    def holds(step: Taken) -> bool:
        letters = [one.message for one in step.effects if isinstance(one, Send) and isinstance(one.message, Letter)]
        reports = [one.report for one in letters]
        if not reports or step.after.rows[REPORT].asked:
            return True
        large = any(len(one.events) + len(one.now.fragments) > 1 for one in reports) and limits.bytes_max == 1
        return not large and sum(len(one.events) for one in reports) <= limits.events_max

    return holds


def kept(view: View) -> bool:
    """Whether what joined events tell, and what was given up, is all that happened in the present life."""
    ground: Office = view.ground
    for site, life, what in ground.happened:
        events = [one for of, which, all in ground.taken if (of, which) == (site, str(life)) for one in all]
        if sum(batches for kind, _, batches in events if kind == BATCHES) != what.count(BATCHES):
            return False
        others = sum(1 for kind, _, _ in events if kind != BATCHES)
        if others + view.machine(site).box.dropped != len(what) - what.count(BATCHES):
            return False
        last = [number for kind, number, _ in events if kind == COMMITS]
        if COMMITS in what and what.rindex(COMMITS) + 1 not in last:
            return False
    return True


def quiet(view: View) -> bool:
    """All has happened and was told, the desk knows that it knows all, and how the present lives stand."""
    ground: Office = view.ground
    if view.busy or any(left for _, left in ground.acts) or any(one for one in view.timers if one[0] != DESK):
        return False
    desk = view.machine(DESK)
    held = desk.box.sites
    for site, life, what in ground.happened:
        if site not in held or held[site].complete != ground.asked or not ground.asked:
            return False
        shown = desk.box.fragment(site, FRAGMENT)
        if view.faults.overtaken:
            continue
        if shown is None or (shown.epoch, shown.taken) != (life, len(what)):
            return False
        events = [one for of, which, all in ground.taken if (of, which) == (site, str(life)) for one in all]
        if not ground.shrinks and sorted(number for _, number, _ in events) != [*range(1, len(what) + 1)]:
            return False
    return not ground.shrinks or kept(view)


def _without(fault: str) -> Any:
    return lambda view: view.ground.fault != fault


def stale(machine: Any) -> Iterator[strange.Stale]:
    """Answers to a former life of a site, and those that say nothing new."""
    if isinstance(machine, Teller) and machine.rows:
        more = (SetTimer(REPORT, 1),) if machine.box.waits else ()
        yield Received(DESK, Reported("former", 99)), more
        yield Received(DESK, Reported(str(machine.life), 0)), more


def world(
    name: str, acts: str, limits: OutboxLimits | None = None, gone: str = "", outbox: type[Outbox] = Outbox,
    inbox: type[Inbox] = Inbox, lives: int = 8, **faults: Any,
) -> World:  # fmt: skip
    """What happens at sites, `site: what` between commas; the desk asks once in each of its lives."""
    happens = tuple((site, what) for site, _, what in (one.partition(": ") for one in acts.split(", ")))
    sites = tuple(site for site, _ in happens)
    limits = limits or OutboxLimits()
    ground = Office(limits, happens, tuple((site, 1, "") for site in sites))

    def reborn(name: str, ground: Office | None) -> Machine:
        if name == DESK:
            return Listener(DESK, ground.desk if ground else 1, sites, inbox(lives))
        life = ground.now(name)[0] if ground else 1
        return Teller(name, life, outbox(str(life), limits))

    def machines() -> dict[str, Machine]:
        return {one: reborn(one, None) for one in (*sites, DESK)}

    told: tuple[tuple[str, Input], ...] = tuple((DESK, SiteGone(site)) for site in gone.split())
    return World(
        name, machines, ground, ((*told, (DESK, AskAll())),),
        {
            **strange.answering(machines, sites, stale), ONCE: _without(ONCE), GAP: _without(GAP),
            SOUND: _without(SOUND), WORK: work_counted, EARLY: answered,
        },
        quiet, reborn,
        steps={STANDS: known_life, GONE: forgotten, BOUNDED: bounded(limits), WAITING: waiting_told}, **faults,
    )  # fmt: skip


def worlds(as_published: bool = False, long: bool = False, **boxes: Any) -> tuple[World, ...]:
    """The worlds of reports; the protocol is our own, so nothing is published to compare with."""
    more = int(long)

    def of(name: str, acts: str, limits: OutboxLimits | None = None, **other: Any) -> World:
        return world(name, acts, limits, states_max=2_000_000 if long else 100_000, **boxes, **other)

    return (
        of("one site", "a: bcw", early=1 + more),
        of("two sites", "a: bc, b: c"),
        of("a lost word", "a: bc", lose=1 + more, early=1),
        of("a word twice", "a: bc", double=1 + more, early=1),
        of("the site comes back", "a: bcb", mortal=("a",), crash=1 + more, lose=more, early=1),
        of("the site comes back, a late word of its life before", "a: bcb", mortal=("a",), crash=1, overtake=1),
        of("the site comes back twice, one life is kept", "a: b" + more * "c", mortal=("a",), crash=2, lives=1),
        of("the site comes back, reports of one thing each", "a: bc", OutboxLimits(bytes_max=1), mortal=("a",),
           crash=1),
        of("the desk comes back", "a: bc", mortal=(DESK,), crash=1 + more, lose=1, torn=1),
        of("both come back", "a: b" + more * "c", mortal=("a", DESK), crash=2, early=more),
        of("a site is taken to be gone", "a: bc", gone="a", early=1),
        of("reports of one thing each", "a: bcb", OutboxLimits(events_max=2, bytes_max=1), lose=1),
        of("one thing at a time", "a: bcb", OutboxLimits(events_max=1), lose=1, early=1),
        of("more than may wait", "a: bcbcw", OutboxLimits(events_max=1, waiting_max=2, commits_kept=1, weighed_kept=1)),
        of("more than may wait, a lost word", "a: bbccww",
           OutboxLimits(events_max=1, waiting_max=2, commits_kept=1, weighed_kept=1), lose=more),
    )  # fmt: skip
