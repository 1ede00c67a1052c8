"""Random ways through worlds too large to be explored whole: step after step by chance, claims asked after each.

Where nothing more can happen, all must be quiet; then another way begins.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

from weft.bodies.explorer import kernel
from weft.bodies.explorer.alphabet import Alphabet
from weft.bodies.explorer.claims import Eyes
from weft.bodies.explorer.explore import ENDS, STEPS_LEGAL, Violation
from weft.bodies.explorer.story import Told, as_told, told
from weft.bodies.explorer.world import Claim, View, World

STEPS_MAX = 100_000
TEAR_ONCE_IN = 8
"""Of steps that a crash can tear, one in so many is torn, as long as the world allows it."""


class Wandered(NamedTuple):
    """How many steps were taken on how many ways, and what was found first."""

    steps: int
    ways: int
    violation: Violation | None


def wander(world: World, steps: int, seed: int) -> Wandered:
    """Takes at least so many random steps, on as many ways as that takes; stops at the first violation."""
    rng = Random(seed)
    taken = ways = 0
    while taken < steps:
        way, broken = _one_way(world, rng)
        taken += len(way)
        ways += 1
        if broken:
            return Wandered(taken, ways, Violation(world.name, f"{broken} (seed {seed}, way {ways})", told(way)))
    return Wandered(taken, ways, None)


class _Watch:
    """Asks claims again only when something that they looked at has changed."""

    def __init__(self, world: World, eyes: Eyes) -> None:
        self.world, self.eyes = world, eyes
        self.reads: dict[str, set[int]] = {}

    def broken(self, row: Any, changed: set[int]) -> str:
        """The first claim that does not hold, empty where all do."""
        for claim, holds in self.world.invariants.items():
            reads = self.reads.get(claim)
            if (reads is None or not reads.isdisjoint(changed)) and not self.ask(claim, holds, row):
                return claim
        return ""

    def ask(self, claim: str, holds: Claim, row: Any) -> bool:
        """Whether a claim holds, noting what it looks at."""
        places = self.eyes.alphabet.places
        seen = self.reads[claim] = set()

        def look(what: str, which: Any) -> Any:
            alone = places.get(which if what in ("machine", "mark") else what)
            seen.update((alone,) if alone is not None else range(len(places) + 1))
            return self.eyes.look(row, what, which)

        return bool(holds(View(look)))


def _one_way(world: World, rng: Random) -> tuple[list[Told], str]:
    alphabet = Alphabet(world)
    watch = _Watch(world, Eyes(alphabet))
    row: Any = alphabet.first()
    changed = set(range(row.size))
    way: list[Told] = []
    while len(way) < STEPS_MAX:
        alphabet.offers_for(row)
        if claim := watch.broken(row, changed):
            return way, claim
        found = _step(alphabet, row, rng)
        if found is None:
            return way, "" if watch.ask("", lambda view: view.told and world.quiet(view), row) else ENDS
        step, after = found
        changed = {*np.flatnonzero(after[: row.size] != row), *range(row.size, after.size)}
        row = after
        way.append(step)
        if step.illegal:
            return way, f"{STEPS_LEGAL}: {step.illegal}"
    return way, f"every run ends: this one goes on after {STEPS_MAX} steps"


def _step(alphabet: Alphabet, row: Any, rng: Random) -> tuple[Told, Any] | None:
    """A random step, and the row after it; None where there is none."""
    busy = bool(alphabet.busy[row].any())
    offers = [
        (place, at, offer)
        for place, value in enumerate(row.tolist()) if value
        for at, offer in enumerate(alphabet.offers_of[value])
    ]  # fmt: skip
    rng.shuffle(offers)
    for place, at, offer in offers:
        how, after, cuts = alphabet.take(row, place, at, busy)
        if how == kernel.FORBIDDEN:
            continue
        if cuts and not rng.randrange(TEAR_ONCE_IN):
            cut = rng.randrange(cuts)
            torn, crashed, _ = alphabet.take(row, place, at, busy, cut)
            if torn != kernel.FORBIDDEN:
                return as_told(alphabet, offer, row, cut), crashed
        return as_told(alphabet, offer, row), after
    return None
