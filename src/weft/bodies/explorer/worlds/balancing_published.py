"""Worlds in which the negotiation as published breaks: one for each defect, where need be with others mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, View, World
from weft.bodies.explorer.worlds.balancing_ground import Changed, Loads, Tree
from weft.protocol import Effect, Machine
from weft.protocol.balancing import Check, Part, Start
from weft.protocol.published.balancing import OVERLAPS, REPLIES, SELECTION, BalancerAsPublished, Drop


class Deployed(msgspec.Struct, frozen=True):
    """Which sites run which operators, and what these take; `full` names a site that took too much."""

    case: Any
    runs: tuple[tuple[str, str], ...]
    loads: tuple[tuple[str, Loads], ...]
    checks: tuple[tuple[str, int], ...]
    changed: int = 0
    full: str = ""

    def at(self, site: str) -> list[str]:
        """What runs at a site."""
        return [operator for operator, where in self.runs if where == site]

    def perform(self, site: str, effect: Effect) -> Deployed:
        """The ground after an effect."""
        match effect:
            case Start(operators):
                after = self.but(runs=tuple(sorted({*self.runs, *((operator, site) for operator in operators)})))
                loads = dict(self.loads)
                over = sum(loads[operator][0] for operator in after.at(site)) > self.case.limits.thresholds().high[0]
                return after.but(full=site) if over else after
            case Drop(operators):
                gone = {(operator, site) for operator in operators}
                return self.but(runs=tuple(run for run in self.runs if run not in gone))
        return self

    def choices(self) -> Iterator[Choice]:
        """Sites look, loads change."""
        loads = dict(self.loads)
        for site, times in self.checks:
            if times:
                left = tuple((name, count - (name == site)) for name, count in self.checks)
                seen = Check(tuple(Part(operator, loads[operator]) for operator in self.at(site)))
                yield Choice(site, seen, self.but(checks=left))
        if self.changed < len(self.case.changes):
            operator, load = self.case.changes[self.changed]
            after = self.but(loads=tuple(sorted({**loads, operator: load}.items())), changed=self.changed + 1)
            yield Choice(self.case.homes[operator], Changed(operator, load), after, due=False, heard=False)

    def crash(self, site: str) -> Deployed:
        """Sites do not crash here."""
        raise AssertionError(site)

    def but(self, **changes: Any) -> Deployed:
        """The same ground, changed."""
        return msgspec.structs.replace(self, **changes)


def one_runs(view: View) -> bool:
    """No operator runs at two sites, not even while it is handed over."""
    running = [operator for operator, _ in view.ground.runs]
    return len(set(running)) == len(running)


def one_stays(view: View) -> bool:
    """When nothing is under way, no operator runs at two sites."""
    return bool(view.flight) or one_runs(view)


def streams_pass(view: View) -> bool:
    """When nothing is under way, every operator is where its inputs pass."""
    case: Tree = view.ground.case
    if view.flight:
        return True
    homes = dict(view.ground.runs)
    edges = [(source, reader) for reader, read in case.streams.inputs.items() for source in read]
    return all(homes[reader] in case.above(homes[source]) for source, reader in edges)


def quiet(view: View) -> bool:
    """Every site has looked, and none negotiates."""
    return not view.busy and all(view.machine(site).rows[site].state == "idle" for site in view.ground.case.parent)


CLAIMS = {
    "deployed twice": ("when nothing is under way, no operator runs at two sites", one_stays),
    "at once": ("no operator runs at two sites", one_runs),
    "streams": ("every operator is where its streams pass", streams_pass),
    "room": ("no site takes what it has no room for", lambda view: not view.ground.full),
}


def world(name: str, case: Tree, claim: str, *repaired: str, lose: int = 0) -> World:
    """A world of published sites; the claim that is to break, and that every wait ends."""
    children = case.children

    def machines() -> dict[str, Machine]:
        made: dict[str, Machine] = {}
        for site, parent in case.parent.items():
            memory = case.memory(site)
            here = {operator: loads[0] for operator, loads in memory.here.items()}
            made[site] = BalancerAsPublished(
                site, parent, children[site], case.streams, here, dict(memory.below), case.limits, frozenset(repaired)
            )
        return made

    ground = Deployed(case, tuple(sorted(case.homes.items())), tuple(sorted(case.loads.items())), case.checks)
    return World(name, machines, ground, (), dict([CLAIMS[claim]]) if claim else {}, quiet, lose=lose)


def worlds() -> tuple[World, ...]:
    """One for each row of the errata."""
    two_up = "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=15<u z@r=42<y,v"
    passing = "s@a! p@a=50<s x@a=15<p y@r=15<x q@r=26! z@r=1<y"
    return (
        world("selection passes over the neighbour", Tree("r a<r", "s@a! x@a=15<s y@a=50<x z@r=42<y"), "streams"),
        world(
            "one operator offered to two",
            Tree("r m<r a<m", "s@a! p@a=42<s q@m=60! x@m=8<s z@r=42<x"),
            "deployed twice", SELECTION,
        ),
        world("two offers to one", Tree("r a<r b<r", two_up), "room", SELECTION, OVERLAPS),
        world(
            "two demands to one",
            Tree("r m<r a<m", "s@a! p@a=30<s q@m=50! x@m=8<s z@r=30<x", checks="m*0"),
            "deployed twice", SELECTION, OVERLAPS,
        ),
        world(
            "an offer crosses a demand",
            Tree("r m<r a<m", "s@a! p@a=30<s q@m=50! x@m=15<s z@r=42<x"),
            "deployed twice", SELECTION, OVERLAPS, REPLIES,
        ),
        world(
            "offers cross while loads change",
            Tree("r a<r", passing, "z=24 p=28", "a*2 r*1"),
            "streams", SELECTION, OVERLAPS, REPLIES,
        ),
        world("requests are ignored", Tree("r a<r", "s@a! x@a=65<s z@r=30<x"), "", SELECTION, OVERLAPS),
        world(
            "the new starts before the old stops",
            Tree("r a<r", "s@a! x@a=50<s y@a=15<x z@r=42<y"),
            "at once", SELECTION, OVERLAPS, REPLIES,
        ),
        world("a reply is lost", Tree("r a<r", "s@a! x@a=65<s z@r=42<x"), "", SELECTION, OVERLAPS, REPLIES, lose=1),
    )  # fmt: skip
