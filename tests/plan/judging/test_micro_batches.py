"""What micro-batches do to latencies, worked out by hand where all batches take the same time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.plan.plan_builders import deployment, op, placed, query, source, windowed
from weft.model import Link, Operator, Promise, Sink, Site, Watermark
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.batch_costs import SHIPPED, BatchCosts, costs_from_json
from weft.plan.judging.batch_pieces import BatchPiece, Intake, Outgoing, fragments_of, pieces_of
from weft.plan.judging.batch_projection import on_spark, project_on_spark, why_ideal
from weft.plan.judging.micro_batches import mean_of, quantile_of, simulate

# A second for a batch without state, two for one with, nothing for records, and no chance.
EVEN = replace(
    SHIPPED, stateless_ms=1000.0, stateful_ms=2000.0, output_ms=100.0, python_ms=50.0, record_ms=0.0, crowd=0.0,
    look_ms=0.0, spread=0.0, after_ms=0.0, text_ms=0.0, distinct_ms=None, join_ms=None,
)  # fmt: skip


def chain(sites: int, costs: BatchCosts = EVEN, **more: object) -> tuple[float, float]:
    """p50 and p95 of a chain of stateless operators, each on a site of its own."""
    names = [f"x{number}" for number in range(sites)]
    operators = [op(f"o{at}", "s" if at == 0 else f"o{at - 1}", cost_ms=0.0) for at in range(sites)]
    whole = deployment(names, [source("s", "x0")], query(*operators, **more))
    found = project_on_spark(whole, placed(**{f"o{at}": name for at, name in enumerate(names)}), costs)["q"]
    assert found.p50_ms is not None
    assert found.p95_ms is not None
    return found.p50_ms, found.p95_ms


def test_a_record_waits_for_the_batch_under_way_and_then_for_its_own() -> None:
    # It is born while a batch of a second runs, evenly: half of it on the mean, then a second of its own.
    p50, p95 = chain(1)
    assert p50 == pytest.approx(1500, rel=0.01)
    assert p95 == pytest.approx(1950, rel=0.01)


def test_what_comes_after_the_commit_keeps_the_fragment_and_not_the_record() -> None:
    # Batches take a second, of which 200 ms come after: half a second is waited on the mean, then 800 ms.
    p50, p95 = chain(1, replace(EVEN, after_ms=200.0))
    assert p50 == pytest.approx(1300, rel=0.01)
    assert p95 == pytest.approx(1750, rel=0.01)
    assert chain(1)[0] - p50 == pytest.approx(200, rel=0.05)


def test_every_fragment_on_the_way_adds_a_batch() -> None:
    assert chain(3)[0] - chain(2)[0] == pytest.approx(1000, rel=0.01)


def test_an_idle_fragment_sees_a_commit_a_look_later() -> None:
    late, soon = chain(2, replace(EVEN, look_ms=50.0, stateless_ms=500.0)), chain(2, replace(EVEN, stateless_ms=500.0))
    assert late[0] >= soon[0]


def test_batches_at_once_slow_each_other_down() -> None:
    piece = BatchPiece(
        "a", "x", (Intake("s", 100.0, True),), (), 1000.0, 0.0, False, (Outgoing(None, "q", 1.0),), 100.0
    )
    crowd = replace(EVEN, crowd=0.5)
    alone = simulate((piece,), crowd, Random(0))
    three = simulate(tuple(replace(piece, id=name) for name in "abc"), crowd, Random(0))
    assert alone.batch_ms["a"] == pytest.approx(1000)
    assert three.batch_ms["a"] == pytest.approx(2000, rel=0.01)
    assert three.under_way == pytest.approx(3, rel=0.01)
    assert quantile_of(three.spans["q"], 0.5) == pytest.approx(2 * quantile_of(alone.spans["q"], 0.5), rel=0.02)


def test_batches_for_which_there_is_room_do_not_slow_each_other_down() -> None:
    piece = BatchPiece(
        "a", "x", (Intake("s", 100.0, True),), (), 1000.0, 0.0, False, (Outgoing(None, "q", 1.0),), 100.0
    )
    roomy = replace(EVEN, crowd=0.5, room=2.0)

    def took(count: int) -> float:
        return simulate(tuple(replace(piece, id=name) for name in "abcd"[:count]), roomy, Random(0)).batch_ms["a"]

    assert [round(took(count), -1) for count in (1, 2, 3, 4)] == [1000, 1000, 1500, 2000]


def test_results_of_windows_come_with_the_batch_after() -> None:
    whole = deployment(["x"], [source("s", "x")], query(windowed("w", "s", cost_ms=0.0)))
    found = project_on_spark(whole, placed(w="x"), EVEN)["q"]
    # Two seconds a batch: born in one (1 on the mean), taken by the next (2), given by the one after (2).
    assert found.p50_ms == pytest.approx(5000, rel=0.02)


def test_what_drops_repeats_or_joins_gives_its_results_at_once_and_has_a_cost_of_its_own() -> None:
    kinds = replace(EVEN, distinct_ms=1400.0, join_ms=2600.0)
    late = (Watermark("1 second"),)
    once = op("o", "s", sql="SELECT DISTINCT ts, k FROM s", watermarks=late, cost_ms=0.0)
    joined = op(
        "o", "s", "t", sql="SELECT s.ts FROM s JOIN t ON s.k = t.k AND s.ts = t.ts", watermarks=late, cost_ms=0.0
    )

    def p50(operator: Operator, costs: BatchCosts) -> float:
        whole = deployment(["x"], [source("s", "x"), source("t", "x")], query(operator))
        return project_on_spark(whole, placed(o="x"), costs)["q"].p50_ms or 0.0

    assert p50(once, kinds) == pytest.approx(1.5 * 1400, rel=0.02)
    assert p50(joined, kinds) == pytest.approx(1.5 * 2600, rel=0.02)
    assert p50(once, EVEN) == pytest.approx(1.5 * 2000, rel=0.02), "as one that aggregates, where it was not measured"


def test_an_aggregate_that_says_nothing_gives_fewer_results_than_it_takes_records() -> None:
    quick = op("a", "s", cost_ms=0.0)
    ends = (Sink("a", "parquet", "out/a"), Sink("w", "parquet", "out/w"))

    def p50(**said: float | None) -> float:
        whole = deployment(["x", "y"], [source("s", "x")], query(quick, windowed("w", "a", **said), sinks=ends))
        return project_on_spark(whole, placed(a="x", w="y"), EVEN)["q"].p50_ms or 0.0

    assert p50(selectivity=None) == pytest.approx(p50(selectivity=0.1))
    assert p50(selectivity=None) < 0.8 * p50(selectivity=1.0), "half of them would be the window's, which come late"


def test_a_window_behind_a_hop_is_closed_without_new_records() -> None:
    """Spark runs a batch without records once the watermark has moved; nothing stays for ever."""
    quick = replace(EVEN, stateless_ms=4000.0, stateful_ms=500.0)
    asked = query(op("a", "s", cost_ms=0.0), windowed("w", "a", cost_ms=0.0))
    whole = deployment(["x", "y"], [source("s", "x")], asked)
    found = project_on_spark(whole, placed(a="x", w="y"), quick)["q"]
    assert found.p50_ms == pytest.approx(6000 + 500 + 500, rel=0.02)


def test_more_outputs_and_python_cost_more_and_corrections_scale() -> None:
    asked = query(op("a", "s"), op("b", "a", sql=None, call="m:f"), to="x")
    whole = deployment(["x", "y"], [source("s", "x")], asked)
    pieces = pieces_of(whole, fragments_of(whole, placed(a="x", b="x")), ideal_rates(whole), EVEN)
    assert [piece.fixed_ms for piece in pieces] == [1050.0]
    slow = replace(EVEN, factors={"*": 3.0})
    assert pieces_of(whole, fragments_of(whole, placed(a="x", b="x")), ideal_rates(whole), slow)[0].fixed_ms == 3150.0


def test_a_sink_of_text_costs_more() -> None:
    def fixed_ms(format_: str) -> float:
        whole = deployment(["x"], [source("s", "x")], query(op("a", "s"), sinks=(Sink("a", format_, "out"),)))
        (piece,) = pieces_of(whole, fragments_of(whole, placed(a="x")), ideal_rates(whole), replace(EVEN, text_ms=70.0))
        return piece.fixed_ms

    assert (fixed_ms("csv"), fixed_ms("json"), fixed_ms("parquet")) == (1070.0, 1070.0, 1000.0)


def test_what_was_measured_wins_over_what_is_shipped() -> None:
    from weft.plan.observing.batches import corrected

    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s"), op("b", "a")))
    placement = placed(a="x", b="y")
    known = corrected(EVEN, {"q.a": 3000.0}, lambda costs: on_spark(whole, placement, costs).simulated.batch_ms)
    took = on_spark(whole, placement, known).simulated.batch_ms
    assert took["q.a"] == pytest.approx(3000, rel=0.05)
    assert took["q.b"] == pytest.approx(3000, rel=0.05)


def test_emulated_links_take_their_time() -> None:
    asked, ends = query(op("a", "s", cost_ms=0.0), op("b", "a", cost_ms=0.0)), [Site("x"), Site("y")]

    def p50(emulate: bool) -> float:
        links = (Link("x", "y", 400.0, emulate=emulate),)
        quick = replace(EVEN, stateless_ms=300.0)
        found = project_on_spark(deployment(ends, [source("s", "x")], asked, links=links), placed(a="x", b="y"), quick)
        return found["q"].p50_ms or 0.0

    assert p50(emulate=True) - p50(emulate=False) == pytest.approx(400, abs=300)
    assert p50(emulate=True) > p50(emulate=False)


def test_a_promise_is_held_against_its_quantile_with_hops_and_batches() -> None:
    def asked(latency_ms: float, quantile: float) -> bool:
        promise = Promise(latency_ms=latency_ms, quantile=quantile)
        whole = deployment(["x"], [source("s", "x")], query(op("a", "s", cost_ms=0.0), promise=promise))
        return project_on_spark(whole, placed(a="x"), EVEN)["q"].admitted

    assert asked(1600, 0.5)
    assert not asked(1600, 0.95)
    assert asked(2000, 0.95)


def test_too_many_records_are_without_bound() -> None:
    whole = deployment(["x"], [source("s", "x", 2000.0)], query(op("a", "s", cost_ms=1.0)))
    found = project_on_spark(whole, placed(a="x"), EVEN)["q"]
    assert (found.latency_ms, found.p50_ms) == (None, None)
    assert "faster than this machine" in found.reason


def test_a_source_without_arrivals_still_has_a_latency() -> None:
    whole = deployment(["x"], [source("s", "x", None)], query(op("a", "s")))
    assert project_on_spark(whole, placed(a="x"), EVEN)["q"].p50_ms is not None


def test_costs_are_kept_as_json() -> None:
    import json

    assert costs_from_json(json.dumps(SHIPPED.as_json())) == SHIPPED
    with pytest.raises(ValueError, match="stateless_ms"):
        costs_from_json("{}")


def test_what_is_only_of_the_twin_is_asked_of_the_ideal_model() -> None:
    whole = deployment(["x"], [source("s", "x")], query(op("a", "s")))
    assert why_ideal(whole) is None
    from weft.model import Balance

    assert "balance" in (why_ideal(replace(whole, control=replace(whole.control, balance=Balance()))) or "")


def test_spans_are_even() -> None:
    spans = [(0.0, 10.0, 1.0), (10.0, 20.0, 3.0)]
    assert mean_of(spans) == pytest.approx((5 + 3 * 15) / 4)
    assert quantile_of(spans, 0.25) == pytest.approx(10.0)
    assert quantile_of(spans, 1.0) == pytest.approx(20.0)
