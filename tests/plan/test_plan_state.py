"""What a search keeps up move by move is what the obvious versions say of the whole."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from worlds import world

from weft.plan.flat import Problem, problem
from weft.plan.memory import homes_of, pack
from weft.plan.potential import potential
from weft.plan.projection import latency_total_ms, project, utilisation
from weft.plan.rates import ideal_rates
from weft.plan.state import fill, plain, shift, trial
from weft.plan.tiny import score

KINDS = [
    (objective, tangled, narrow, promised)
    for objective in ("potential", "latency")
    for tangled in (False, True)
    for narrow in (False, True)
    for promised in ((False, True) if objective == "latency" else (False,))
]


def close(one: float, two: float) -> bool:
    return abs(one - two) <= 1e-9 * max(1.0, abs(one), abs(two))


def random_homes(given: Problem, rng: Random) -> np.ndarray:
    return np.array([rng.randrange(len(given.sites)) for _ in given.operators], np.int64)


@pytest.mark.parametrize(("objective", "tangled", "narrow", "promised"), KINDS)
def test_moves_add_up_to_the_whole(objective: str, tangled: bool, narrow: bool, promised: bool) -> None:
    kind = {"objective": objective, "tangled": tangled, "narrow": narrow, "promised": promised, "sinks": tangled}
    for seed in range(6):
        rng = Random(seed)
        given = problem(world(seed, operators=12, **kind))
        assert (len(given.flat.promise_ms) > 0) == promised
        i, f, _ = pack(given.flat)
        total = fill(i, f, random_homes(given, rng))
        for _ in range(25):
            op, new = rng.randrange(len(given.operators)), rng.randrange(len(given.sites))
            old = int(homes_of(i)[op])
            said = trial(i, f, op, new, np.inf) if old != new and plain(i, op, old, new) else None
            change = shift(i, f, op, new)
            total += change
            assert said is None or close(said, change)
            assert close(total, score(given.flat, homes_of(i).tolist())), (seed, objective)


@pytest.mark.parametrize(("tangled", "narrow"), [(False, False), (False, True), (True, False), (True, True)])
def test_the_potential_of_a_search_is_the_published_one(tangled: bool, narrow: bool) -> None:
    for seed in range(8):
        whole = world(seed, operators=9, tangled=tangled, narrow=narrow)
        given = problem(whole)
        homes = random_homes(given, Random(seed))
        i, f, _ = pack(given.flat)
        assert close(fill(i, f, homes), potential(whole, given.placement(homes, "")).total)


@pytest.mark.parametrize("tangled", [False, True])
def test_the_latency_of_a_search_is_the_projected_one_where_nothing_is_overloaded(tangled: bool) -> None:
    seen = 0
    for seed in range(30):
        whole = world(seed, operators=4, objective="latency", tangled=tangled, sinks=tangled)
        given = problem(whole)
        placement = given.placement(random_homes(given, Random(seed)), "")
        busy = utilisation(whole, placement, ideal_rates(whole))
        if any(busy[site.name] > min(0.99, site.quota) for site in whole.sites):
            continue
        expected = latency_total_ms(whole, project(whole, placement))
        i, f, _ = pack(given.flat)
        assert expected is not None
        assert close(fill(i, f, given.homes(placement)), expected)
        seen += 1
    assert seen > 5


def test_an_operator_may_be_nowhere_for_a_while() -> None:
    given = problem(world(3, operators=8, tangled=True, objective="latency"))
    i, f, _ = pack(given.flat)
    total = fill(i, f, np.zeros(8, np.int64))
    away = shift(i, f, 5, -1)
    assert away < 0
    assert close(total, total + away + shift(i, f, 5, 0))


def test_overload_costs_more_the_more_there_is_of_it() -> None:
    given = problem(world(0, operators=20, sites=3, objective="latency"))
    i, f, _ = pack(given.flat)
    scores = [fill(i, f, np.array([0] * many + [1 + at % 2 for at in range(20 - many)])) for many in (20, 16, 12)]
    assert scores[0] > scores[1] > scores[2]
    assert np.isfinite(scores).all()
