"""Policies `greedy` and `dp`: operators in descending load, each where its own potential is least (Potential §4.1)."""

from __future__ import annotations

from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.network.path_tables import Bools, Ints
from weft.plan.search.any_placement import some
from weft.plan.search.kept_operators import kept
from weft.plan.search.narrowing import narrow
from weft.plan.search.packed import pack
from weft.plan.search.problem import Problem, problem
from weft.plan.search.repair import narrowed, settle
from weft.plan.search.sweep import greedy_sweep, programme
from weft.plan.stop import Stop


def greedy(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """INIT_GREEDY, looking at streams both ways while operators are placed one by one."""
    given = problem(deployment, "potential")
    return given.placement(greedy_homes(given, running), "least potential when its turn came, heaviest first")


def dp(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """INIT_DYN_PROG, with line 9 minimising the whole sum so far."""
    given = problem(deployment, "potential")
    return given.placement(dp_homes(given, running), "least sum of potentials of those placed before, heaviest first")


def greedy_homes(given: Problem, running: Placement | None = None, *, as_printed: bool = False) -> Ints:
    """As `greedy`; as printed it looks at downstream links alone, blind to inputs that are placed already."""
    choices, stays, home = _begin(given, running)
    if greedy_sweep(*pack(given.flat), choices, _order(given), home, not as_printed):
        return home[: len(given.operators)]
    return _fallback(given, stays)


def dp_homes(given: Problem, running: Placement | None = None, *, as_printed: bool = False) -> Ints:
    """As `dp`; as printed line 9 looks at the last operator's potential alone, and only downstream."""
    choices, _, home = _begin(given, running)
    i, f, _ = pack(given.flat)
    wanted = programme(i, f, choices, _order(given), home, not as_printed, as_printed)
    return settle(given, wanted)


def _begin(given: Problem, running: Placement | None) -> tuple[Bools, Ints, Ints]:
    choices = narrowed(given)
    stays = kept(given, running)
    i, _, b = pack(given.flat)
    for op in np.flatnonzero(stays >= 0):
        tried = choices.copy()
        tried[op] = False
        tried[op, stays[op]] = choices[op, stays[op]]
        if given.flat.free or narrow(i, b, tried, int(op)) < 0:
            choices = tried
        else:
            stays[op] = -1
    home = given.flat.home.copy()
    home[: len(stays)] = stays
    return choices, stays, home


def _order(given: Problem) -> Ints:
    """Potential §4.1.3: descending load."""
    return np.argsort(-given.flat.load_ms, kind="stable").astype(np.int64)


def _fallback(given: Problem, stays: Ints) -> Ints:
    homes = given.homes(some(given))
    return settle(given, np.where(stays >= 0, stays, homes))
