"""Policy `refine`: the best placement that a search finds, from what runs, what is near and what greedy gives.

Annealing over moves, swaps and chains of moves, each judged by what it changes. Few placements are tried out whole.
Where latency is asked and sites fill up whatever one does, or sources swing, the search goes on by the fluid.
With a price per move, or with `keep`, what runs already stays unless leaving pays.
"""

from __future__ import annotations

from random import Random

from weft.model import Deployment, Placement
from weft.plan.flat import Problem, problem
from weft.plan.reasons import reasons
from weft.plan.stop import Stop, first_half
from weft.plan.tiny import TINY_MAX, all_tried, how_many
from weft.plan.ways import Ints


def refine(
    deployment: Deployment, running: Placement | None, rng: Random, stop: Stop, *, price: float = 0.0
) -> Placement:
    """The least score found within the budget, with a price for every operator that leaves where it runs."""
    given = problem(deployment, running=running, price=price)
    homes = refined(given, running, rng, stop)
    return given.placement(homes, reasons(given, homes))


def refined(given: Problem, running: Placement | None, rng: Random, stop: Stop) -> Ints:
    """As `refine`, of arrays."""
    if how_many(given, running) <= TINY_MAX:
        return all_tried(given, running)
    from weft.plan.relief import relieved, strained
    from weft.plan.search import Search

    search = Search(given, running, rng)
    if not any(strained(given, homes) for homes in search.starts):
        return search.run(stop)
    best = search.run(first_half(stop))
    if not strained(given, best):
        return best
    return relieved(given, [best, *search.starts], search.movable, search.can_move, search.chance, stop)
