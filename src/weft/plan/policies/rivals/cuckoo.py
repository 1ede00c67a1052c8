"""Policy `cuckoo`: cuckoo search with Lévy flights, combined with a particle swarm (Order §4.3).

A cuckoo flies far (many operators change, a number with a heavy tail) or with the swarm (towards its own best and the
best of all), and lays its placement into a nest at random, where the fitter one stays. The worst nests are given up.
Overloaded placements are thrown away. Nests and cuckoos are not published: 15 and 8.
"""

from __future__ import annotations

from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.any_placement import some
from weft.plan.search.chance import Words, below, seeded, share
from weft.plan.search.incremental import fill, fits
from weft.plan.search.kept_operators import kept
from weft.plan.search.packed import Bits, pack
from weft.plan.search.problem import Problem
from weft.plan.search.repair import settle
from weft.plan.search.traffic import traffic
from weft.plan.stop import Stop

NESTS = 15
CUCKOOS = 8
GIVEN_UP = 0.25
LEVY = 1.5
FAR = 0.4
ROUNDS_AT_ONCE = 50


def cuckoo(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """The fittest placement found by local and remote traffic and latency."""
    given = traffic(deployment)
    return given.placement(cuckoo_homes(given, running, rng, stop), "least traffic and delay between sites found")


def cuckoo_homes(given: Problem, running: Placement | None, rng: Random, stop: Stop) -> Ints:
    """As `cuckoo`, of a problem of pairs."""
    stays = kept(given, running)
    start = given.homes(some(given)) if running is None else given.homes(running)
    start = settle(given, np.where(stays >= 0, stays, start))
    movable = np.flatnonzero((given.flat.choices.sum(axis=1) > 1) & (stays < 0)).astype(np.int64)
    if len(movable) == 0 or len(given.sites) == 1:
        return start
    i, f, b = pack(given.flat)
    chance = seeded(rng)
    nests = np.tile(start, (NESTS, 1))
    worth = np.full(NESTS, np.inf)
    birds, own = np.tile(start, (CUCKOOS, 1)), np.tile(start, (CUCKOOS, 1))
    worth[0] = fill(i, f, start)
    own_worth = np.full(CUCKOOS, worth[0])
    best, least = start.copy(), np.array([worth[0]])
    taken = 0
    while not stop(taken):
        _fly(i, f, b, movable, nests, worth, birds, own, own_worth, best, least, ROUNDS_AT_ONCE, chance)
        taken += ROUNDS_AT_ONCE * CUCKOOS
    return best


@compiled
def _levy(bird: Ints, movable: Ints, sites: int, chance: Words) -> None:
    """Far: as many operators change as a heavy tail says."""
    many = min(len(movable), int((1.0 - share(chance)) ** (-1.0 / LEVY)))
    for _ in range(many):
        bird[movable[below(chance, len(movable))]] = below(chance, sites)


@compiled
def _swarm(bird: Ints, own: Ints, best: Ints, movable: Ints, sites: int, chance: Words) -> None:
    """Near: each operator keeps on, or follows the bird's own best or the best of all; one may stray."""
    for op in movable:
        pull = share(chance)
        if pull < 0.3:
            bird[op] = best[op]
        elif pull < 0.5:
            bird[op] = own[op]
    if share(chance) < 0.5:
        bird[movable[below(chance, len(movable))]] = below(chance, sites)


@compiled
def _valued(i: Ints, f: Floats, b: Bits, bird: Ints) -> float:
    """A placement's score; infinite where it breaks a rule or overloads a site."""
    total = fill(i, f, bird)
    for site in range(i[c.SITES]):
        if f[i[c.VALUE] + site] > 0.0:
            return np.inf
    if i[c.CHOOSES]:
        for op in range(i[c.OPS]):
            if not fits(i, b, op, bird[op]):
                return np.inf
    return total


@compiled
def _fly(
    i: Ints, f: Floats, b: Bits, movable: Ints, nests: Ints, worth: Floats, birds: Ints, own: Ints, own_worth: Floats,
    best: Ints, least: Floats, rounds: int, chance: Words,
) -> None:  # fmt: skip
    for _ in range(rounds):
        for at in range(len(birds)):
            if share(chance) < FAR:
                birds[at] = best if share(chance) < 0.5 else birds[at]
                _levy(birds[at], movable, i[c.SITES], chance)
            else:
                _swarm(birds[at], own[at], best, movable, i[c.SITES], chance)
            value = _valued(i, f, b, birds[at])
            if value == np.inf:
                birds[at] = own[at]
                continue
            if value < own_worth[at]:
                own_worth[at] = value
                own[at] = birds[at]
            nest = below(chance, len(nests))
            if value < worth[nest]:
                worth[nest] = value
                nests[nest] = birds[at]
            if value < least[0]:
                least[0] = value
                best[:] = birds[at]
        given_up = int(GIVEN_UP * len(nests))
        worst = np.argsort(-worth)
        for at in range(given_up):
            worth[worst[at]] = np.inf
        # A bird whose placement nobody breeds goes on from a nest.
        bird = below(chance, len(birds))
        nest = below(chance, len(nests))
        if worth[nest] < np.inf:
            birds[bird] = nests[nest]
