"""Where event time comes from: it belongs to streams, not to places."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.plan_builders import deployment, op, query, source, windowed
from weft.model import Query, Watermark
from weft.plan.dataflow.event_times import Times, carried_times, passes_by_sql, time_column_of, watermark_of
from weft.spec import is_stateful

UNION = "SELECT * FROM a UNION ALL SELECT * FROM b"


def carried(asked: Query) -> Times:
    whole = deployment(["x"], [source("s", "x"), source("t", "x")], asked)
    return carried_times(whole, lambda query, operator: is_stateful(operator), passes_by_sql)


def test_event_time_is_measured_at_the_source_and_passed_on_by_what_leaves_it_alone() -> None:
    assert carried(query(op("a", "s"), windowed("w", "a"))).origins == {
        ("q.a", "ts"): "passed", ("s", "ts"): "measured",
    }  # fmt: skip


def test_a_stream_whose_time_was_changed_is_measured_anew() -> None:
    changed = op("a", "s", sql="SELECT ts + INTERVAL 1 DAY AS ts, k, v FROM s")
    named = replace(windowed("w", "a"), watermarks=(Watermark("10 seconds", "ts"),))
    assert carried(query(changed, named)).origins == {("q.a", "ts"): "measured"}
    assert carried(query(changed, windowed("w", "a"))).origins == {}, "the check wants the column named"


def test_through_a_union_every_input_carries_its_time() -> None:
    asked = query(op("a", "s"), op("b", "t"), op("u", "a", "b", sql=UNION), windowed("w", "u"))
    assert set(carried(asked).origins) == {("q.u", "ts"), ("q.a", "ts"), ("q.b", "ts"), ("s", "ts"), ("t", "ts")}


def test_out_of_a_window_time_is_its_watermark() -> None:
    second = op(
        "w2", "w", sql="SELECT window(w, '1 hour') w2, sum(v) v FROM w GROUP BY 1", watermarks=(Watermark("1 minute"),)
    )
    found = carried(query(windowed("w", "s"), second))
    assert found.origin("q.w", "w") == "watermark"
    assert found.columns("q.w") == ("w",)
    assert found.columns("s") == ("ts",)


def test_a_stream_that_no_watermark_depends_on_carries_nothing() -> None:
    assert carried(query(op("a", "s"))).origins == {}


def test_a_watermark_may_belong_to_one_input_only() -> None:
    only_s = (Watermark("5 seconds", "ts", "s"),)
    join = op("j", "s", "t", sql="SELECT s.k FROM s JOIN t ON s.k = t.k", watermarks=only_s)
    asked = query(join)
    whole = deployment(["x"], [source("s", "x"), source("t", "x")], asked)
    assert watermark_of(whole, asked, join, "s") == Watermark("5 seconds", "ts", "s")
    assert watermark_of(whole, asked, join, "t") is None


def test_event_time_that_is_not_named_is_the_windows_else_the_sources() -> None:
    asked = query(op("a", "s"), windowed("w", "a"), op("b", "w"))
    whole = deployment(["x"], [source("s", "x")], asked)
    assert [time_column_of(whole, asked, name) for name in ("s", "a", "w", "b")] == ["ts", "ts", "w", "w"]
