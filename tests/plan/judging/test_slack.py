"""Slack of every operator along every way to a query's results."""

from __future__ import annotations

from weft.model import Constant, Cost, Deployment, Link, Operator, Placement, Query, Sink, Site, Source
from weft.plan.judging.projection import project
from weft.plan.judging.slack import ways
from weft.plan.network.paths import Paths


def diamond() -> Deployment:
    """Synergy fig. 3.2: A to B and to C, both to D."""
    operators = tuple(
        Operator(name, reads, sql="x", cost_ms=Cost("constant", (cost,)))
        for name, reads, cost in (("a", ("s",), 1.0), ("b", ("a",), 2.0), ("c", ("a",), 30.0), ("d", ("b", "c"), 4.0))
    )
    query = Query("q", operators, (Sink("d", "console", site="two"),))
    sources = (Source("s", "one", "rate", (), arrivals=Constant(1.0)),)
    return Deployment((Site("one"), Site("two")), sources, (query,), (Link("one", "two", 10.0),))


HOMES = {"q.a": "one", "q.b": "one", "q.c": "two", "q.d": "two"}
VISITS = {"q.a": 1.0, "q.b": 2.0, "q.c": 30.0, "q.d": 4.0}


def test_slack_is_what_is_left_on_the_slowest_way_through_an_operator() -> None:
    found = ways(diamond(), "q", HOMES, VISITS, Paths(diamond()))
    assert found.through_ms == {"q.a": 45.0, "q.b": 17.0, "q.c": 45.0, "q.d": 45.0}
    assert found.slack_ms(40.0) == {"q.a": -5.0, "q.b": 23.0, "q.c": -5.0, "q.d": -5.0}
    assert found.slack_ms(40.0, more_ms=-10.0)["q.c"] == 5.0


def test_the_slowest_way_is_that_of_the_projection() -> None:
    deployment = diamond()
    projected = project(deployment, Placement(HOMES))["q"].latency_ms
    busy = 0.033 + 0.001  # c and d at two: 30 and 4 (of two inputs each a record) ms a second
    assert projected is not None
    found = ways(deployment, "q", HOMES, VISITS, Paths(deployment))
    assert found.slowest_ms <= projected <= found.slowest_ms * (1 + 2 * busy) / (1 - busy)


def test_what_leads_to_no_sink_has_no_slack() -> None:
    deployment = diamond()
    aside = Operator("aside", ("a",), sql="x")
    more = Query("q", (*deployment.queries[0].operators, aside), deployment.queries[0].sinks)
    told = Deployment(deployment.sites, deployment.sources, (more,), deployment.links)
    found = ways(told, "q", {**HOMES, "q.aside": "one"}, {**VISITS, "q.aside": 1e6}, Paths(told))
    assert "q.aside" not in found.through_ms
    assert found.slowest_ms == 45.0
