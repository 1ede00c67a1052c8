"""Worlds for balancing: small trees whose sites offer, ask and hand over, while loads change and sites are lost."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import balancing_published
from weft.bodies.explorer.worlds.balancing_claims import INVARIANTS, quiet
from weft.bodies.explorer.worlds.balancing_ground import Case, Land, land
from weft.protocol import Machine
from weft.protocol.balancing import Balancer


def world(name: str, case: Case, balancer: type[Balancer] = Balancer, **faults: Any) -> World:
    """A world in which every site of a case looks as often as it says."""

    def reborn(site: str, ground: Land | None) -> Machine:
        memory = ground.memory(site) if ground else case.memory(site)
        return balancer(site, case.parent[site], case.children[site], case.streams, memory, case.limits, ground is None)

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


PAIR, CHAIN, FORK, STAR, DEEP = "r a<r", "r m<r a<m", "r a<r b<r", "r m<r a<m b<m", "r m<r n<m a<n"
OFFER = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=42<y", ends=("x@a y@r z@r",))
DEMAND = Case(PAIR, "s@a! x@a=50<s y@a=8<x z@r=30<y", ends=("x@a y@r z@r",))
CROSS = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=50<y w@r=15<s", "x=30", "a*2 r*2", ends=("w@r x@a y@a z@r",))
PASSING = Case(PAIR, "s@a! p@a=50<s x@a=15<p y@r=15<x q@r=26! z@r=1<y", "z=24 p=28", "a*2", ends=("p@a x@r y@r z@r",))
BOTH = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=20<y", ends=("x@a y@r z@r",))
TWO_OFFER = Case(
    FORK,
    "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=15<u z@r=42<y,v",
    ends=("u@b v@b x@a y@r z@r", "u@b v@r x@a y@a z@r"),
)
TWO_ASK = Case(CHAIN, "s@a! p@a=30<s q@m=50! x@m=8<s z@r=30<x", ends=("p@a x@a z@r", "p@a x@r z@r"))
CHOOSE = Case(CHAIN, "s@a! p@a=30<s q@m=50! x@m=15<s z@r=42<x", ends=("p@a x@a z@r",))
DOWN = Case(FORK, "s@a! t@b! x@a=41<s y@b=42<t j@r=20<x,y k@r=15<x q@r=30!", ends=("j@r k@a x@a y@b",))
AROUND = Case(STAR, "s@a! t@b! x@a=42<s y@b=42<t j@m=15<x k@m=12<y q@m=40! z@r=42<j,k", ends=("j@a k@m x@a y@b z@r",))
LONG_WAY = Case(DEEP, "s@a! p@a=42<s x@n=50<p y@n=15<x q@m=58! w@m=7<y z@r=42<w", ends=("p@a w@r x@n y@n z@r",))
KINDS = Case(
    PAIR, "s@a! x@a=30/50<s y@a=5/15<x u@a=25/2<s z@r=42/42<y,u", capacity=(100, 100), ends=("u@a x@a y@r z@r",)
)
GROWS = Case(CHAIN, "s@a! p@a=42<s q@m=50! x@m=9<s y@m=6<x z@r=42<y", "x=12 p=30", "m*2", ends=("p@a x@a y@a z@r",))


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of balancing; as published, those in which it breaks."""
    if as_published:
        return balancing_published.worlds()
    more = int(long)

    def of(name: str, case: Case, **faults: Any) -> World:
        return world(name, case, **faults, **machines)

    return (
        of("an offer", OFFER, lose=1, crash=1, early=1 + more),
        of("a demand", DEMAND, lose=1, crash=1, early=1 + more),
        of("offers cross while a load changes", CROSS, lose=1, crash=1),
        of("offers cross while loads change", PASSING, lose=1, crash=1, early=more),
        of("an offer and a demand cross", BOTH, lose=1, crash=1, early=1),
        of("two offers to one", TWO_OFFER, lose=1, crash=1, early=more),
        of("two demands to one", TWO_ASK, lose=1, crash=1, early=more),
        of("who needs it more", CHOOSE, lose=1, crash=1, early=more),
        of("down to one of two", DOWN, lose=1, crash=1, early=1),
        of("a star", AROUND, lose=1, crash=1),
        of("a long way", LONG_WAY, lose=1, crash=1),
        of("memory and CPU", KINDS, lose=1, crash=1, early=1),
        of("what was offered grows", GROWS, lose=1, crash=1),
    )


def brisk(**machines: Any) -> tuple[World, ...]:
    """Worlds of few faults, seen through in seconds, which together see nearly all that the others do."""

    def of(name: str, case: Case, **faults: Any) -> World:
        return world(name, case, **faults, **machines)

    return (
        of("an offer", OFFER),
        of("a demand", DEMAND),
        of("an offer and a demand", BOTH),
        of("two offers", TWO_OFFER),
        of("two demands", TWO_ASK),
        of("who needs it more", CHOOSE),
        of("down", DOWN),
        of("a star", AROUND),
        of("a long way", LONG_WAY),
        of("two resources", KINDS),
        of("an offer, a loss and an early timer", OFFER, lose=1, early=1),
        of("a demand, a loss and an early timer", DEMAND, lose=1, early=1),
        of("an offer, a crash", OFFER, crash=1),
        of("a demand, a crash", DEMAND, crash=1),
        of("an offer and a demand, a loss", BOTH, lose=1),
        of("who needs it more, a loss", CHOOSE, lose=1),
        of("changing loads", PASSING),
        of("growing loads", GROWS),
    )
