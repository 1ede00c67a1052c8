"""A query that reads a stream of another: the operator runs once, and everything counts from the sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.bodies.twin.twin_worlds import pair, source, step
from weft.bodies.twin import run
from weft.model import Constant, Cost, Deployment, MoveAt, Placement, Poisson, Promise, Query, Queue, Sink

CHANCE = Cost("exponential", (3.0,))
A, B = step("a", "s", cost=CHANCE, selectivity=0.6), step("b", "a", cost=CHANCE, selectivity=0.5)
C = step("c", "a", cost=1.0, queue=Queue(3))


def whole(*queries: Query, **more: Any) -> Deployment:
    sites, links = pair(20.0, 400.0)
    return Deployment(sites, (source("s", "a", Poisson(100.0)),), queries, links, **more)


def as_one(**more: Any) -> Deployment:
    return whole(Query("q", (A, B, C), (Sink("b", "console"), Sink("c", "console", site="a"))), **more)


def as_two(**more: Any) -> Deployment:
    reads = Query("r", (replace(C, from_=("q.a",)),), (Sink("c", "console", site="a"),), **more.pop("asked", {}))
    return whole(Query("q", (A, B), (Sink("b", "console"),)), reads, **more)


def rows(result: Any) -> list[tuple[Any, ...]]:
    counts = ("operator", "site", "instances", "arrived", "served", "dropped", "emitted", "waiting")
    return [tuple(row[key] for key in counts) for row in result.operator_rows]


@pytest.mark.parametrize("moves", [(), ("a", "c")])
def test_it_is_as_if_both_were_one_query(moves: tuple[str, ...]) -> None:
    def moved(owners: dict[str, str]) -> tuple[MoveAt, ...]:
        return tuple(MoveAt(3.0 + at, f"{owners[name]}.{name}", "b") for at, name in enumerate(moves))

    homes = {"a": "a", "b": "b", "c": "b" if not moves else "a"}
    one = run(
        as_one(scenario=moved({"a": "q", "c": "q"})), Placement({f"q.{name}": home for name, home in homes.items()}),
        seconds=10, seed=4,
    )  # fmt: skip
    two = run(
        as_two(scenario=moved({"a": "q", "c": "r"})),
        Placement({"q.a": homes["a"], "q.b": homes["b"], "r.c": homes["c"]}), seconds=10, seed=4,
    )  # fmt: skip
    assert rows(two) == rows(one)
    assert (two.sites, two.link_rows, two.events) == (one.sites, one.link_rows, one.events)
    paused = [[(move.operator, move.pause_ms) for move in found.moves] for found in (one, two)]
    assert paused[0] == paused[1]
    assert [name for name, _ in paused[0]] == list(moves)
    together = [two.queries[name]["records_out"] for name in ("q", "r")]
    assert sum(together) == one.queries["q"]["records_out"]
    assert two.queries["r"]["records_in"] == one.queries["q"]["records_in"] > 900


def test_queries_may_stand_in_any_order_in_the_file() -> None:
    # At different sites: which of two readers at one site is served first is as written.
    placement = Placement({"q.a": "a", "q.b": "b", "r.c": "a"})
    found = as_two()
    turned = replace(found, queries=found.queries[::-1])
    one, two = (run(world, placement, seconds=5, seed=2) for world in (found, turned))
    assert {row["operator"]: row["served"] for row in one.operator_rows} == {
        row["operator"]: row["served"] for row in two.operator_rows
    }
    assert one.queries == two.queries


def test_latency_and_loss_count_from_the_sources() -> None:
    slow, tight = step("a", "s", cost=9.0, queue=Queue(2)), step("c", "q.a", cost=1.0)
    promised = Query("r", (tight,), (Sink("c", "console"),), Promise(latency_ms=15.0, loss=0.0))
    sites, links = pair(20.0)
    burst = source("s", "a", Constant(200.0))
    world = Deployment(sites, (burst,), (promised, Query("q", (slow,), (Sink("a", "console"),))), links)
    found = run(world, Placement({"q.a": "a", "r.c": "a"}), seconds=5, seed=1)
    # Work of 9 ms behind up to two others, then 1 ms beside them; what is lost on the way is lost to both.
    assert found.queries["r"]["latency_ms"]["p50"] > 10.0
    assert found.queries["r"]["dropped"] == found.queries["q"]["dropped"] > 100
    assert found.queries["r"]["promise_kept"] is False
