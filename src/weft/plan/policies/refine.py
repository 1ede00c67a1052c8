"""Policy `refine`: the best placement that a search finds, from what runs, what is near and what greedy gives.

Annealing over moves, swaps, chains of moves and chains that trade places, each judged by what it changes. Few
placements are tried out whole. Where latency is asked and sites fill up whatever one does, or sources swing, the search
goes on by the fluid.
With a price per move, or with `keep`, what runs already stays unless leaving pays.
Where a hop costs anything, as live, what cannot be told apart is decided by what is sent, then by how many sites.
"""

from __future__ import annotations

from random import Random

from weft.model import Deployment, Placement
from weft.plan.network.path_tables import Ints
from weft.plan.search.as_fast import least_sent
from weft.plan.search.brute_force import TINY_MAX, all_tried, how_many, score
from weft.plan.search.kept_operators import kept
from weft.plan.search.least_traffic import Score, tidied
from weft.plan.search.needs_fluid import overloaded, strained
from weft.plan.search.problem import Problem, problem
from weft.plan.search.reasons import reasons
from weft.plan.stop import Stop, first_half

# Beyond this many operators tidying up takes longer than searching.
TIDIED_MAX = 1_000
# Latency of every query anew for every move that pays takes longer.
AS_FAST_MAX = 300
# From this many on, compiling costs less than adding up.
COMPILED_FROM = 30


def refine(
    deployment: Deployment, running: Placement | None, rng: Random, stop: Stop, *, price: float = 0.0,
    by_series: bool = False,
) -> Placement:  # fmt: skip
    """The least score found within the budget, with a price for every operator that leaves where it runs.

    `by_series`, or `control.place.series`, judges by the fluid in any case, so that traces count as they run.
    """
    by_series = by_series or deployment.control.place.series
    given = problem(deployment, running=running, price=price)
    homes = refined(given, running, rng, stop, by_series=by_series)
    if not by_series and given.flat.latency and len(homes) <= TIDIED_MAX:
        if not strained(given, homes):
            homes = tidied(given, homes, kept(given, running), _score(given))
        if deployment.control.place.hop_ms and len(homes) <= AS_FAST_MAX and not overloaded(given, homes):
            homes = least_sent(given, homes, running)
    return given.placement(homes, reasons(given, homes))


def _score(given: Problem) -> Score:
    if len(given.operators) < COMPILED_FROM:
        return lambda homes: score(given.flat, homes.tolist())
    from weft.plan.search.incremental import fill
    from weft.plan.search.packed import pack

    i, f, _ = pack(given.flat)
    return lambda homes: fill(i, f, homes)


def refined(given: Problem, running: Placement | None, rng: Random, stop: Stop, *, by_series: bool = False) -> Ints:
    """As `refine`, of arrays, before tidying up."""
    if how_many(given, running) <= TINY_MAX:
        return all_tried(given, running)
    from weft.plan.search.overload_search import relieved
    from weft.plan.search.schedule import Search

    search = Search(given, running, rng)
    if not by_series and not any(strained(given, homes) for homes in search.starts):
        return search.run(stop)
    best = search.run(first_half(stop))
    if not by_series and not strained(given, best):
        return best
    starts = [best, *search.starts]
    if by_series and given.flat.varies:
        from weft.plan.policies.rivals.xzh import xzh_homes

        starts.append(xzh_homes(given, running))
    return relieved(given, starts, search.movable, search.can_move, search.chance, stop)
