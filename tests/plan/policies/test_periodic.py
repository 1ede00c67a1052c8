"""Periodic placement: what should move of what runs, where it pays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.model import (
    Constant,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Order,
    Place,
    Placement,
    Query,
    Sink,
    Site,
    Source,
)
from weft.plan.dataflow.ordering import with_guards, with_ordering
from weft.plan.policies.periodic import Leave, periodic

OPERATORS = (("heavy", 8.0), ("light", 0.5), ("middle", 2.0))


def world(rate_per_s: float = 100.0, **place: object) -> Deployment:
    """Three operators beside each other on one source; the second site is twice as fast and 5 ms away."""
    operators = tuple(
        Operator(name, ("s",), sql="SELECT 1", cost_ms=Cost("constant", (cost,))) for name, cost in OPERATORS
    )
    sinks = tuple(Sink(name, "console") for name, _ in OPERATORS)
    return Deployment(
        (Site("a"), Site("b", 2.0)),
        (Source("s", "a", "rate", (), arrivals=Constant(rate_per_s)),),
        (Query("q", operators, sinks),),
        (Link("a", "b", 5.0),),
        Control(place=Place(**place)),  # type: ignore[arg-type]
    )


ALL_AT_A = Placement({f"q.{name}": "a" for name, _ in OPERATORS})


def test_an_overloaded_site_is_left_by_what_makes_room() -> None:
    found = periodic(world(), ALL_AT_A, price=10.0)
    assert found is not None
    assert found.value_before is None, "1.05 of work a second is asked of a"
    assert found.leaves[0] == Leave("q.heavy", "a", "b", found.leaves[0].why)
    assert found.leaves[0].why
    assert found.reason().endswith("instead of without bound")


def test_nothing_moves_that_does_not_gain_its_price() -> None:
    calm = world(50.0)
    free = periodic(calm, ALL_AT_A, price=0.0)
    assert free is not None
    assert free.value_before is not None
    assert free.value_after is not None
    gain = free.value_before - free.value_after
    assert gain > 0
    assert periodic(calm, ALL_AT_A, price=gain + 1.0) is None
    for policy in ("greedy", "dp", "near", "cuckoo"):
        dear = periodic(world(50.0, policy=policy), ALL_AT_A, price=gain + 1.0)
        assert dear is None, policy


def test_what_runs_best_already_stays() -> None:
    found = periodic(world(), ALL_AT_A, price=0.0)
    assert found is not None
    better = ALL_AT_A
    for leave in found.leaves:
        better = better.put(leave.stream, leave.after)
    assert periodic(world(), better, price=0.0) is None


@pytest.mark.parametrize("policy", ["refine", "greedy", "dp"])
def test_theta_keeps_the_lightest_where_they_run(policy: str) -> None:
    moved = {}
    for keep in (0.0, 0.34, 0.99):
        found = periodic(world(300.0, policy=policy, keep=keep, objective="potential"), ALL_AT_A, price=0.0)
        moved[keep] = set() if found is None else {leave.stream for leave in found.leaves}
    assert "q.light" not in moved[0.34]
    assert moved[0.99] <= {"q.heavy"}
    assert moved[0.0]


def test_ordering_goes_with_what_it_guards_and_is_not_named() -> None:
    plain = world()
    (query,) = plain.queries
    heavy = replace(query.operators[0], order=Order(time="t"))
    ordered = with_ordering(replace(plain, queries=(replace(query, operators=(heavy, *query.operators[1:])),)))
    running = with_guards(ordered, ALL_AT_A)
    assert "q.heavy_order" in running.homes
    found = periodic(ordered, running, price=0.0)
    assert found is not None
    assert "q.heavy" in {leave.stream for leave in found.leaves}
    assert "q.heavy_order" not in {leave.stream for leave in found.leaves}


def test_an_operator_whose_site_is_gone_moves_at_any_price() -> None:
    gone = Placement({f"q.{name}": "elsewhere" for name, _ in OPERATORS})
    found = periodic(world(10.0, hop_ms=0.0), gone, price=1e12)
    assert found is not None
    assert {leave.stream for leave in found.leaves} == {f"q.{name}" for name, _ in OPERATORS}
