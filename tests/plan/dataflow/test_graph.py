"""Names and order of streams, intervals, and the rates that cascade through them."""

from __future__ import annotations

from dataclasses import replace
from graphlib import CycleError

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Cost, JoinWindow, Poisson, Sink, Trace
from weft.plan.dataflow.graph import sink_name, sink_site, source_names, stream_of, topological
from weft.plan.dataflow.intervals import interval_ms
from weft.plan.dataflow.rates import ideal_rates


def test_operators_stand_after_what_they_read_and_else_as_written() -> None:
    assert topological(query(op("a", "s"), op("b", "a"), op("c", "s"), op("d", "b", "c"))) == ("a", "b", "c", "d")
    assert topological(query(op("d", "b", "c"), op("c", "s"), op("b", "a"), op("a", "s"))) == ("c", "a", "b", "d")


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(CycleError):
        topological(query(op("a", "b"), op("b", "a")))


def test_a_stream_is_named_by_what_made_it() -> None:
    asked = query(op("a", "s"))
    assert (stream_of(asked, "s"), stream_of(asked, "a")) == ("s", "q.a")


def test_the_sources_of_a_query_include_those_that_only_a_sink_reads() -> None:
    both = query(op("a", "s1"), sinks=(Sink("a", "csv", "o1"), Sink("s2", "csv", "o2")))
    whole = deployment(["x"], [source("s2", "x"), source("s3", "x"), source("s1", "x")], both)
    assert source_names(whole, both) == ("s2", "s1")


def test_a_sink_stands_as_written_else_with_what_it_shows() -> None:
    sinks = (Sink("a", "csv", "o1", site="z"), Sink("a", "csv", "o2"), Sink("s", "csv", "o3"))
    asked = query(op("a", "s"), sinks=sinks)
    whole = deployment(["x", "y", "z"], [source("s", "x")], asked)
    assert [sink_site(whole, asked, sink, {"a": "y"}) for sink in sinks] == ["z", "y", "x"]
    assert [sink_name(asked, sink) for sink in sinks] == ["q.1", "q.2", "q.3"]
    assert sink_name(query(op("a", "s")), query(op("a", "s")).sinks[0]) == "q"


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("10 minutes", 600_000), ("1 hour 30 minutes", 5_400_000), ("INTERVAL 2 SECONDS", 2000), ("1.5 seconds", 1500),
        ("1 week", 604_800_000), ("250 milliseconds", 250), ("0 seconds", 0), ("2000 microseconds", 2),
        (" 1   day ", 86_400_000),
    ],
)  # fmt: skip
def test_an_interval_is_so_many_milliseconds(text: str, ms: int) -> None:
    assert interval_ms(text) == ms


@pytest.mark.parametrize("text", ["", "interval", "10", "minutes", "-5 minutes", "1 month", "1e3 seconds", "5 s"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no interval"):
        interval_ms(text)


def test_rates_cascade_through_selectivities() -> None:
    asked = query(op("a", "s", selectivity=0.5), op("b", "a", "t", cost_ms=2.0, selectivity=0.1))
    rates = ideal_rates(deployment(["x"], [source("s", "x", 100.0), source("t", "x", 50.0)], asked))
    assert rates.per_s == {"s": 100.0, "t": 50.0, "q.a": 50.0, "q.b": pytest.approx(10.0)}
    assert rates.load_ms == {("q", "a"): 100.0, ("q", "b"): 200.0}
    assert rates.warnings == ()


def test_the_selectivity_of_a_windowed_join_is_over_the_product_of_its_rates() -> None:
    join = op("j", "s", "t", selectivity=0.01, window=JoinWindow(seconds=10))
    rates = ideal_rates(deployment(["x"], [source("s", "x", 100.0), source("t", "x", 50.0)], query(join)))
    assert rates.per_s["q.j"] == pytest.approx(0.01 * 100 * 50)
    assert rates.load_ms["q", "j"] == 150.0


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
    assert rates.load_ms["q", "a"] == 30.0
