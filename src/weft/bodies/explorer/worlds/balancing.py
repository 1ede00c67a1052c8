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


PAIR, CHAIN, FORK, STAR, DEEP = "r a<r", "r m<r a<m", "r a<r b<r", "r m<r a<m b<m", "r m<r n<m a<n"


def worlds(as_published: bool = False, long: bool = False, **machines: Any) -> tuple[World, ...]:
    """The worlds of balancing; as published, those in which it breaks."""
    if as_published:
        return balancing_published.worlds()
    more = int(long)

    def of(name: str, case: Case, **faults: Any) -> World:
        return world(name, case, **faults, **machines)

    offer = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=42<y")
    demand = Case(PAIR, "s@a! x@a=50<s y@a=8<x z@r=30<y")
    cross = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=50<y w@r=15<s", "x=30", "a*2 r*2")
    passing = Case(PAIR, "s@a! p@a=50<s x@a=15<p y@r=15<x q@r=26! z@r=1<y", "z=24 p=28", "a*2 r*1")
    both = Case(PAIR, "s@a! x@a=50<s y@a=15<x z@r=20<y")
    two_up = Case(FORK, "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=15<u z@r=42<y,v")
    two_ask = Case(CHAIN, "s@a! p@a=30<s q@m=50! x@m=8<s z@r=30<x")
    choose = Case(CHAIN, "s@a! p@a=30<s q@m=50! x@m=15<s z@r=42<x")
    down = Case(FORK, "s@a! t@b! x@a=41<s y@b=42<t j@r=20<x,y k@r=15<x q@r=30!")
    star = Case(STAR, "s@a! t@b! x@a=42<s y@b=42<t j@m=15<x k@m=12<y q@m=40! z@r=42<j,k")
    deep = Case(DEEP, "s@a! p@a=42<s x@n=50<p y@n=15<x q@m=58! w@m=7<y z@r=42<w")
    kinds = Case(PAIR, "s@a! x@a=30/50<s y@a=5/15<x u@a=25/2<s z@r=42/42<y,u", capacity=(100, 100))
    grows = Case(CHAIN, "s@a! p@a=42<s q@m=50! x@m=9<s y@m=6<x z@r=42<y", "x=12 p=30", "m*2")
    return (
        of("an offer", offer, lose=1, crash=1, early=1 + more),
        of("a demand", demand, lose=1, crash=1, early=1 + more),
        of("offers cross while a load changes", cross, lose=1, crash=1),
        of("offers cross while loads change", passing, lose=1, crash=1),
        of("an offer and a demand cross", both, lose=1, crash=1, early=1),
        of("two offers to one", two_up, lose=1, crash=1),
        of("two demands to one", two_ask, lose=1, crash=1),
        of("who needs it more", choose, lose=1, crash=1),
        of("down to one of two", down, lose=1, crash=1),
        of("a star", star, lose=1, crash=more),
        of("a long way", deep, lose=1, crash=more),
        of("memory and CPU", kinds, lose=1, crash=1),
        of("what was offered grows", grows, lose=1, crash=1),
    )
