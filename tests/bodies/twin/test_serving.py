"""How sites serve: in micro-batches as Spark does, dropping late records where promised, by several instances."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bodies.twin.twin_worlds import pair, placed, source, station, step
from weft.bodies.twin import CannotRun, run
from weft.model import (
    Batch,
    Constant,
    Control,
    Cost,
    Deployment,
    Poisson,
    Promise,
    Query,
    Queue,
    Serve,
    Sink,
    Site,
)


def batched(batch: Batch, *operators: object, capacity: float = 1.0) -> Deployment:
    query = Query("q", operators, (Sink(operators[-1].name, "console"),))  # type: ignore[arg-type,attr-defined]
    return Deployment((Site("a", capacity=capacity, batch=batch),), (source("s", "a", Constant(1000.0)),), (query,))


def test_a_record_waits_for_its_batch_and_leaves_with_it() -> None:
    deployment = batched(Batch(100.0, 20.0), step("o", "s", cost=0.1))
    result = run(deployment, placed(deployment, q__o="a"), seconds=20)
    found = result.queries["q"]["latency_ms"]
    # A batch begins every 100 ms with 100 records and takes 20 + 100 x 0.1 ms; a record has waited for 49.5 ms.
    assert found["mean"] == pytest.approx(49.5 + 30, abs=0.5)
    assert found["max"] == pytest.approx(99 + 30, abs=0.5)
    assert result.sites["a"]["utilisation"] == pytest.approx(0.3, abs=0.005)


def test_operators_of_one_site_share_a_batch() -> None:
    one = batched(Batch(100.0, 20.0), step("o", "s", cost=0.2))
    two = batched(Batch(100.0, 20.0), step("o", "s", cost=0.1), step("p", "o", cost=0.1))
    means = [
        run(deployment, placed(deployment, q__o="a", q__p="a"), seconds=20).queries["q"]["latency_ms"]["mean"]
        for deployment in (one, two)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.001)


def test_a_batch_that_takes_longer_than_the_interval_delays_the_next_and_no_more() -> None:
    deployment = batched(Batch(100.0, 60.0), step("o", "s", cost=0.8))
    found = run(deployment, placed(deployment, q__o="a"), seconds=300)
    # A batch of n records takes 60 + 0.8 n ms, and as many come meanwhile: n settles at 60 / (1 - 0.8).
    assert found.queries["q"]["latency_ms"]["max"] == pytest.approx(2 * 300, rel=0.02)
    assert found.sites["a"]["utilisation"] == pytest.approx(1.0, abs=0.01)


def test_a_faster_site_has_faster_batches() -> None:
    deployment = batched(Batch(100.0, 20.0), step("o", "s", cost=0.1), capacity=2.0)
    found = run(deployment, placed(deployment, q__o="a"), seconds=20).queries["q"]["latency_ms"]
    assert found["mean"] == pytest.approx(49.5 + 15, abs=0.5)


def late(loss: float | None, drop_late: bool) -> Deployment:
    query = Query(
        "q", (step("o", "s", cost=Cost("exponential", (1.0,))),), (Sink("o", "console"),),
        Promise(latency_ms=5.0, loss=loss),
    )  # fmt: skip
    control = Control(serve=Serve(drop_late=drop_late))
    return Deployment((Site("a"),), (source("s", "a", Poisson(950.0)),), (query,), control=control)


def test_late_records_are_dropped_only_as_far_as_the_promise_allows() -> None:
    kept = run(late(0.1, False), seconds=60, seed=1).queries["q"]
    some = run(late(0.05, True), seconds=60, seed=1).queries["q"]
    more = run(late(0.5, True), seconds=60, seed=1).queries["q"]
    none = run(late(None, True), seconds=60, seed=1).queries["q"]
    assert kept["dropped"] == none["dropped"] == 0
    assert 0.04 < some["dropped"] / some["records_in"] <= 0.05
    assert some["dropped"] < more["dropped"] < 0.5 * more["records_in"]
    assert more["latency_ms"]["p95"] < some["latency_ms"]["p95"] < kept["latency_ms"]["p95"]


def test_a_late_record_is_dropped_only_where_every_query_that_would_lose_it_allows_it() -> None:
    alone = late(0.5, True)
    after, promise = step("p", "q.o", cost=0.01), Promise(latency_ms=50.0, loss=0.0)
    reader = Query("r", (after,), (Sink("p", "console"),), promise)
    strict = replace(alone, queries=(*alone.queries, reader))
    lenient = replace(alone, queries=(*alone.queries, replace(reader, promise=replace(promise, loss=0.02))))
    assert run(alone, seconds=20, seed=1).queries["q"]["dropped"] > 100
    assert run(strict, seconds=20, seed=1).queries["q"]["dropped"] == 0
    found = run(lenient, seconds=20, seed=1).queries
    assert 0 < found["r"]["dropped"] <= 0.02 * found["r"]["records_in"]
    assert found["q"]["dropped"] <= found["r"]["dropped"]


def test_a_discipline_may_be_a_function_of_promise_and_time_left() -> None:
    deployment = late(0.1, False)
    fifo = run(deployment, seconds=10, seed=1).queries
    assert run(deployment, seconds=10, seed=1, discipline=lambda promised_ns, left_ns: 0).queries == fifo
    with pytest.raises(CannotRun, match="discipline"):
        run(deployment, seconds=1, discipline="lifo")


def test_instances_share_an_operators_records() -> None:
    sites, links = pair(delay_ms=5.0)
    query = Query("q", (step("o", "s", cost=Cost("constant", (1.5,))),), (Sink("o", "console", site="a"),))
    deployment = Deployment(sites, (source("s", "a", Constant(1000.0)),), (query,), links)
    alone = run(deployment, placed(deployment, q__o="a"), seconds=10)
    shared = run(deployment, placed(deployment, q__o="a"), seconds=10, instances=((0.0, "start", "q.o", "b"),))
    assert alone.sites["a"]["queue_max"] > 3000
    assert {name: one["utilisation"] for name, one in shared.sites.items()} == pytest.approx(
        {"a": 0.75, "b": 0.75}, abs=0.002
    )
    assert shared.queries["q"]["latency_ms"]["max"] == pytest.approx(5 + 1.5 + 5)
    assert shared.operator_rows[0]["instances"] == 2


def test_an_instance_that_stops_hands_on_what_waits_for_it_and_nothing_is_lost() -> None:
    sites, links = pair(delay_ms=5.0)
    query = Query("q", (step("o", "s", cost=Cost("constant", (1.5,)), state_kb=10.0),), (Sink("o", "console"),))
    deployment = Deployment(sites, (source("s", "a", Constant(600.0)),), (query,), links)
    come_and_go = ((1.0, "start", "q.o", "b"), (5.0, "stop", "q.o", "b"), (6.0, "stop", "q.o", "b"))
    result = run(deployment, placed(deployment, q__o="a"), seconds=10, instances=come_and_go)  # type: ignore[arg-type]
    found = result.queries["q"]
    assert found["records_out"] == pytest.approx(found["records_in"], abs=3)
    assert result.operator_rows[0]["instances"] == 1
    assert any("no further instance" in warning for warning in result.warnings)
    with pytest.raises(CannotRun, match="no operator"):
        run(deployment, placed(deployment, q__o="a"), seconds=1, instances=((0.0, "start", "q.x", "b"),))


def test_what_is_served_ahead_is_what_is_served_one_event_after_another() -> None:
    deployment = station(Poisson(900.0), Cost("exponential", (1.0,)), Queue(20))
    ahead = run(deployment, seconds=50, seed=4)
    # A change of capacity that changes nothing makes the run interruptible.
    stepped = run(deployment, seconds=50, seed=4, capacities=((25.0, "a", 1.0),))
    assert {**ahead.as_json(), "wall_s": 0} == {**stepped.as_json(), "wall_s": 0}
    assert ahead.operator_rows == stepped.operator_rows
    assert ahead.site_rows[0]["records_mean"] == pytest.approx(stepped.site_rows[0]["records_mean"])
