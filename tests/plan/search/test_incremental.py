"""What a search keeps up move by move is what the obvious versions say of the whole."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.plan.plan_builders import deployment, op, query, source
from tests.plan.worlds import world
from weft.model import Control, Place, Query, Trace
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.potential import potential
from weft.plan.judging.projection import latency_total_ms, project, utilisation
from weft.plan.search.brute_force import score
from weft.plan.search.incremental import exchange, fill, shift, trade
from weft.plan.search.move_costs import plain, trial, trial_exchange
from weft.plan.search.packed import homes_of, pack
from weft.plan.search.problem import Problem, problem

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


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(("objective", "tangled", "narrow", "promised"), KINDS)
def test_moves_add_up_to_the_whole(objective: str, tangled: bool, narrow: bool, promised: bool, between: bool) -> None:
    kind = {"objective": objective, "tangled": tangled, "narrow": narrow, "promised": promised, "sinks": tangled}
    kind["between"] = between
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


@pytest.mark.parametrize(("objective", "tangled", "narrow", "promised"), KINDS)
def test_exchanges_add_up_to_the_whole(objective: str, tangled: bool, narrow: bool, promised: bool) -> None:
    kind = {"objective": objective, "tangled": tangled, "narrow": narrow, "promised": promised, "sinks": tangled}
    judged = refused = 0
    for seed in range(6):
        rng = Random(seed)
        given = problem(world(seed, operators=12, **kind))
        i, f, _ = pack(given.flat)
        total = fill(i, f, random_homes(given, rng))
        for _ in range(20):
            at = homes_of(i)
            here, there = rng.sample(range(len(given.sites)), 2)
            ones, others = np.flatnonzero(at == here), np.flatnonzero(at == there)
            if not len(ones) or not len(others):
                continue
            if rng.random() < 0.5:
                one, two = int(ones[0]), int(others[0])
                if plain(i, one, here, there) and plain(i, two, there, here):
                    said = trial_exchange(i, f, one, two, np.inf)
                    assert close(total + said, score(given.flat, exchanged(at, [one], [two], there).tolist()))
                    judged += 1
                total += exchange(i, f, one, two)
                assert (homes_of(i) == exchanged(at, [one], [two], there)).all()
            else:
                size, count = rng.randint(1, len(ones)), rng.randint(0, len(others))
                after = exchanged(at, ones[:size].tolist(), others[:count].tolist(), there)
                expected = score(given.flat, after.tolist()) - total
                most = expected + rng.choice([-40.0, 1.0])  # correlation is worth 24 at most
                change = trade(i, f, ones, size, there, others, count, most)
                if change == np.inf:
                    assert expected > most
                    assert (homes_of(i) == at).all()
                    refused += 1
                else:
                    assert (homes_of(i) == after).all()
                    total += change
            assert close(total, score(given.flat, homes_of(i).tolist()))
    assert judged > 10 or narrow or promised
    assert refused > 5 or promised


def exchanged(homes: np.ndarray, ones: list[int], others: list[int], there: int) -> np.ndarray:
    after = homes.copy()
    after[others] = homes[ones[0]]
    after[ones] = there
    return after


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(("tangled", "narrow"), [(False, False), (False, True), (True, False), (True, True)])
def test_the_potential_of_a_search_is_the_published_one(tangled: bool, narrow: bool, between: bool) -> None:
    for seed in range(8):
        whole = world(seed, operators=9, tangled=tangled, narrow=narrow, between=between)
        given = problem(whole)
        homes = random_homes(given, Random(seed))
        i, f, _ = pack(given.flat)
        assert close(fill(i, f, homes), potential(whole, given.placement(homes, "")).total)


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("tangled", [False, True])
def test_the_latency_of_a_search_is_the_projected_one_where_nothing_is_overloaded(tangled: bool, between: bool) -> None:
    seen = 0
    for seed in range(30):
        whole = world(seed, operators=4, objective="latency", tangled=tangled, sinks=tangled, between=between)
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


def test_queries_that_share_operators_are_held_to_their_promises_together() -> None:
    kind = {"operators": 12, "objective": "latency", "promised": True, "between": True}
    promised = [problem(world(seed, **kind)) for seed in range(6)]
    sizes = [np.diff(given.flat.group_at).tolist() for given in promised]
    assert any(max(size) > 1 for size in sizes if size)
    assert all(sum(size) == len(given.flat.promise_ms) for size, given in zip(sizes, promised, strict=True))


def test_what_has_left_a_site_leaves_no_noise_to_correlate_with() -> None:
    def asks(name: str, stream: str, cost_ms: float) -> Query:
        return query(op("o", stream, cost_ms=cost_ms), name=name)

    traces = (Trace((1.0, 7.0, 3.0, 11.0), 5.0), Trace((5.0, 2.0, 9.0, 4.0), 5.0), None)
    streams = [source(name, "x", None, arrivals=one) for name, one in zip(("s", "t", "silent"), traces, strict=True)]
    queries = asks("a", "s", 0.1), asks("b", "t", 0.7), asks("z", "silent", 1.0)
    whole = deployment(["x", "y"], streams, *queries, control=Control(Place(objective="potential")))
    given = problem(whole)
    i, f, _ = pack(given.flat)
    total = fill(i, f, np.array([0, 1, 0]))
    total += shift(i, f, 1, 0)
    total += shift(i, f, 1, 1)
    assert close(total, score(given.flat, [0, 1, 0]))


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
