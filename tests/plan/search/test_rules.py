"""No planner ever breaks a pin, a missing link or the tree rule; where nothing fits, the error says what and why."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, query, source
from tests.plan.policies.test_near import keeps, worlds
from weft.model import Deployment, Link, Site
from weft.plan import PLANNERS, NoPlacement, after_steps
from weft.plan.network.path_tables import ways
from weft.plan.search.narrowing import any_homes
from weft.plan.search.problem import problem
from weft.plan.search.repair import settle

POLICIES = sorted(PLANNERS)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25, deadline=None)
@given(whole=worlds(), seed=st.integers(0, 3))
def test_a_planner_keeps_every_rule_or_says_what_has_nowhere_to_go(policy: str, whole: Deployment, seed: int) -> None:
    try:
        found = PLANNERS[policy](whole, None, Random(seed), after_steps(5_000))
    except NoPlacement:
        with pytest.raises(NoPlacement, match=r"fits nowhere|sink from"):
            PLANNERS["near"](whole, None, Random(0), after_steps(1))
        return
    assert keeps(whole, {stream.partition(".")[2]: home for stream, home in found.homes.items()})


@settings(max_examples=60, deadline=None)
@given(whole=worlds())
def test_trying_all_finds_a_placement_exactly_where_near_does(whole: Deployment) -> None:
    laid = problem(whole)
    try:
        PLANNERS["near"](whole, None, Random(0), after_steps(1))
    except NoPlacement:
        assert any_homes(laid) is None
    else:
        if not laid.flat.free:
            assert any_homes(laid) is not None


def test_settling_moves_only_what_must_move() -> None:
    tree = [Site("a", parent="top"), Site("b", parent="top"), Site("top")]
    links = (Link("a", "top", 1), Link("b", "top", 1))
    asked = query(op("one", "s"), op("two", "one"), op("three", "two"))
    laid = problem(deployment(tree, [source("s", "a")], asked, links=links))
    assert settle(laid, laid.homes(laid.placement(settle(laid, laid.flat.home[:3] * 0), ""))).tolist() == [0, 0, 0]
    # Two cannot stand beside the other gateway, nor can three go back down.
    settled = settle(laid, laid.flat.home[:3] * 0 + [0, 1, 0]).tolist()
    assert settled[0] == 0
    assert 1 not in settled


def test_all_paths_at_once_are_those_found_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(4)
    names = [f"n{rng.randrange(1000):03}-{at}" for at in range(14)]
    for _ in range(15):
        links = tuple(
            Link(*rng.sample(names, 2), rng.choice([0, 1, 1, 2, 5]), oneway=rng.random() < 0.3) for _ in range(25)
        )
        whole = deployment(names, [source("s", names[0])], query(op("a", "s")), links=links)
        one_by_one = ways(whole)
        monkeypatch.setattr("weft.plan.network.path_tables.COMPILED_FROM", 1)
        at_once = ways(whole)
        monkeypatch.undo()
        assert (one_by_one.delay_ms == at_once.delay_ms).all()
        assert (one_by_one.before == at_once.before).all()
