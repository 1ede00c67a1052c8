"""Which instances start or end, and where: from what their operator was asked for, and what sites leave them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.model import Cost, CrashAt, Deployment, JoinWindow, Operator, Query, Queue, Sink, Site, Source
from weft.protocol.scaling import Grow, ScaleRule, Shrink, Sizing

S = 1_000_000_000
RULE = ScaleRule(0.7, 0.8, 0.6)
SITES = ("a", "b", "c")


def world(*, heavy: Operator | None = None, scenario: tuple[CrashAt, ...] = ()) -> Deployment:
    light = Operator("light", ("s",), sql="SELECT 1", cost_ms=Cost("constant", (1.0,)))
    heavy = heavy or Operator("heavy", ("light",), sql="SELECT 1", cost_ms=Cost("constant", (4.0,)))
    query = Query("q", (light, heavy), (Sink("heavy", "console"),))
    sites = (Site("a"), Site("b", 2.0, quota=0.5), Site("c", 1.5))
    return Deployment(sites, (Source("s", "a", "rate", ()),), (query,), scenario=scenario)


def sizing(
    running: dict[str, list[str]] | None = None,
    deployment: Deployment | None = None,
    possible: tuple[str, ...] = SITES,
) -> Sizing:
    at = running or {"q.light": ["a"], "q.heavy": ["a"]}
    operators = ("q.light", "q.heavy")
    return Sizing(RULE, deployment or world(), operators, lambda name: at[name], lambda name: possible)


def test_a_site_leaves_what_others_do_not_take() -> None:
    made = sizing()
    made.saw("q.light", 100, S)
    made.saw("q.heavy", 100, S)
    assert made.load("q.heavy") == pytest.approx(0.4)
    assert made.left("a", "q.heavy") == pytest.approx(0.9)
    assert made.left("a") == pytest.approx(0.5)
    assert made.left("b") == pytest.approx(1.0)
    assert made.best_site("q.heavy") == "c"


def test_an_instance_goes_only_where_it_may_run() -> None:
    made = sizing(possible=("a", "b"))
    made.saw("q.heavy", 500, S)
    assert made.best_site("q.heavy") == "b"
    nowhere = sizing(possible=())
    nowhere.saw("q.heavy", 500, S)
    assert nowhere.decide("q.heavy", "a", keeper=True, chance=0.0) is None


def test_a_rate_is_of_the_time_since_the_last_look_and_survives_counts_that_begin_anew() -> None:
    made = sizing()
    made.saw("q.heavy", 100, S)
    made.saw("q.heavy", 400, 2 * S)
    assert made.load("q.heavy") == pytest.approx(1.2)
    made.saw("q.heavy", 50, 4 * S)
    assert made.load("q.heavy") == pytest.approx(0.1)


def test_an_overloaded_instance_makes_one_more_and_says_why() -> None:
    made = sizing()
    made.saw("q.heavy", 500, S)
    assert made.decide("q.heavy", "a", keeper=True, chance=0.0) == (Grow(1), "utilisation 2.00, above 0.8")


def test_an_idle_instance_ends_unless_it_is_the_keeper() -> None:
    made = sizing({"q.light": ["a"], "q.heavy": ["a", "c"]})
    made.saw("q.heavy", 10, S)
    assert made.decide("q.heavy", "c", keeper=False, chance=0.0) == (Shrink(), "utilisation 0.03, below 0.6")
    assert made.decide("q.heavy", "a", keeper=True, chance=0.0) is None


def test_where_no_site_has_room_nothing_grows() -> None:
    made = sizing({"q.light": ["a", "b", "c"], "q.heavy": ["a"]})
    made.saw("q.light", 2_000, S)
    made.saw("q.heavy", 500, S)
    assert made.decide("q.heavy", "a", keeper=True, chance=0.0) is None


HEAVY = Operator("heavy", ("light",), sql="SELECT 1")


@pytest.mark.parametrize(
    "heavy",
    [replace(HEAVY, state_kb=1.0), replace(HEAVY, site="b"), replace(HEAVY, window=JoinWindow(records=5))],
)
def test_what_keeps_state_or_has_a_site_does_not_share(heavy: Operator) -> None:
    assert not sizing(deployment=world(heavy=heavy)).may_share("q.heavy")
    assert sizing(deployment=world(heavy=heavy)).may_share("q.light")


def test_nothing_shares_before_a_queue_that_blocks_or_where_sites_crash() -> None:
    blocking = world(heavy=replace(HEAVY, queue=Queue(5, "block")))
    assert not sizing(deployment=blocking).may_share("q.light")
    assert sizing(deployment=blocking).may_share("q.heavy")
    assert not sizing(deployment=world(scenario=(CrashAt(1.0, "a"),))).may_share("q.light")
