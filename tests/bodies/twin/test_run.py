"""What a run tells: the contract's JSON, the same for the same seed, and plain words where something is amiss."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from tests.bodies.twin.twin_worlds import pair, placed, source, station, step
from weft.bodies.twin import CannotRun, run
from weft.model import (
    Constant,
    Cost,
    CrashAt,
    Deployment,
    JoinWindow,
    Link,
    MoveAt,
    OnOff,
    PartitionAt,
    Poisson,
    Promise,
    Query,
    Queue,
    RateAt,
    RestartAt,
    Sine,
    Sink,
    Site,
)
from weft.model.wishes import AddQuery, MoveTo, TakeOver
from weft.plan.judging.batch_costs import SHIPPED
from weft.protocol import parse_story_line

WORK = Cost("exponential", (1.0,))


def two_sites(*scenario: object, **more: object) -> Deployment:
    sites, links = pair(delay_ms=20.0)
    operators = (step("one", "s", cost=WORK), step("two", "one", cost=WORK, **more))
    query = Query("q", operators, (Sink("two", "console", site="a"),), Promise(latency_ms=50.0))
    return Deployment(sites, (source("s", "a", Poisson(100.0)),), (query,), links, scenario=scenario)  # type: ignore[arg-type]


HOMES = {"q__one": "a", "q__two": "a"}


def test_the_json_has_exactly_the_keys_of_the_contract() -> None:
    found = run(station(Poisson(100.0), WORK), seconds=5, seed=1).as_json()
    assert list(found) == ["queries", "sites", "moves", "events", "wall_s", "warnings", "changes"]
    keys = ["latency_ms", "records_in", "records_out", "dropped", "late", "filtered", "promise", "promise_kept"]
    assert list(found["queries"]["q"]) == keys
    assert list(found["queries"]["q"]["promise"]) == ["latency_ms", "loss", "availability"]
    assert list(found["queries"]["q"]["latency_ms"]) == ["mean", "p50", "p95", "p99", "max"]
    assert list(found["sites"]["a"]) == ["utilisation", "queue_max"]
    json.dumps(found, allow_nan=False)


def test_of_two_runs_with_one_seed_only_the_wall_time_differs() -> None:
    deployment = two_sites(MoveAt(1.0, "q.two", "b"), CrashAt(2.0, "b"), RestartAt(3.0, "b"))
    one, other = (run(deployment, placed(deployment, **HOMES), seconds=6, seed=9) for _ in range(2))
    assert {**one.as_json(), "wall_s": 0} == {**other.as_json(), "wall_s": 0}
    assert one.story == other.story
    third = run(deployment, placed(deployment, **HOMES), seconds=6, seed=10)
    assert third.queries != one.queries


def test_the_story_is_the_same_in_another_process_with_another_hash_seed() -> None:
    program = (
        "from weft.model import *; from weft.bodies.twin import run;"
        "q=Query('q',(Operator('o',('s',),sql='',cost_ms=Cost('normal',(1.0,0.3)),selectivity=0.7),),(Sink('o','console'),));"
        "d=Deployment((Site('a'),),(Source('s','a','rate',(),arrivals=OnOff(200.0)),),(q,));"
        "r=run(d,seconds=30,seed=3);print(r.queries,r.events)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_known_draws_stay_as_they_are_on_every_machine() -> None:
    found = run(station(Poisson(800.0), WORK), seconds=10, seed=1)
    assert found.queries["q"]["latency_ms"] == {
        "mean": 4.433656, "p50": 3.120789, "p95": 13.446992, "p99": 20.142891, "max": 27.889031
    }  # fmt: skip
    assert found.events == 31482


def test_a_move_pauses_for_20_ms_a_waiting_record_and_is_told() -> None:
    deployment = two_sites(MoveAt(1.0, "q.two", "b"))
    result = run(deployment, placed(deployment, **HOMES), seconds=5, seed=1)
    (move,) = result.moves
    assert (move.query, move.operator, move.from_, move.to, move.at_s) == ("q", "two", "a", "b", 1.0)
    assert move.pause_ms is not None
    assert move.pause_ms >= 20.0
    assert result.queries["q"]["records_out"] == pytest.approx(result.queries["q"]["records_in"], abs=30)
    assert {row["operator"]: row["site"] for row in result.operator_rows} == {"one": "a", "two": "b"}
    for line in result.story:
        parse_story_line(line)


def test_moves_are_made_in_the_order_of_time_in_whatever_order_the_file_has_them() -> None:
    moves = MoveAt(1.0, "q.two", "b"), MoveAt(2.0, "q.two", "a"), MoveAt(3.0, "q.two", "b")
    for scenario in (moves, moves[::-1]):
        deployment = two_sites(*scenario)
        result = run(deployment, placed(deployment, **HOMES), seconds=5, seed=1)
        assert [(move.at_s, move.to) for move in result.moves] == [(1.0, "b"), (2.0, "a"), (3.0, "b")]
        assert [(one["at_s"], one["state"]) for one in result.changes] == [(1.0, "done"), (2.0, "done"), (3.0, "done")]


def test_what_ran_at_a_lost_site_goes_on_where_it_is_taken_over() -> None:
    deployment = two_sites(CrashAt(1.0, "b"))
    homes = placed(deployment, q__one="a", q__two="b")
    wishes = ((2.0, TakeOver("b", {"q.two": "b"})), (3.0, TakeOver("b", {"q.two": "a"})))
    result = run(deployment, homes, seconds=20, seed=1, wishes=wishes)
    assert [one["why"] for one in result.changes] == ["q.two cannot be taken over at b: that site is gone", ""]
    assert [(move.operator, move.from_, move.to) for move in result.moves] == [("two", "b", "a")]
    found = result.queries["q"]
    assert found["records_out"] == pytest.approx(found["records_in"], abs=3)
    alone = run(deployment, homes, seconds=20, seed=1).queries["q"]
    assert alone["records_out"] < found["records_out"] / 2
    up, up_alone = (one["promise"]["availability"]["measured"] for one in (found, alone))
    assert up_alone == pytest.approx(1 / 20)
    assert 0.5 < up < 18 / 20, "it is up once what waited has come over, 20 ms a record"


def test_wishes_are_for_the_ideal_model_and_bring_no_queries() -> None:
    deployment = two_sites()
    more = AddQuery(deployment.queries, {})
    with pytest.raises(CannotRun, match="`add` in the scenario"):
        run(deployment, placed(deployment, **HOMES), seconds=1, wishes=((0.5, more),))
    away = MoveTo({"q.two": "b"})
    with pytest.raises(CannotRun, match="ideal model"):
        run(deployment, placed(deployment, **HOMES), seconds=1, wishes=((0.5, away),), costs=SHIPPED)


def test_state_moves_at_the_pace_of_the_link() -> None:
    deployment = two_sites(MoveAt(1.0, "q.two", "b"), state_kb=100.0)
    slow = Deployment(deployment.sites, deployment.sources, deployment.queries, (Link("a", "b", 20.0, 1000.0),),
                      scenario=deployment.scenario)  # fmt: skip
    (move,) = run(slow, placed(slow, **HOMES), seconds=5, seed=1).moves
    # The order to start takes 20 ms to the new site, then 100 kB at 1000 kbit/s and 20 ms.
    assert move.pause_ms == pytest.approx(20 + 20 + 819.2, abs=20)


def test_what_a_crash_interrupts_goes_on_after_the_restart_and_nothing_is_lost() -> None:
    deployment = two_sites(CrashAt(1.0, "a"), RestartAt(2.0, "a"))
    found = run(deployment, placed(deployment, **HOMES), seconds=20, seed=1).queries["q"]
    assert found["records_out"] == pytest.approx(found["records_in"], abs=3)
    assert found["latency_ms"]["max"] > 1000
    assert found["promise_kept"] is False


def test_a_partition_holds_records_back_until_it_ends() -> None:
    deployment = two_sites(PartitionAt(1.0, ("a", "b"), 0.5))
    found = run(deployment, placed(deployment, q__one="a", q__two="b"), seconds=5, seed=1).queries["q"]
    assert found["latency_ms"]["max"] == pytest.approx(500 + 20 + 20, abs=60)


def test_a_rate_in_the_scenario_multiplies_arrivals_from_then_on() -> None:
    deployment = two_sites(RateAt(5.0, {"s": 3.0}))
    found = run(deployment, placed(deployment, **HOMES), seconds=10, seed=1).queries["q"]
    assert found["records_in"] == pytest.approx(5 * 100 + 5 * 300, rel=0.05)


def test_capacity_may_change_over_time() -> None:
    slow = run(station(Constant(100.0), Cost("constant", (2.0,))), seconds=10, capacities=((5.0, "a", 0.5),))
    assert slow.sites["a"]["utilisation"] == pytest.approx((0.2 + 0.4) / 2, abs=0.001)


def test_a_warm_up_does_not_count() -> None:
    found = run(station(Constant(100.0), WORK), seconds=10, warmup_s=4)
    assert found.queries["q"]["records_in"] == pytest.approx(600, abs=1)


@pytest.mark.parametrize("arrivals", [OnOff(100.0), Sine(100.0)])
def test_the_mean_rate_is_kept_by_arrivals_that_swing(arrivals: object) -> None:
    found = run(station(arrivals, Cost("constant", (0.1,))), seconds=2400, seed=2)  # type: ignore[arg-type]
    assert found.queries["q"]["records_in"] / 2400 == pytest.approx(100.0, rel=0.02)


@pytest.mark.parametrize(("discipline", "kept"), [("fcfs", False), ("deadline", True), ("slack", True)])
def test_a_tight_promise_is_kept_by_disciplines_that_look_at_it(discipline: str, kept: bool) -> None:
    tight = Query("t", (step("o", "s", cost=WORK),), (Sink("o", "console"),), Promise(latency_ms=10.0))
    loose = Query("l", (step("o", "s", cost=WORK),), (Sink("o", "console"),), Promise(latency_ms=5000.0))
    deployment = Deployment((Site("a"),), (source("s", "a", Poisson(450.0)),), (tight, loose))
    found = run(deployment, placed(deployment, t__o="a", l__o="a"), seconds=60, seed=1, discipline=discipline)
    assert found.queries["t"]["promise_kept"] is kept
    assert found.queries["l"]["promise_kept"] is True


def test_latency_is_counted_from_what_let_a_window_close_or_from_what_is_in_it() -> None:
    window = step("w", "s", selectivity=0.1, window=JoinWindow(seconds=1.0))
    deployment = Deployment(
        (Site("a"),), (source("s", "a", Constant(10.0)),), (Query("q", (window,), (Sink("w", "console"),)),)
    )
    emitted = run(deployment, seconds=10).queries["q"]["latency_ms"]
    contributing = run(deployment, seconds=10, latency="contributing").queries["q"]["latency_ms"]
    assert emitted["max"] == 0.0
    assert contributing["max"] == pytest.approx(100.0)


def test_a_full_queue_that_blocks_loses_nothing() -> None:
    found = run(station(Poisson(900.0), WORK, Queue(2, "block")), seconds=20, seed=1).queries["q"]
    assert found["dropped"] == 0
    assert found["records_out"] == pytest.approx(found["records_in"], rel=0.02)


def test_an_overload_without_bound_ends_with_a_warning_and_the_results_so_far() -> None:
    result = run(station(Poisson(100_000.0), Cost("constant", (1.0,))), seconds=1000, records_max=50_000)
    assert any("overloaded" in warning for warning in result.warnings)
    assert any("records in flight" in warning for warning in result.warnings)
    assert result.seconds < 1.0
    assert result.queries["q"]["records_out"] > 0


def test_no_source_is_refused_and_no_capacity_is_warned_of() -> None:
    with pytest.raises(CannotRun, match="no source"):
        run(Deployment((Site("a"),), (), ()))
    result = run(station(Poisson(10.0), WORK, capacity=0.0), seconds=5)
    assert any("no capacity" in warning for warning in result.warnings)
    assert result.queries["q"]["records_out"] == 0


def test_frames_and_picture_can_be_had(tmp_path: Path) -> None:
    result = weft.twin.run(station(Poisson(100.0), WORK), seconds=5, seed=1, plot=str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").stat().st_size > 1000
    assert list(result.latency.columns) == ["query", "at_s", "latency_ms", "records"]
    assert list(result.utilisation.columns) == ["site", "at_s", "utilisation"]
    assert int(result.latency["records"].sum()) == result.queries["q"]["records_out"]
