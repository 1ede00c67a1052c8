"""Policy `exact`: the least score of all placements, by branch and bound; for small problems only.

Operators are placed heaviest first; a branch is left when what is placed already costs more than the best found. Load,
network and latency only grow as operators are added; correlation is bounded by -1 for each operator.
"""

from __future__ import annotations

from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.compiled import compiled
from weft.plan.errors import NoPlacement
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.brute_force import TINY_MAX, all_tried, how_many
from weft.plan.search.incremental import fill, fits, shift
from weft.plan.search.kept_operators import kept
from weft.plan.search.packed import Bits, pack
from weft.plan.search.problem import Problem, problem
from weft.plan.search.repair import settle
from weft.plan.search.schedule import Search
from weft.plan.stop import Stop, after_steps

TRIES_MAX = 200_000_000
TRIES_AT_ONCE = 2_000_000
PLACEMENTS_MAX = 1e14


def exact(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """The best of all placements by the deployment's objective; refuses problems that would take hours."""
    given = problem(deployment)
    homes = exact_homes(given, running)
    return given.placement(homes, f"least {deployment.control.place.objective} of all placements")


def exact_homes(given: Problem, running: Placement | None = None) -> Ints:
    """As `exact`, of arrays."""
    many = how_many(given, running)
    if many <= TINY_MAX:
        return all_tried(given, running)
    if many > PLACEMENTS_MAX:
        raise NoPlacement(f"policy exact: {many:.0e} placements are too many to look at; use refine")
    flat = given.flat
    stays = kept(given, running)
    start = Search(given, running, Random(0)).run(after_steps(50_000))
    best = settle(given, start)
    i, f, b = pack(flat)
    least = np.array([fill(i, f, best)])
    fill(i, f, np.full(len(best), -1, np.int64))
    order = np.argsort(-flat.asked_ms, kind="stable").astype(np.int64)
    lowest = flat.w_correlation if flat.potential and flat.varies else 0.0
    site_at = np.full(len(order), -1, np.int64)
    depth = np.array([0])
    totals = np.zeros(len(order) + 1)
    tries = 0
    while depth[0] >= 0 and tries < TRIES_MAX:
        _branch(i, f, b, order, stays, site_at, depth, totals, best, least, lowest, TRIES_AT_ONCE)
        tries += TRIES_AT_ONCE
    if depth[0] >= 0:
        raise NoPlacement(f"policy exact: not done after {tries:,} tries; use refine")
    return best


@compiled
def _branch(
    i: Ints, f: Floats, b: Bits, order: Ints, stays: Ints, site_at: Ints, depth_at: Ints, totals: Floats, best: Ints,
    least: Floats, lowest: float, tries: int,
) -> None:  # fmt: skip
    """Goes on depth first for so many tries; at depth -1 everything was looked at."""
    m, n = i[c.OPS], i[c.SITES]
    depth = depth_at[0]
    for _ in range(tries):
        if depth < 0:
            break
        op = order[depth]
        if site_at[depth] >= 0:
            shift(i, f, op, -1)
        site = site_at[depth] + 1
        while site < n and not (fits(i, b, op, site) and stays[op] in (-1, site)):
            site += 1
        if site == n:
            site_at[depth] = -1
            depth -= 1
            continue
        site_at[depth] = site
        total = totals[depth] + shift(i, f, op, site)
        # Correlations so far may all turn into the lowest there are.
        bound = total - lowest * m
        if lowest > 0.0:
            for at in range(n):
                bound -= lowest * f[i[c.CORRELATION] + at]
        if bound >= least[0] - 1e-12 * abs(least[0]):
            continue
        if depth == m - 1:
            if total < least[0] - 1e-12 * abs(least[0]):
                least[0] = total
                best[:] = i[i[c.HOME] : i[c.HOME] + m]
            continue
        totals[depth + 1] = total
        depth += 1
    depth_at[0] = depth
