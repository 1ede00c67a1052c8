"""Worlds for composing: requests at once for the same room, the same promise, the same stream; and what goes wrong."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.composing_claims import answered, claims, stale
from weft.bodies.explorer.worlds.composing_ground import Case, Roads, Terrain
from weft.protocol import Input, Machine
from weft.protocol.composing import Ask, Begin, Composer, ComposerLimits, Depart, Instance, Keeper
from weft.protocol.published.composing import PublishedComposer

ROOM = 1_000_000


def world(
    name: str, case: Case, limits: ComposerLimits | None = None, composer: type[Composer] = Composer,
    keeper: type[Keeper] = Keeper, **faults: Any,
) -> World:  # fmt: skip
    """Composers and keepers, with what is asked of them."""
    roads = Roads(case.kbps)
    kept, noted = case.running(composer("", roads).bounds)
    runs = tuple(Instance(one.stream, site, f"{one.attempt} {one.piece}") for site, one in kept if one.load)

    def reborn(name: str, ground: Terrain | None) -> Machine:
        if name in case.capacity:
            disks = kept if ground is None else ground.disks
            return keeper(name, case.capacity[name], roads, kept=tuple(one for site, one in disks if site == name))
        notes = noted if ground is None else ground.notes
        life = 1 if ground is None else dict(ground.lives).get(name, 1)
        return composer(name, roads, limits, life, tuple(one for owner, one in notes if owner == name))

    scripts: dict[str, list[tuple[str, Input]]] = {}
    names = (*case.sites(), *case.composers())
    if faults.get("crash"):
        scripts = {name: [(name, Begin())] for name in names}
    for query in case.queries:
        owner, plan, levels = case.query(query)
        script = scripts.setdefault(owner, [])
        script.append((owner, Ask(query, plan, levels)))
    for query in case.leaves.split():
        owner = next(name for name in case.composers() if (case.queries | case.runs)[query].startswith(name))
        scripts.setdefault(owner, []).append((owner, Depart(query)))
    ground = Terrain(case, kept, noted, runs, runs, told=tuple((one, "admitted") for one in sorted(case.runs)))

    def machines() -> dict[str, Machine]:
        return {one: reborn(one, None) for one in names}

    return World(
        name, machines, ground, tuple(tuple(script) for script in scripts.values()),
        {**claims(case), **strange.answering(machines, names, stale)}, partial(answered, case), reborn, **faults,
    )  # fmt: skip


def worlds(
    as_published: bool = False, long: bool = False, composer: type[Composer] = Composer, keeper: type[Keeper] = Keeper
) -> tuple[World, ...]:
    """The worlds of composing; as published, every site may spend a query's whole slack."""
    made = PublishedComposer if as_published else composer
    quick = ComposerLimits(tells=False, deploys=False)
    of = partial(world, composer=made, keeper=keeper)
    both = {"a": ROOM, "b": ROOM}
    one = Case({"q": "x: o1(s@a) > b, 9000"}, {"o1": "a"}, both, ends=("q",))
    full = Case({"q": "x: o1(s@a) > a, 9000", "r": "y: o2(s@a) > a, 9000"}, {"o1": "a", "o2": "a"}, {"a": ROOM},
                load=600_000, ends=("q", "r"))  # fmt: skip
    apart = Case({"q": "x: o1(s@a) > a, 9000", "r": "y: o1(t@a) > a, 9000"}, {"o1": "a b"}, both, load=600_000)
    alike = Case({"q": "x: o1(s@a) > b, 9000", "r": "y: o1(s@a) > b, 9000"}, {"o1": "a"}, both, ends=("q r",))
    promise = Case(
        {"q": "x: o1(s@a) > a, 9000", "r": "y: o2(t@b) > b, 9000"}, {"o1": "a", "o2": "b"}, both,
        load=200_000, runs={"p": "z: p1@a p2@b > b, 3950"}, ends=("p",),
    )  # fmt: skip
    ample = msgspec.structs.replace(promise, runs={"p": "z: p1@a p2@b > b, 4400"}, ends=("p q r",))
    way = Case({"q": "x: o1(s@b) > a, 9000", "r": "y: o2(s@b) > a, 9000"}, {"o1": "a", "o2": "a"}, both,
               kbps={"b>a": 15}, ends=("q", "r"))  # fmt: skip
    levels = Case({"q": "x: o1(s@a) > a, 1500 9000", "r": "y: o2(s@a) > a, 1500 9000"}, {"o1": "a", "o2": "a"},
                  {"a": ROOM}, ends=("q", "r", "q r"))  # fmt: skip
    new = Case({"q": "x: o1(s@a) o2(o1) > b, 9000"}, {"o1": "a"}, both, others="b", ends=("q",))
    chain = Case({"q": "x: o1(s@a) o2(o1) > a, 9000"}, {"o1": "a b", "o2": "a b"}, both, ends=("q",))
    join = Case({"q": "x: o1(s@a) o2(t@b) o3(o1+o2) > a, 9000"}, {"o1": "a", "o2": "b", "o3": "a b"}, both,
                load=200_000, ends=("q",))  # fmt: skip
    leans = Case({"q": "x: o1(s@a) > b, 9000", "r": "x: o1(s@a) > a, 9000"}, {"o1": "a"}, both, leaves="q")
    longer = Case({"q": "x: o1(s@a) o2(o1) > a, 9000", "r": "x: o1(s@a) o2(o1) > a, 9000"}, {"o1": "a", "o2": "a"},
                  {"a": ROOM}, load=200_000, leaves="q")  # fmt: skip
    # One site is nearer, the other has more room: of two graphs neither is better, and both are kept.
    either = Case({"q": "x: o1(s@a) > a, 9000"}, {"o1": "a b"}, both, runs={"p": "z: p1@a > a, 9000"})
    hasty = ComposerLimits(tells=False, deploys=False, tries=1)
    stale = Case({"q": "x: o1(s@a) > a, 9000", "r": "y: o1(s@a) > a, 9000"}, {"o1": "a"}, {"a": ROOM}, leaves="q",
                 stale=True)  # fmt: skip
    usual = (
        of("one query", one),
        of("one query, a message lost", one, quick, lose=1),
        of("one query, a message twice and late", one, quick, double=1, overtake=1),
        of("one query, early timers", one, quick, early=1, lose=1),
        of("one query, a crash", one, quick, mortal=("a", "x:"), crash=1, torn=1),
        of("two at once, room for one", full, quick),
        of("two at once, room for one, a message lost", full, quick, lose=1),
        of("two at once, room for one, and the nearest promise", full, ComposerLimits(deploys=False)),
        of("two at once, a way for one", way, quick),
        of("two at once, two sites", apart, quick),
        of("two at once, the same stream", alike, quick),
        of("two at once, a promise across two sites", promise, quick),
        of("two at once, a promise that bears both", ample, quick),
        of("two at once, with levels", levels, quick),
        of("a new operator", new, ComposerLimits(tells=False)),
        of("a chain over two sites", chain, quick),
        of("two streams meet", join, ComposerLimits(tells=False, deploys=False, least=1)),
        of("one leans, the other leaves", leans, quick),
        of("one leans, the other leaves, then it leaves too", msgspec.structs.replace(leans, leaves="q r"), quick),
        of("one leans on a chain, which leaves", longer, quick),
        of("one leaves, the directory is stale", stale, quick),
        of("either of two sites, a message lost and early timers", either, hasty, early=1, lose=1),
        of("either of two sites, two messages lost", either, hasty, lose=2),
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual,
        of("two at once, two sites, a message lost", apart, quick, lose=1),
        of("two at once, the same stream, a message lost", alike, quick, lose=1),
        of("two at once, room for one, a crash", full, quick, mortal=("a", "x:"), crash=1, torn=1),
        of("one leans, the other leaves, a message lost", leans, quick, lose=1),
        of("one leans, the other leaves, a crash", leans, quick, mortal=("a",), crash=1),
        of("a chain over two sites, a message lost", chain, quick, lose=1),
    )
