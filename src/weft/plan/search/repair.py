"""Which placement that keeps pins, links and the tree rule is nearest to the one that was wanted?"""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Bools, Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.any_placement import some
from weft.plan.search.narrowing import narrow
from weft.plan.search.packed import Bits, pack
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps


@compiled
def _settle(i: Ints, f: Floats, b: Bits, choices: Bools, wanted: Ints, order: Ints) -> bool:
    for op in order:
        best, nearest = -1, np.inf
        for site in range(i[c.SITES]):
            if not choices[op, site]:
                continue
            if site == wanted[op]:
                best = site
                break
            far = f[i[c.DELAY] + wanted[op] * i[c.SITES] + site] if wanted[op] >= 0 else 0.0
            if best < 0 or far < nearest:
                best, nearest = site, far
        if best < 0:
            return False
        wanted[op] = best
        choices[op] = False
        choices[op, best] = True
        if narrow(i, b, choices, op) >= 0:
            return False
    return True


def _narrow_all(given: Problem, choices: Bools) -> int:
    i, _, b = pack(given.flat)
    return narrow(i, b, choices, -1)


def narrowed(given: Problem) -> Bools:
    """The sites left to each operator once all neighbours agree; raises where one has none."""
    choices = given.flat.choices.copy()
    if not given.flat.free and _narrow_all(given, choices) >= 0:
        some(given)
    return choices


def settle(given: Problem, wanted: Ints) -> Ints:
    """The nearest placement to the wanted one that keeps pins, links and the tree rule."""
    flat = given.flat
    homes = np.asarray(wanted, np.int64).copy()
    if keeps(given, homes):
        return homes
    if _settle(*pack(flat), narrowed(given), homes, np.argsort(-flat.asked_ms, kind="stable")):
        return homes
    return given.homes(some(given))
