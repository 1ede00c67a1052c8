"""Of placements that are as good, which sends least? Operators go back to their inputs where that costs nothing.

Operators that few results pass, or none, cost a search next to nothing wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.plan.network.path_tables import Ints
from weft.plan.search.arrays import Flat
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps

ROUNDS = 3
Score = Callable[[Ints], float]


def tidied(given: Problem, homes: Ints, stays: Ints, score: Score) -> Ints:
    """The same placement with operators beside their inputs, as far as latency stays and no more is sent."""
    best, total = homes.copy(), score(homes)
    most = total + 1e-12 * abs(total)
    sent = _sent(given.flat, best)
    for _ in range(ROUNDS):
        before = best.copy()
        for op in np.flatnonzero(stays < 0):
            for site in _inputs(given.flat, best, int(op)):
                tried = best.copy()
                tried[op] = site
                if site == best[op] or not keeps(given, tried):
                    continue
                now = _sent(given.flat, tried)
                if now <= sent and score(tried) <= most:
                    best, sent = tried, now
        if (best == before).all():
            break
    return best


def _inputs(flat: Flat, homes: Ints, op: int) -> list[int]:
    """Where an operator's inputs come from, each site once."""
    m = len(homes)
    nodes = flat.in_from[flat.in_at[op] : flat.in_at[op + 1]]
    return list(dict.fromkeys(int(homes[node] if node < m else flat.home[node]) for node in nodes))


def _sent(flat: Flat, homes: Ints) -> float:
    """What crosses between sites, one copy per destination."""
    whole = np.concatenate([homes, flat.home[len(homes) :]])
    total = 0.0
    for node, kbps in enumerate(flat.kbps):
        ends = set(whole[flat.out_to[flat.out_at[node] : flat.out_at[node + 1]]].tolist()) - {int(whole[node])}
        total += float(kbps) * len(ends)
    return total
