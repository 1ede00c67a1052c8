"""How a search is run: where it begins, how hot, how long, and what it returns."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np

from weft.model import Placement
from weft.plan.network.path_tables import Ints
from weft.plan.search.anneal import CHAINS, SWAPS, anneal, descend, rises
from weft.plan.search.any_placement import some
from weft.plan.search.chance import seeded
from weft.plan.search.incremental import fill
from weft.plan.search.kept_operators import kept
from weft.plan.search.packed import homes_of, pack
from weft.plan.search.problem import Problem
from weft.plan.search.repair import narrowed, settle
from weft.plan.search.sweep import greedy_sweep
from weft.plan.stop import Stop

STEPS_AT_ONCE = 5_000
TRACKED_MAX = 2_000
# Steps that a rule without a known budget is taken to allow.
STEPS_GUESSED = 1_000_000
# Beyond this many pairs of operator and site `near`, which is not compiled, takes longer than the search.
NEAR_MAX = 2_500
# From this many pairs on one long cooling beats several.
MIDDLE = 1_000
# Beyond this many pairs there is no time to heat up, to swap much, nor to look at every pair at the end of a round.
LARGE = 500_000


class Manner(NamedTuple):
    """How a search goes about it: shares of its steps, and how hot it begins and ends.

    Heat is a quantile of what random moves would make worse, and a factor.
    """

    swaps: float = SWAPS
    chains: float = CHAINS
    trades: float = 0.0
    hot: tuple[float, float] = (0.5, 0.5)
    cold: tuple[float, float] = (0.02, 0.02)


FIRST, AGAIN = Manner(), Manner(hot=(0.2, 0.5))
# Sites are full where potential is least, so that most of what helps is an exchange; its price is longer steps.
BY_POTENTIAL = Manner(0.4, 0.1, 0.1, hot=(0.2, 1.0))
BY_LATENCY = Manner(0.2, 0.05, 0.03, hot=(0.2, 0.5), cold=(0.02, 0.5))


class Search:
    """One search over one problem; the same generator and budget of steps give the same result."""

    def __init__(self, given: Problem, running: Placement | None, rng: Random) -> None:
        self.given = given
        self.flat = given.flat
        self.chance = seeded(rng)
        self.running = running
        self.stays = kept(given, running)
        several = self.flat.choices.sum(axis=1) > 1
        self.can_move = (several & (self.stays < 0)).astype(np.int64)
        self.movable = np.flatnonzero(self.can_move).astype(np.int64)
        self.i, self.f, self.b = pack(self.flat)
        self.best = np.zeros(len(given.operators), np.int64)
        self.totals = np.array([np.inf, np.inf])
        self.taken = 0
        self.starts = self._begin()

    def run(self, stop: Stop) -> Ints:
        """The best homes found."""
        for homes in self.starts:
            self._look(fill(self.i, self.f, homes), homes)
        if len(self.movable) == 0 or len(self.flat.speed) == 1 or stop(0):
            return self.best
        size = len(self.movable) * len(self.flat.speed)
        rounds = 12 if size < 100 else 6 if size < MIDDLE else 1
        for round_ in range(rounds):
            self._round(stop, round_ / rounds, (round_ + 1) / rounds, first=round_ == 0, size=size)
        return self.best

    def _begin(self) -> list[Ints]:
        """Where a search may begin: what runs, what is near, and greedy by the potential, all as `keep` has it."""
        found = [self._greedy()]
        if len(self.stays) * len(self.flat.speed) <= NEAR_MAX:
            found.insert(0, self.given.homes(some(self.given)))
        if self.running is not None:
            found.insert(0, self.given.homes(self.running))
        return [settle(self.given, np.where(self.stays >= 0, self.stays, homes)) for homes in found]

    def _greedy(self) -> Ints:
        home = self.flat.home.copy()
        m = len(self.stays)
        home[:m] = self.stays
        order = np.argsort(-self.flat.load_ms, kind="stable").astype(np.int64)
        if not greedy_sweep(self.i, self.f, self.b, narrowed(self.given), order, home, True):
            return self.given.homes(some(self.given))
        return home[:m]

    def _look(self, total: float, homes: Ints) -> None:
        if total < self.totals[1]:
            self.totals[1] = total
            self.best[:] = homes

    def _round(self, stop: Stop, begin: float, end: float, *, first: bool, size: int) -> None:
        """Cools from hot to cold over a part of the budget, from the best so far, then descends."""
        i, f, b = self.i, self.f, self.b
        m = len(self.best)
        self.totals[0] = fill(i, f, self.best)
        worse = rises(i, f, b, self.movable, 400, self.chance)
        if len(worse) == 0:
            worse = np.ones(1)
        manner = FIRST if first else AGAIN
        if MIDDLE <= size < LARGE:
            manner = BY_POTENTIAL if self.flat.potential else BY_LATENCY
        hot = float(np.quantile(worse, manner.hot[0])) * manner.hot[1]
        cold = float(np.quantile(worse, manner.cold[0])) * manner.cold[1] + 1e-12
        if size >= LARGE:
            hot = 10.0 * cold
        track = m <= TRACKED_MAX
        while not stop(self.taken):
            at = (progress(stop, self.taken) - begin) / (end - begin)
            if at >= 1.0:
                break
            after = min(1.0, (progress(stop, self.taken + STEPS_AT_ONCE) - begin) / (end - begin))
            here, there = hot * (cold / hot) ** at, hot * (cold / hot) ** after
            anneal(
                i, f, b, self.movable, self.can_move, self.best, self.totals, here, there, STEPS_AT_ONCE, track,
                self.chance, manner.swaps, manner.chains, manner.trades,
            )  # fmt: skip
            self.taken += STEPS_AT_ONCE
        if size < LARGE:
            self.totals[0] += descend(i, f, b, self.movable, 20)
        homes = homes_of(i)
        self._look(fill(i, f, homes), homes)


def progress(stop: Stop, taken: int) -> float:
    """How much of a budget is used; a rule that does not say is taken to allow `STEPS_GUESSED`."""
    known = getattr(stop, "progress", None)
    return float(known(taken)) if known is not None else min(1.0, taken / STEPS_GUESSED)
