"""Policy `xzh`: the rival of Potential §5.3.7, global load distribution by correlation (Xing et al., ICDE 2005).

Only cited in our source, built from what is said of it: operators in descending load go, among sites below the average
utilisation, to the one whose load they correlate least with, measured against all other sites. Then pairs of sites
whose loads are correlated below the threshold are divided anew where that improves it. Links and quotas it leaves
aside.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.network.path_tables import Bools, Floats, Ints
from weft.plan.search.kept_operators import kept
from weft.plan.search.problem import Problem, problem
from weft.plan.search.repair import narrowed, settle
from weft.plan.stop import Stop

THRESHOLD = 0.8


def xzh(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Balanced load, correlated operators apart."""
    given = problem(deployment, "potential")
    return given.placement(xzh_homes(given, running), "below average load, least correlated with what is there")


def xzh_homes(given: Problem, running: Placement | None = None, threshold: float = THRESHOLD) -> Ints:
    """As `xzh`, of arrays."""
    flat = given.flat
    choices = narrowed(given)
    home = kept(given, running)
    order = np.argsort(-flat.load_ms, kind="stable")
    _distribute(given, [int(op) for op in order if home[op] < 0], home, list(range(len(flat.speed))), choices)
    stays = kept(given, running)
    for one, two in combinations(range(len(flat.speed)), 2):
        _improve(given, home, stays, one, two, choices, threshold)
    return settle(given, home)


def _distribute(given: Problem, ops: list[int], home: Ints, sites: list[int], choices: Bools) -> None:
    """Operators in the order given, each to the best of these sites that are below their average."""
    flat = given.flat
    load = np.array([flat.load_ms[home == site].sum() for site in sites]) / (1000.0 * flat.speed[sites])
    waves = np.array([flat.wave[home == site].sum(axis=0) for site in sites])
    target = (float(flat.load_ms[np.isin(home, sites)].sum()) + float(flat.load_ms[ops].sum())) / (
        1000.0 * float(flat.speed[sites].sum())
    )
    for op in ops:
        may = choices[op][sites]
        if not may.any():
            home[op] = int(np.flatnonzero(choices[op])[0])
            continue
        low = may & (load < target)
        low = low if low.any() else may
        rho = np.array([_rho(flat.wave[op], wave) for wave in waves])
        score = (rho.sum() - rho) / max(1, len(sites) - 1) - rho
        # Of equal scores the site with the least load.
        best = min(np.flatnonzero(low), key=lambda at: (-round(float(score[at]), 9), load[at]))
        home[op] = sites[best]
        load[best] += flat.load_ms[op] / (1000.0 * flat.speed[sites[best]])
        waves[best] += flat.wave[op]


def _improve(given: Problem, home: Ints, stays: Ints, one: int, two: int, choices: Bools, threshold: float) -> None:
    """Divides a pair of sites anew where their loads then rise and fall together more than before."""
    flat = given.flat
    before = _rho(flat.wave[home == one].sum(axis=0), flat.wave[home == two].sum(axis=0))
    movable = [int(op) for op in np.argsort(-flat.load_ms, kind="stable") if home[op] in (one, two) and stays[op] < 0]
    if before >= threshold or not movable:
        return
    tried = home.copy()
    tried[movable] = -1
    _distribute(given, movable, tried, [one, two], choices)
    after = _rho(flat.wave[tried == one].sum(axis=0), flat.wave[tried == two].sum(axis=0))
    if after > before + 1e-9:
        home[:] = tried


def _rho(one: Floats, two: Floats) -> float:
    spread = float(one @ one) * float(two @ two)
    return float(one @ two) / np.sqrt(spread) if spread > 1e-18 else 0.0
