"""What the twin observes every period, what it advises on it, and that nothing else changes by either."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weft.bodies.twin import Result, run
from weft.model import (
    Advise,
    Column,
    Constant,
    Control,
    Cost,
    CrashAt,
    Deployment,
    Link,
    MoveAt,
    Operator,
    Placement,
    Poisson,
    Promise,
    Query,
    RateAt,
    RestartAt,
    Sink,
    Site,
    Source,
)
from weft.protocol import parse_story_line

AT_LEFT = Placement({f"q.{name}": "left" for name in ("one", "two", "three")})
ADVISED = Control(advise=Advise(period_s=10.0))


def world(control: Control | None = None, **changes: Any) -> Deployment:
    operators = (
        Operator("one", ("s",), sql="x", cost_ms=Cost("exponential", (4.0,)), selectivity=0.5),
        Operator("two", ("one",), sql="x", cost_ms=Cost("constant", (6.0,)), state_kb=10.0),
        Operator("three", ("two",), sql="x"),
    )
    query = Query("q", operators, (Sink("three", "console", site="top"),), Promise(latency_ms=50))
    made = Deployment(
        (Site("top", 2.0), Site("left"), Site("right")),
        (Source("s", "left", "rate", (Column("n"),), arrivals=Poisson(100.0)),),
        (query,),
        (Link("left", "top", 5.0), Link("right", "top", 5.0), Link("left", "right", 2.0)),
        control or Control(),
    )
    return replace(made, **changes)


def told(result: Result) -> dict[str, Any]:
    """All that a run tells but how long it took and what it advised."""
    found = result.as_json()
    return {key: value for key, value in found.items() if key not in ("wall_s", "advice", "changes", "decisions")}


def test_observing_changes_no_result_and_no_story() -> None:
    storm = (RateAt(10.0, {"s": 2.0}), MoveAt(15.0, "q.two", "top"), CrashAt(20.0, "right"), RestartAt(22.0, "right"))
    for deployment in (world(), world(scenario=storm)):
        plain = run(deployment, AT_LEFT, seconds=30, seed=1)
        seen = run(deployment, AT_LEFT, seconds=30, seed=1, observe_s=1.7)
        assert told(seen) == told(plain)
        assert seen.story == plain.story
        assert (seen.latency_rows, seen.operator_rows) == (plain.latency_rows, plain.operator_rows)
        assert len(seen.observed) == 17
        assert plain.observed == []


def test_what_is_observed_adds_up_to_what_came_out() -> None:
    result = run(world(scenario=(RateAt(10.0, {"s": 2.0}),)), AT_LEFT, seconds=30.0000001, seed=1, observe_s=5.0)
    periods = result.observed
    assert [one.at_s for one in periods] == [5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
    assert all(one.complete and one.period_s == 5.0 for one in periods)
    query = result.queries["q"]
    assert sum(one.queries["q"].records_in or 0 for one in periods) == query["records_in"]
    assert sum(one.queries["q"].records_out or 0 for one in periods) == query["records_out"]
    rates = [one.sources["s"].rate_per_s or 0.0 for one in periods]
    assert max(rates[:2]) < 130
    assert min(rates[2:]) > 160
    last = periods[-1]
    assert last.operators["q.one"].selectivity == pytest.approx(0.5, abs=0.05)
    assert (last.operators["q.one"].cost_ms, last.operators["q.three"].cost_ms) == (4.0, 0.1)
    assert last.operators["q.two"].state_kb == 10.0
    assert last.sites["left"].utilisation == pytest.approx(1.0)
    assert (last.operators["q.one"].backlog or 0) + (last.operators["q.two"].backlog or 0) > 100
    assert (periods[0].queries["q"].promise_kept, last.queries["q"].promise_kept) in ((True, False), (False, False))
    mean = sum((one.sites["left"].utilisation or 0.0) for one in periods) / len(periods)
    assert mean == pytest.approx(result.sites["left"]["utilisation"], abs=1e-6)


def test_counts_that_begin_anew_after_a_warm_up_do_not_disturb() -> None:
    result = run(world(), AT_LEFT, seconds=20, seed=1, warmup_s=7.0, observe_s=5.0)
    assert all(60 < (one.sources["s"].rate_per_s or 0.0) < 140 for one in result.observed)
    assert all((one.operators["q.one"].in_per_s or 0.0) < 140 for one in result.observed)


def test_a_lost_site_is_observed_as_down() -> None:
    scenario = (CrashAt(4.0, "right"), RestartAt(9.0, "right"))
    found = run(world(scenario=scenario), AT_LEFT, seconds=13, seed=1, observe_s=4.0).observed
    assert [one.sites["right"].up for one in found] == [False, False, True], "what is steered comes first at a moment"


def test_advice_says_what_should_move_and_why_and_moves_nothing() -> None:
    plain = run(world(), AT_LEFT, seconds=60, seed=1)
    result = run(world(ADVISED), AT_LEFT, seconds=60, seed=1)
    assert told(result) == told(plain)
    assert result.moves == []
    assert result.advice is not None
    first = result.advice[0]
    assert first["missing"] == []
    (advised,) = first["advised"]
    assert {move["operator"] for move in advised["moves"]} <= {"one", "two", "three"}
    assert all(move["from"] == "left" and move["to"] in ("top", "right") for move in advised["moves"])
    assert "instead of" in advised["reason"]
    assert result.as_json()["advice"] == result.advice
    assert "advice" not in plain.as_json()


def test_advice_stands_in_the_story_as_every_step_does() -> None:
    story = run(world(ADVISED), AT_LEFT, seconds=25, seed=1).story
    lines = [parse_story_line(line) for line in story]
    assert {line.site for line in lines} == {"controller"}
    assert [line.time_ms for line in lines if line.input.startswith("Observation")] == [10_000.0, 20_000.0]
    assert sum(effect.startswith("Advise(") for line in lines for effect in line.effects) == 2


def test_what_was_just_moved_rests_and_is_not_advised_upon() -> None:
    eager = Control(advise=Advise(period_s=10.0, price=0.0))
    moved = world(eager, scenario=(MoveAt(5.0, "q.two", "right"),))
    result = run(moved, AT_LEFT, seconds=45, seed=1)
    assert len(result.moves) == 1
    assert result.advice is not None
    (declined,) = result.advice[0]["declined"]
    assert "rests" in declined["why"]
    assert result.advice[0]["advised"] == []


def test_where_all_is_well_nothing_is_advised_and_looks_are_joined() -> None:
    calm = world(ADVISED, sources=(Source("s", "left", "rate", (Column("n"),), arrivals=Constant(1.0)),))
    advice = run(calm, seconds=100, seed=1).advice
    assert advice == [{"at_s": 10.0, "until_s": 90.0, "missing": [], "advised": [], "declined": []}]
