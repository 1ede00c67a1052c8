"""Of placements whose latency the projection cannot tell apart, which sends least? Then, which uses the fewest sites?

Few placements are looked at one by one. Of many, operators leave the fastest placement found by themselves or with
those beside them that they are joined to, as long as less is sent: what a move changes is what its own streams carry,
so that the latency of all queries is looked at only where it pays. Latencies are held against those of the fastest
placement, not of the last step, so that small losses do not add up. Promises and capacities bind as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from weft.model import Placement
from weft.plan.judging.accuracy import told_apart
from weft.plan.network.path_tables import Bools, Ints
from weft.plan.search.brute_force import TINY_MAX, beyond, how_many, score, weighed
from weft.plan.search.kept_operators import kept
from weft.plan.search.needs_fluid import swings
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps
from weft.plan.search.sending import Latencies, Sending, sending

ROUNDS = 4
# Beyond this many pairs of operator and site only sites are tried that an operator's streams touch.
PAIRS_MAX = 2_000
# Where sources swing the mean says little of a site that is busier.
CALM = 0.5
NEXT_TO_NOTHING = 1e-9


class AsFast:
    """A placement and what may stand in for it."""

    def __init__(self, given: Problem, fastest: Ints) -> None:
        self.given = given
        self.latencies = Latencies(given)
        self.sending: Sending = sending(given)
        self.fastest = fastest
        self.limit_ms = self.latencies(fastest)
        self.beyond = beyond(given.flat, fastest.tolist())
        self.terms = bool(given.deployment.control.place.terms)
        self.hops = bool(given.deployment.control.place.hop_ms)
        self.calm = not any(swings(source.arrivals) for source in given.deployment.sources)

    def holds(self, homes: Ints) -> bool:
        """Whether another placement keeps all rules, and no query is slower by more than the projection can tell."""
        if not keeps(self.given, homes):
            return False
        flat = self.given.flat
        if not self.calm:
            busy = np.bincount(homes, flat.asked_ms, minlength=len(flat.speed)) / (1000.0 * flat.speed)
            if (busy > CALM).any():
                return False
        if slower(self.limit_ms, self.latencies(homes)) is not None:
            return False
        return _no_more(beyond(flat, homes.tolist()), self.beyond) and not (
            self.terms and not _no_more([weighed(flat, homes.tolist())], [weighed(flat, self.fastest.tolist())])
        )

    def sites(self, homes: Ints) -> int:
        """How many sites take part."""
        return len({*homes.tolist(), *self.sending.fixed})


def slower(before_ms: Sequence[float], now_ms: Sequence[float]) -> float | None:
    """By how much the query that suffers most is slower, None where the projection cannot tell it of any."""
    more = [now - old for old, now in zip(before_ms, now_ms, strict=True) if now > old and told_apart(old, now)]
    return max(more, default=None)


def _no_more(now: Sequence[float], before: Sequence[float]) -> bool:
    return all(one <= other + NEXT_TO_NOTHING * (1.0 + abs(other)) for one, other in zip(now, before, strict=True))


def least_sent(given: Problem, fastest: Ints, running: Placement | None) -> Ints:
    """The placement as fast as this one that sends least, then has the fewest sites, as far as it is found."""
    judge = AsFast(given, fastest)
    stays = kept(given, running)
    if given.flat.price > 0 and len(given.flat.running):
        # What a move costs is set by whoever set a price; a tie is no reason to pay it.
        stays = np.where(given.flat.running == fastest, fastest, stays)
    if how_many(given, running) <= TINY_MAX:
        return _of_all(judge, stays)
    return _step_by_step(judge, stays)


def _of_all(judge: AsFast, stays: Ints) -> Ints:
    choices = [
        [int(stay)] if stay >= 0 else np.flatnonzero(row).tolist()
        for stay, row in zip(stays, judge.given.flat.choices, strict=True)
    ]
    found = [np.array(homes, np.int64) for homes in product(*choices)]
    ranked = sorted(
        (round(judge.sending.whole(homes.tolist()), 9), judge.sites(homes), at) for at, homes in enumerate(found)
    )
    best: tuple[float, Ints] | None = None
    least = (0.0, 0)
    for sent, sites, at in ranked:
        if best is not None and (sent, sites) > least:
            break
        if judge.holds(found[at]):
            value = score(judge.given.flat, found[at].tolist())
            if best is None or value < best[0]:
                best, least = (value, found[at]), (sent, sites)
    return judge.fastest if best is None else best[1]


def _step_by_step(judge: AsFast, stays: Ints) -> Ints:
    best = judge.fastest.copy()
    for _ in range(ROUNDS):
        before = best.copy()
        for op in np.flatnonzero(stays < 0):
            for group in groups(judge, best, int(op), stays < 0):
                for site in _sites(judge, best, group):
                    tried = best.copy()
                    tried[list(group)] = site
                    if _less(judge, best, tried, group) and judge.holds(tried):
                        best = tried
                        break
        if (best == before).all():
            break
    return best


def _less(judge: AsFast, now: Ints, tried: Ints, group: tuple[int, ...]) -> bool:
    fixed = list(judge.sending.fixed)
    before = judge.sending.around(group, now.tolist() + fixed)
    after = judge.sending.around(group, tried.tolist() + fixed)
    if abs(after - before) > NEXT_TO_NOTHING * (1.0 + before):
        return after < before
    return judge.sites(tried) < judge.sites(now)


def groups(judge: AsFast, homes: Ints, op: int, movable: Bools) -> Iterator[tuple[int, ...]]:
    """An operator; it and what it hands to on its site; what it reads there; all that is joined to it there."""
    seen: set[tuple[int, ...]] = set()
    steps = judge.sending
    for ways_ in ((), (steps.readers,), (steps.inputs,), (steps.readers, steps.inputs)):
        found, todo = {op}, [op]
        while todo:
            at = todo.pop()
            for way in ways_:
                for other in way[at]:
                    if other < len(homes) and other not in found and homes[other] == homes[op] and movable[other]:
                        found.add(other)
                        todo.append(other)
        group = tuple(sorted(found))
        if group not in seen:
            seen.add(group)
            yield group


def _sites(judge: AsFast, homes: Ints, group: tuple[int, ...]) -> list[int]:
    """Where a group might go: everywhere where sites are few, else where its streams come from and go to."""
    given, here = judge.given, int(homes[group[0]])
    n = len(given.sites)
    if len(homes) * n <= PAIRS_MAX:
        return [site for site in range(n) if site != here]
    whole = [*homes.tolist(), *judge.sending.fixed]
    ends = {whole[node] for op in group for node in (*judge.sending.inputs[op], *judge.sending.readers[op])}
    return sorted(ends - {here})
