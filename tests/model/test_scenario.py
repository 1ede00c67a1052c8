"""What a scenario says of rates, which the twin and live take from one place."""

from __future__ import annotations

from weft.bodies.twin.setup.flows import steps_of
from weft.model import Constant, CrashAt, RateAt, Source, rate_changes

SCENARIO = (RateAt(20.0, {"s": 0.0}), CrashAt(1.0, "a"), RateAt(10.0, {"s": 4.0, "t": 2.0}), RateAt(10.0, {"s": 3.0}))


def test_changes_of_a_rate_are_told_in_the_order_of_time_and_of_one_moment_in_that_of_the_file() -> None:
    assert rate_changes(SCENARIO) == {"s": [(10.0, 4.0), (10.0, 3.0), (20.0, 0.0)], "t": [(10.0, 2.0)]}
    assert rate_changes(()) == {}


def test_the_twin_and_live_let_the_last_of_one_moment_count() -> None:
    from weft.spark.sources.arrivals import _scaled

    source = Source("s", "a", "rate", (), arrivals=Constant(5.0))
    twin = [(end, round(rate * 1e9, 6)) for end, rate in steps_of(source, SCENARIO, 30_000_000_000, seed=0)]
    assert [rate for _, rate in twin if rate != 20.0] == [5.0, 15.0, 0.0]
    live = list(_scaled(iter([(30.0, 5.0)]), rate_changes(SCENARIO)["s"]))
    assert live == [(10.0, 5.0), (10.0, 15.0), (10.0, 0.0)]
