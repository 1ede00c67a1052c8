"""What planners are given to believe: what was measured or is foreseen, and what is declared where neither is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.model import (
    Constant,
    Cost,
    Deployment,
    JoinWindow,
    Observed,
    ObservedOperator,
    ObservedSite,
    ObservedSource,
    OnOff,
    Operator,
    Poisson,
    Query,
    Sink,
    Site,
    Source,
)
from weft.plan import place
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.observing.believed import believed


def world() -> Deployment:
    operators = (
        Operator("one", ("s",), sql="SELECT 1", cost_ms=Cost("exponential", (3.0,)), selectivity=0.9),
        Operator("two", ("one", "t"), sql="SELECT 1", window=JoinWindow(records=5), selectivity=0.1),
        Operator("three", ("two",), sql="SELECT 1", cost_ms=Cost("constant", (1.0,))),
    )
    sources = (
        Source("s", "a", "rate", (), arrivals=Poisson(10.0)),
        Source("t", "a", "rate", (), arrivals=OnOff(20.0)),
        Source("u", "a", "csv", ()),
    )
    return Deployment((Site("a"), Site("b")), sources, (Query("q", operators, (Sink("three", "console"),)),))


SEEN = Observed(
    10.0, 5.0, True, (),
    {"s": ObservedSource(100.0), "t": ObservedSource(50.0)},
    {
        "q.one": ObservedOperator(100.0, 40.0, 0.5, 0.4),
        "q.two": ObservedOperator(90.0, 200.0, None, 2.0),
        "q.three": ObservedOperator(200.0, 200.0),
    },
    {"a": ObservedSite(0.5), "b": ObservedSite(0.0)},
)  # fmt: skip


def test_rates_costs_and_selectivities_are_those_measured() -> None:
    found = believed(world(), SEEN)
    one, _, three = found.queries[0].operators
    assert (one.cost_ms, one.selectivity) == (Cost("constant", (0.5,)), 0.4)
    assert three == world().queries[0].operators[2], "of which nothing was measured"
    assert found.source("s").arrivals == Poisson(100.0)
    assert found.source("t").arrivals == Constant(50.0), "one that swings stands where it is"
    assert found.source("u").arrivals is None


def test_planners_reckon_with_the_rates_that_were_measured() -> None:
    rates = ideal_rates(believed(world(), SEEN))
    assert rates.per_s["q.one"] == pytest.approx(40.0)
    assert rates.per_s["q.two"] == pytest.approx(2.0 * 90.0), "a join gives as many records as it gave"
    assert rates.load_ms["q.one"] == pytest.approx(50.0)


def test_a_forecast_wins_over_what_was_measured() -> None:
    found = believed(world(), SEEN, {"s": 300.0, "u": 7.0})
    assert found.source("s").arrivals == Poisson(300.0)
    assert found.source("u").arrivals == Constant(7.0)
    assert found.source("t").arrivals == Constant(50.0)


def test_nothing_is_put_on_a_site_that_is_down() -> None:
    down = replace(SEEN, sites={"a": ObservedSite(0.5), "b": ObservedSite(None, up=False)})
    found = believed(world(), down)
    assert found.site("b").capacity == 0.0
    assert set(place(found).homes.values()) == {"a"}


def test_what_was_not_measured_stays_as_declared() -> None:
    assert believed(world(), Observed(0.0, 5.0, False, ("all",))) == world()
