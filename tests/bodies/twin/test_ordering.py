"""Ordering in the twin: holds are learned from delays, are paid in latency, and add up along a hierarchy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.bodies.twin import run
from weft.model import (
    Column,
    Constant,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Order,
    Placement,
    Promise,
    Query,
    Sink,
    Site,
    Source,
    Trace,
)

TIMED = (Column("ts", "TIMESTAMP"),)


def hierarchy(order: Order | None, second: Order | None = None) -> tuple[Deployment, Placement]:
    """A quick source and one that is 40 ms slower meet; the next level adds another that is quick."""
    sites = tuple(Site(name) for name in ("quick", "slow", "hall", "top"))
    links = (Link("quick", "hall", 5), Link("slow", "hall", 45), Link("hall", "top", 5), Link("quick", "top", 5))
    sources = (
        Source("near", "quick", "rate", TIMED, event_time="ts", arrivals=Constant(1000)),
        Source("far", "slow", "rate", TIMED, event_time="ts", arrivals=Constant(500)),
    )
    cost = Cost("constant", (0.01,))
    operators = (
        Operator("scenes", ("near", "far"), call="a:b", cost_ms=cost, selectivity=1, order=order),
        Operator("hits", ("scenes", "near"), call="a:b", cost_ms=cost, selectivity=1, order=second),
    )
    query = Query("q", operators, (Sink("hits", "parquet", "out"),))
    placement = Placement({"q.scenes": "hall", "q.hits": "top"})
    return Deployment(sites, sources, (query,), links), placement


def latency_ms(order: Order | None, second: Order | None = None) -> tuple[float, dict[str, dict[str, float]]]:
    deployment, placement = hierarchy(order, second)
    result = run(deployment, placement, seconds=10, seed=1)
    return result.queries["q"]["latency_ms"]["mean"], result.as_json().get("ordering", {})


def test_holds_are_learned_and_add_up_along_the_hierarchy() -> None:
    plain, nothing = latency_ms(None)
    once, first = latency_ms(Order())
    twice, both = latency_ms(Order(), Order())
    assert nothing == {}
    # Each input is ordered by itself before it is used, so the slow one alone is not out of order.
    assert set(first) == {"q.scenes_order_near", "q.scenes_order_far"}
    assert set(both) == {*first, "q.hits_order_scenes", "q.hits_order_near"}
    slow = both["q.hits_order_scenes"]
    assert 39 < slow["hold_ms"] < 65, "near and far meet 40 ms apart"
    assert slow["late"] < 0.02 * slow["records"]
    assert plain == pytest.approx(once, abs=1.0)
    assert twice > plain + 15


def test_control_orders_whatever_keeps_state() -> None:
    deployment, placement = hierarchy(None)
    stateful = [
        Operator(one.name, one.from_, call=one.call, cost_ms=one.cost_ms, selectivity=1, stateful=True)
        for one in deployment.queries[0].operators
    ]
    query = Query("q", tuple(stateful), deployment.queries[0].sinks)
    asked = Deployment(
        deployment.sites, deployment.sources, (query,), deployment.links, control=Control(order=Order(late_max=0.1))
    )
    result = run(asked, placement, seconds=10, seed=1)
    merged = result.ordering["q.hits_order_scenes"]
    assert merged["records"] > 10_000
    assert merged["late"] <= 0.12 * merged["records"]


@pytest.mark.parametrize("order", [Order(late_max=0.1), Order(lambda_=0.0)])
def test_what_comes_too_late_for_its_place_is_in_no_result_and_counts_as_dropped(order: Order) -> None:
    deployment, _ = hierarchy(None, order)
    ends = tuple(replace(one, arrivals=Trace((500.0, 0.0), 5.0)) for one in deployment.sources)
    # One way from each source, so that the sum can be told.
    queued = Operator("queued", ("far",), sql="SELECT * FROM far", cost_ms=Cost("exponential", (1.7,)), selectivity=1)
    meet = Operator("meet", ("near", "queued"), sql="SELECT * FROM near UNION ALL SELECT * FROM queued")
    hits = Operator("hits", ("meet",), sql="SELECT * FROM meet", order=replace(order, time="ts"))
    promised = replace(deployment.queries[0], operators=(queued, meet, hits), promise=Promise(loss=0.0))
    asked = replace(deployment, sources=ends, queries=(promised,))
    result = run(asked, Placement({"q.queued": "slow", "q.meet": "hall", "q.hits": "top"}), seconds=10, seed=1)
    found = result.queries["q"]
    assert found["late"] == found["dropped"] == result.ordering["q.hits_order"]["late"] > 0
    assert (found["filtered"], found["records_out"]) == (0, found["records_in"] - found["dropped"])
    lost = found["promise"]["loss"]
    assert (lost["measured"], lost["kept"]) == (pytest.approx(found["dropped"] / found["records_in"]), False)


def test_nothing_is_late_before_the_first_records_were_looked_at() -> None:
    deployment, placement = hierarchy(None, Order(late_max=0.1))
    few = tuple(replace(one, arrivals=Trace((8.0, 0.0), 5.0)) for one in deployment.sources)
    result = run(replace(deployment, sources=few), placement, seconds=2, seed=1)
    assert result.ordering["q.hits_order_scenes"]["records"] > 20
    assert result.queries["q"]["late"] == 0
