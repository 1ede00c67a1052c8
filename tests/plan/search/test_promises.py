"""What was promised binds a search: the slowest way through a query stays within it where any placement can keep it."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Arrivals, Constant, Deployment, Link, Placement, Promise, Query, Sine
from weft.plan import PLANNERS, after_steps
from weft.plan.judging.projection import project
from weft.plan.search.problem import problem


def refined(whole: Deployment, steps: int = 20_000) -> Placement:
    return PLANNERS["refine"](whole, None, Random(0), after_steps(steps))


def near_and_far(promise_ms: float | None, arrivals: Arrivals | None = None, *others: Query) -> Deployment:
    streams = [source("s", "x", arrivals=arrivals or Constant(1000.0)), source("t", "y", 1.0)]
    asked = query(op("j", "s", "t", cost_ms=0.001), promise=Promise(latency_ms=promise_ms))
    links = (Link("x", "m", 30.0), Link("m", "y", 30.0))
    return deployment(["x", "m", "y"], streams, asked, *others, links=links)


@pytest.mark.parametrize(("promise_ms", "home"), [(None, "x"), (60.01, "x"), (59.9995, "m"), (20.0, "m")])
def test_a_promise_binds_the_slowest_way_however_few_records_take_it(promise_ms: float | None, home: str) -> None:
    # A thousand records a second are born on x and one on y: the mean is least on x, the slowest way on m.
    assert refined(near_and_far(promise_ms)).home("q.j") == home


def test_only_promises_that_some_placement_breaks_bind() -> None:
    asked = query(op("a", "s", cost_ms=0.01), op("b", "a", cost_ms=0.01), to="y")
    for promise_ms, bound in ((30.0, 1), (1_000.0, 0)):
        promised = dataclasses.replace(asked, promise=Promise(latency_ms=promise_ms))
        whole = deployment(["x", "y"], [source("s", "x")], promised)
        assert len(problem(whole).flat.promise_ms) == bound
        assert len(problem(whole, "potential").flat.promise_ms) == 0


@pytest.mark.parametrize("arrivals", [Constant(1000.0), Sine(1000.0, 0.5, 10.0)])
def test_where_sources_swing_promises_hold_too(arrivals: Arrivals) -> None:
    others = [query(op("o", "s", cost_ms=0.001), name=f"o{at}") for at in range(7)]
    whole = near_and_far(50.0, arrivals, *others)
    assert project(whole, refined(whole))["q"].admitted


def test_no_site_is_overloaded_to_keep_a_promise() -> None:
    bulk = query(op("b", "s", cost_ms=1.0, site="x"), name="bulk")
    rare = query(op("r", "t", cost_ms=0.001), name="rare", promise=Promise(latency_ms=40.0))
    streams = [source("s", "x", 990.0), source("t", "x", 40_000.0)]
    whole = deployment(["x", "y"], streams, bulk, rare, links=(Link("x", "y", 400.0),))
    found = refined(whole)
    assert found.home("rare.r") == "y"
    assert project(whole, found)["bulk"].latency_ms == pytest.approx(100.0)


def test_a_promise_may_break_just_below_a_full_site() -> None:
    bulk = query(op("b", "s", cost_ms=1.0, site="x"), name="bulk")
    heavy = query(op("h", "u", cost_ms=0.9, site="y"), name="heavy", weight=1e6)
    asked = query(op("r", "t", cost_ms=1.0), promise=Promise(latency_ms=1100.0))
    streams = [source("s", "x", 999.7), source("t", "x", 0.1), source("u", "y", 1000.0)]
    whole = deployment(["x", "y"], streams, bulk, heavy, asked)
    assert refined(whole).home("q.r") == "y"


def test_reasons_tell_overload_from_a_broken_promise_and_from_a_long_way() -> None:
    def said(promise_ms: float | None, cost_ms: float = 0.001) -> str:
        streams = [source("s", "x", 1.0), source("t", "m", 0.5)]
        asked = query(op("j", "s", "t", cost_ms=cost_ms), promise=Promise(latency_ms=promise_ms))
        bulk = query(op("b", "u", cost_ms=1.0, site="m"), name="bulk")
        links = (Link("x", "m", 90.0, oneway=True), Link("m", "x", 45.0, oneway=True))
        whole = deployment(["x", "m"], [*streams, source("u", "m", 900.0)], asked, bulk, links=links)
        return refined(whole).reasons["q.j"]

    assert said(None) == "least latency; on m it would be 45 ms more"
    assert said(60.0) == "least latency; on m a promise would be broken"
    assert said(None, 90.0) == "least latency; m would be overloaded"
