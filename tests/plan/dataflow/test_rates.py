"""The rates that cascade through the streams of a deployment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Cost, JoinWindow, Poisson, Trace
from weft.plan.dataflow.rates import ideal_rates


def test_rates_cascade_through_selectivities() -> None:
    asked = query(op("a", "s", selectivity=0.5), op("b", "a", "t", cost_ms=2.0, selectivity=0.1))
    rates = ideal_rates(deployment(["x"], [source("s", "x", 100.0), source("t", "x", 50.0)], asked))
    assert rates.per_s == {"s": 100.0, "t": 50.0, "q.a": 50.0, "q.b": pytest.approx(10.0)}
    assert rates.load_ms == {"q.a": 100.0, "q.b": 200.0}
    assert rates.warnings == ()


def test_the_selectivity_of_a_windowed_join_is_over_the_product_of_its_rates() -> None:
    join = op("j", "s", "t", selectivity=0.01, window=JoinWindow(seconds=10))
    rates = ideal_rates(deployment(["x"], [source("s", "x", 100.0), source("t", "x", 50.0)], query(join)))
    assert rates.per_s["q.j"] == pytest.approx(0.01 * 100 * 50)
    assert rates.load_ms["q.j"] == 150.0


def test_a_trace_counts_by_its_mean_and_chance_by_its_rate() -> None:
    traced = source("s", "x", arrivals=Trace((10.0, 20.0, 60.0), 5.0))
    chance = source("t", "x", arrivals=Poisson(7.0))
    rates = ideal_rates(deployment(["x"], [traced, chance], query(op("a", "s", "t"))))
    assert (rates.per_s["s"], rates.per_s["t"]) == (30.0, 7.0)


def test_what_is_assumed_is_said() -> None:
    asked = query(op("a", "s", cost_ms=None, selectivity=None))
    rates = ideal_rates(deployment(["x"], [source("s", "x", None)], asked))
    assert [text.split(":")[0] for text in rates.warnings] == ["source s", "operator q.a"]
    assert "cost_ms 0.1 and selectivity 1.0" in rates.warnings[1]


def test_a_cost_counts_by_its_mean() -> None:
    uneven = replace(op("a", "s"), cost_ms=Cost("uniform", (1.0, 5.0)))
    rates = ideal_rates(deployment(["x"], [source("s", "x", 10.0)], query(uneven)))
    assert rates.load_ms["q.a"] == 30.0


def test_the_rate_of_a_stream_that_another_query_reads_is_counted_once() -> None:
    first = query(op("a", "s", selectivity=0.5), name="north")
    second = query(op("b", "north.a", cost_ms=2.0), name="south")
    # In any order in the file.
    for queries in ((first, second), (second, first)):
        rates = ideal_rates(deployment(["x"], [source("s", "x", 100.0)], *queries))
        assert rates.load_ms == {"north.a": 100.0, "south.b": 100.0}
        assert rates.per_s == {"s": 100.0, "north.a": 50.0, "south.b": 50.0}
