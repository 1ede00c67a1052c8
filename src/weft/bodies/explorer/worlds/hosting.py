"""Worlds for hosting: agents at two sites and a conductor, with fragments started, moved, stopped, lost and drained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.hosting_steps import STEPS, waits
from weft.bodies.explorer.worlds.hosting_strange import refusals_heeded, stale
from weft.bodies.explorer.worlds.timers import TIMED, timed
from weft.protocol import Effect, Input, Machine
from weft.protocol.hosting import (
    Agent,
    AgentLimits,
    Conductor,
    ConductorLimits,
    Died,
    Drained,
    Fence,
    Halt,
    Halted,
    Launch,
    Launched,
    Refused,
    Remember,
    Unwant,
    Want,
)

LAUNCHING, ALIVE, HALTING, REFUSED, ORPHAN = "launching", "alive", "halting", "refused", "orphan"

UNFENCED = "a fragment is launched only behind its own fence"
AGAIN = "no epoch is launched twice"
FENCED = "a site launches nothing that it has fenced itself"
CROWDED = "a site has at most one launch of a fragment alive"

Live = tuple[str, str, int, str]


class Hosts(msgspec.Struct, frozen=True):
    """What really runs where, what is fenced, and what disks hold; an orphan outlived its agent and may still write."""

    deaths_left: int = 0
    may_drain: bool = False
    fences: tuple[tuple[str, int], ...] = ()
    lives: tuple[Live, ...] = ()
    launched: tuple[tuple[str, int], ...] = ()
    drained: tuple[str, ...] = ()
    disks: tuple[tuple[str, str, int], ...] = ()
    own_fences: tuple[tuple[str, str, int], ...] = ()
    fault: str = ""

    def fence(self, fragment: str) -> int:
        """The lowest epoch that may write."""
        return dict(self.fences).get(fragment, 0)

    def writers(self, fragment: str) -> list[Live]:
        """The launches that could commit something now."""
        fence = self.fence(fragment)
        return [live for live in self.lives if live[1] == fragment and live[2] >= fence and live[3] != REFUSED]

    def perform(self, site: str, effect: Effect) -> Hosts:
        """The ground after an effect."""
        match effect:
            case Remember(fragment, epoch):
                return self.but(disks=_raised(self.disks, site, fragment, epoch))
            case Fence(fragment, epoch):
                fences = tuple(sorted({**dict(self.fences), fragment: max(epoch, self.fence(fragment))}.items()))
                own = _raised(self.own_fences, site, fragment, epoch)
                ended = [one for one in self.lives if one[3] == ORPHAN and one[1] == fragment and one[2] < epoch]
                lives = tuple(one for one in self.lives if one not in ended)
                return self.but(fences=fences, own_fences=own, lives=lives)
            case Launch(fragment, epoch):
                return self.launch(site, fragment, epoch)
            case Halt(fragment, epoch):
                return self.phase(site, fragment, epoch, (LAUNCHING, ALIVE), HALTING)
        return self

    def launch(self, site: str, fragment: str, epoch: int) -> Hosts:
        """A launch, and what was wrong with it."""
        refused = epoch < self.fence(fragment)
        fault = self.fault
        if (fragment, epoch) in self.launched:
            fault = AGAIN
        elif epoch > self.fence(fragment):
            fault = UNFENCED
        elif any(one[:2] == (site, fragment) and one[2] > epoch for one in self.own_fences):
            fault = FENCED
        elif any(one[:2] == (site, fragment) and one[3] != ORPHAN for one in self.lives):
            fault = CROWDED
        live = (site, fragment, epoch, REFUSED if refused else LAUNCHING)
        launched = tuple(sorted({*self.launched, (fragment, epoch)}))
        return self.but(lives=tuple(sorted((*self.lives, live))), launched=launched, fault=fault)

    def choices(self) -> Iterator[Choice]:
        """What the launches may do next."""
        for site, fragment, epoch, phase in self.lives:
            where = (site, fragment, epoch)
            gone = self.but(lives=tuple(one for one in self.lives if one[:3] != where))
            fenced = epoch < self.fence(fragment)
            match phase:
                case "refused":
                    yield Choice(site, Refused(fragment, epoch, self.fence(fragment)), gone)
                    continue
                case "orphan":
                    continue
                case "launching":
                    yield Choice(site, Launched(fragment, epoch), self.phase(*where, (LAUNCHING,), ALIVE))
                case "halting":
                    yield Choice(site, Halted(fragment, epoch), gone)
                case "alive" if fenced:
                    # A launch meets the fence when it next commits; one without records may never do so.
                    yield Choice(site, Died(fragment, epoch, "fenced"), gone, due=False)
                case "alive" if self.may_drain:
                    drained = gone.but(drained=tuple(sorted({*self.drained, fragment})))
                    yield Choice(site, Drained(fragment, epoch), drained, due=False)
            if self.deaths_left:
                yield Choice(site, Died(fragment, epoch, "died"), gone.but(deaths_left=self.deaths_left - 1), due=False)

    def crash(self, site: str) -> Hosts:
        """The agent is gone; what it launched lives on unseen until it is fenced."""
        lives = []
        for one in self.lives:
            if one[0] != site or one[3] == ORPHAN:
                lives.append(one)
            elif one[3] != REFUSED and one[2] >= self.fence(one[1]):
                lives.append((*one[:3], ORPHAN))
        return self.but(lives=tuple(sorted(lives)))

    def phase(self, site: str, fragment: str, epoch: int, before: tuple[str, ...], after: str) -> Hosts:
        """The ground with one launch in another phase."""
        where = (site, fragment, epoch)
        lives = ((*where, after) if one[:3] == where and one[3] in before else one for one in self.lives)
        return self.but(lives=tuple(sorted(lives)))

    def but(self, **changes: Any) -> Hosts:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def _raised(
    held: tuple[tuple[str, str, int], ...], site: str, fragment: str, epoch: int
) -> tuple[tuple[str, str, int], ...]:
    before = max((one[2] for one in held if one[:2] == (site, fragment)), default=0)
    rest = (one for one in held if one[:2] != (site, fragment))
    return tuple(sorted((*rest, (site, fragment, max(before, epoch)))))


def one_writer(view: View) -> bool:
    """Of each fragment at most one launch can write, and none that is newer was left behind."""
    return all(len(view.ground.writers(fragment)) <= 1 for fragment, _ in view.ground.fences)


def done_is_true(view: View) -> bool:
    """The conductor calls done only what drained."""
    rows = view.machine("conductor").rows
    return all(fragment in view.ground.drained for fragment, row in rows.items() if row.state == "done")


def stopped_is_true(view: View) -> bool:
    """When all is said to be stopped, nothing can write."""
    conductor = view.machine("conductor")
    return conductor.said != "stopped" or not any(view.ground.writers(fragment) for fragment in conductor.rows)


def quiet(view: View) -> bool:
    """Nothing is under way; what is wanted runs, or is done, or was given up; and nothing unwanted can write."""
    ground = view.ground
    if view.flight or any(choice.due for choice in ground.choices()):
        return False
    if any(site != "conductor" for site, _ in view.timers):
        return False
    for fragment, row in view.machine("conductor").rows.items():
        writers = ground.writers(fragment)
        runs = row.state == "running" and writers == [(row.want, fragment, row.epoch, ALIVE)]
        ended = not writers and row.state == ("done" if row.want else "idle")
        # A silent site may still run what was given up: no one can say.
        if not (runs or ended or row.state == "down"):
            return False
    return True


INVARIANTS = {
    "of a fragment at most one launch can write": one_writer,
    UNFENCED: lambda view: view.ground.fault != UNFENCED,
    AGAIN: lambda view: view.ground.fault != AGAIN,
    FENCED: lambda view: view.ground.fault != FENCED,
    CROWDED: lambda view: view.ground.fault != CROWDED,
    "only what drained is called done": done_is_true,
}


def never_given_up(view: View) -> bool:
    """No fragment is down."""
    return all(row.state != "down" for row in view.machine("conductor").rows.values())


PATIENT = {
    **INVARIANTS,
    "when all is said to be stopped, nothing can write": stopped_is_true,
    "with so few faults nothing is given up": never_given_up,
}


def world(
    name: str,
    *scripts: tuple[Input, ...],
    sites: tuple[str, ...] = ("a", "b"),
    mortal: tuple[str, ...] | None = None,
    deaths: int = 0,
    may_drain: bool = False,
    tries: int = 5,
    restarts: int = 5,
    agent: type[Agent] = Agent,
    conductor: type[Conductor] = Conductor,
    **faults: Any,
) -> World:
    """A world of agents at sites and a conductor that is told scripts."""
    limits = ConductorLimits(tries_max=tries, restarts_max=restarts, steady_polls=1)

    def reborn(name: str, ground: Hosts | None) -> Machine:
        disk = {fragment: epoch for site, fragment, epoch in ground.disks if site == name} if ground else {}
        if name == "conductor":
            return conductor(name, disk, limits)
        return agent(name, disk, AgentLimits(halt_tries_max=2))

    # Every fault costs at most one try and one restart, so enough of both must see any of them through.
    patient = sum(faults.values()) + deaths < min(tries, restarts)
    names = (*sites, "conductor")

    def machines() -> dict[str, Machine]:
        return {name: reborn(name, None) for name in names}

    claims = PATIENT if patient else INVARIANTS
    return World(
        name,
        machines,
        Hosts(deaths, may_drain),
        tuple(tuple(("conductor", input) for input in script) for script in scripts),
        {**claims, **strange.answering(machines, names, stale), **refusals_heeded(machines, "conductor")},
        quiet,
        reborn,
        sites if mortal is None else mortal,
        steps={**STEPS, TIMED: timed(waits)},
        **faults,
    )


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of hosting; the protocol is our own, so nothing is published to compare with."""
    start, go, stop = Want("f1", "a"), Want("f1", "b"), Unwant("f1")
    both = ("a", "b", "conductor")
    more = int(long)
    return (
        world("started and stopped", (start, stop), sites=("a",), lose=1, crash=1, early=1, deaths=1, **machines),
        world("a move, the old stopped first", (start, stop, go), lose=1 + more, crash=1, **machines),
        world("a move at once", (start, go), lose=1, early=1 + more, crash=1, deaths=more, **machines),
        world("a move and back", (start, go, start), lose=1, early=1, deaths=more, **machines),
        world("two fragments", (start, stop), (Want("f2", "b"),), lose=1, crash=more, **machines),
        world("the conductor crashes", (start, go), mortal=both, crash=1 + more, lose=1, **machines),
        world("inputs end", (start, go), may_drain=True, lose=1, crash=1, deaths=more, **machines),
        world("a silent site", (start, go), tries=1, lose=3 + more, early=1, **machines),
        world("messages overtake one another", (start, stop), overtake=1, early=2, lose=more, **machines),
        world("a fragment that keeps dying", (start, stop), sites=("a",), deaths=3, restarts=1, lose=1, **machines),
    )
