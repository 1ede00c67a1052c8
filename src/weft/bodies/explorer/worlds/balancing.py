"""Worlds for balancing: small trees whose sites offer, ask and hand over, while loads change and sites are lost."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds.balancing_claims import INVARIANTS, quiet
from weft.bodies.explorer.worlds.balancing_ground import Case, Land, land
from weft.protocol import Machine
from weft.protocol.balancing import Balancer


def world(name: str, case: Case, balancer: type[Balancer] = Balancer, **faults: Any) -> World:
    """A world in which every site of a case looks as often as it says."""

    def reborn(site: str, ground: Land | None) -> Machine:
        memory = ground.memory(site) if ground else case.memory(site)
        return balancer(site, case.parent[site], case.children[site], case.streams, memory, case.limits)

    return World(
        name,
        lambda: {site: reborn(site, None) for site in case.parent},
        land(case),
        (),
        INVARIANTS,
        quiet,
        reborn,
        tuple(case.parent),
        **faults,
    )


CROSS = Case("r a<r", "s@a! x@a=50<s y@a=15<x z@r=50<y w@r=15<s", "x=30", "a*2 r*2")
BOTH = Case("r a<r b<r", "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=15<u z@r=42<y,v")


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of balancing."""

    def of(name: str, case: Case, **faults: Any) -> World:
        return world(name, case, **faults, **machines)

    return (
        of("an offer", Case("r a<r", "s@a! x@a=50<s y@a=15<x z@r=42<y"), lose=1, crash=1, early=1),
        of("a demand", Case("r a<r", "s@a! x@a=50<s y@a=8<x z@r=30<y"), lose=1, crash=1, early=1),
        of("offers cross", CROSS, lose=1, crash=1),
        of("an offer and a demand cross", Case("r a<r", "s@a! x@a=50<s y@a=15<x z@r=20<y"), lose=1, crash=1, early=1),
        of("two offers to one", BOTH, lose=1, crash=1),
        of("two demands to one", Case("r m<r a<m", "s@a! p@a=30<s q@m=50! x@m=8<s z@r=30<x"), lose=1, crash=1),
    )
