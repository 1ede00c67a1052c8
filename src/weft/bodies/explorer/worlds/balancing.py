"""Worlds for balancing: small trees whose sites offer, ask and hand over, while loads change and sites are lost."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import Claim, World
from weft.bodies.explorer.worlds import balancing_published, strange
from weft.bodies.explorer.worlds import balancing_trees as trees
from weft.bodies.explorer.worlds.balancing_claims import claims, mark, numbers_written, quiet
from weft.bodies.explorer.worlds.balancing_ground import Land, Tree, land
from weft.bodies.explorer.worlds.balancing_strange import STEPS, answer, declining, stale, unmeant
from weft.protocol import Machine
from weft.protocol.balancing import Balancer, Refuse


def world(
    name: str, case: Tree, balancer: type[Balancer] = Balancer, unmeant_too: bool = False, **faults: Any
) -> World:
    """A world in which every site of a case looks as often as it says.

    With `unmeant_too`, every site hears in every state what cannot be meant.
    """

    def reborn(site: str, ground: Land | None) -> Machine:
        memory = ground.memory(site) if ground else case.memory(site)
        return balancer(site, case.parent[site], case.children[site], case.streams, memory, case.limits, ground is None)

    def machines() -> dict[str, Machine]:
        return {site: reborn(site, None) for site in case.parent}

    more: dict[str, Claim] = {"every number is written down before it is used": numbers_written}
    if unmeant_too:
        more = strange.refusing(machines, case.parent, unmeant, Refuse, answer)
        more |= strange.passing(machines, case.parent, stale)
        more |= declining(machines, case.parent)
    return World(
        name,
        machines,
        land(case),
        (),
        {**claims(case), **(more if unmeant_too or faults.get("torn") else {})},
        quiet,
        reborn,
        tuple(case.parent),
        mark=mark,
        steps=STEPS,
        **faults,
    )


STATES_MAX = 50_000_000


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of balancing; as published, those in which it breaks."""
    if as_published:
        return balancing_published.worlds()
    more = int(long)

    def of(name: str, case: Tree, **faults: Any) -> World:
        return world(name, case, states_max=STATES_MAX, **faults, **machines)

    return (
        of("an offer", trees.OFFER, lose=1, crash=1, early=1 + more),
        of("a demand", trees.DEMAND, lose=1, crash=1, early=1 + more),
        of("an offer and a demand cross", trees.BOTH, lose=1 + more, crash=1, early=1 + more),
        of("down to one of two", trees.DOWN, lose=1, crash=1, early=1),
        of("memory and CPU", trees.KINDS, lose=1, crash=1, early=1),
        of("offers cross while a load changes", trees.CROSS, lose=1 + more, crash=1, early=2 * more),
        of("offers cross while loads change", trees.PASSING, lose=1, crash=1, early=more),
        of("two offers to one", trees.TWO_OFFER, lose=1 + more, crash=1, early=2 * more),
        of("two demands to one", trees.TWO_ASK, lose=1 + more, crash=1, early=more),
        of("who needs it more", trees.CHOOSE, lose=1 + more, crash=1, early=2 * more),
        of("a long way", trees.LONG_WAY, lose=1 + more, crash=1, early=more),
        of("a star", trees.AROUND, lose=1 + more, crash=1, early=more),
        of("all at once", trees.BUSY, lose=1, crash=more, early=more),
        of("what was offered grows", trees.GROWS, lose=1, crash=1, early=2 * more),
    )


def brisk(**machines: Any) -> tuple[World, ...]:
    """Worlds of few faults, seen through in seconds, which together see nearly all that the others do."""

    def of(name: str, case: Tree, **faults: Any) -> World:
        return world(name, case, **faults, **machines)

    calm = [of(name, case, unmeant_too=True) for name, case in trees.ALL.items()]
    return (
        *calm,
        of("an offer, a crash", trees.OFFER, crash=1, torn=1),
        of("a demand, a crash", trees.MORE, crash=1, torn=1),
        of("an offer, a loss and an early timer", trees.OFFER_TWICE, lose=1, early=1),
        of("a demand, a loss and an early timer", trees.DEMAND_TWICE, lose=1, early=1),
        of("two go to two sites, a crash", trees.TWO_GO, crash=1),
        of("a load that a crash forgets", trees.FORGETS, crash=1),
        of("an offer and a demand, a loss", trees.BOTH, lose=1),
        of("who needs it more, a loss", trees.CHOOSE, lose=1),
    )
