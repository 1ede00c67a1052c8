"""What nobody asks for of a stream need not travel; where it is not certain, all does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.plan_builders import deployment, op, placed, query, source, windowed
from weft.model import Control, Deployment, Late, Query, Share, Sink, dataflow
from weft.plan.changing.fragments import Fragment, cut
from weft.plan.dataflow.asked_columns import unasked
from weft.plan.dataflow.event_times import passes_by_sql
from weft.spec import is_stateful, names_asked

SHARED = Control(share=Share())


def of(*queries: Query, control: Control = SHARED) -> Deployment:
    return deployment(["x", "y"], [source("s", "x")], *queries, control=control)


def left(given: Deployment, stream: str) -> tuple[str, ...]:
    return unasked(given, stream, dataflow(given).readers(stream))


def test_names_that_no_reader_says_are_left_and_whole_records_hand_the_question_on() -> None:
    given = of(
        query(op("c", "s", sql="SELECT k, v FROM s"), op("e", "c", sql="SELECT k FROM c"), name="r"),
        query(op("a", "s", sql="SELECT * FROM s WHERE v > 0"), op("b", "a", sql="SELECT v FROM a"), name="q"),
    )
    assert left(given, "r.c") == ("v",)
    assert left(given, "q.a") == ("ts", "k")
    assert left(given, "s") == ("ts",)


def test_event_time_that_a_watermark_is_on_travels() -> None:
    given = of(query(op("a", "s", sql="SELECT * FROM s WHERE v > 0"), windowed("w", "a")))
    assert left(given, "s") == ()
    counted = replace(windowed("w", "a"), sql="SELECT window(ts, '1 minute') w, count(*) n FROM a GROUP BY 1")
    assert left(of(query(op("a", "s", sql="SELECT * FROM s WHERE v > 0"), counted)), "q.a") == ("k", "v")


@pytest.mark.parametrize(
    "sql",
    ["SELECT s.* FROM s", "SELECT *, 1 AS x FROM s", "SELECT DISTINCT * FROM s", "SELECT struct(*) AS j FROM s",
     "SELECT count(s.*) AS n FROM s", "SELECT * FROM s UNION ALL SELECT * FROM s", "SELECT * EXCEPT (k) FROM s",
     "SELECT a.k FROM s a NATURAL JOIN s b", "SELECT * FROM (SELECT k FROM s)"],
)  # fmt: skip
def test_of_what_may_ask_for_all_nothing_is_left(sql: str) -> None:
    assert names_asked(sql) is None


def test_functions_sinks_and_late_records_ask_for_all() -> None:
    called = replace(op("c", "s"), sql=None, call="rules:keep")
    shown = query(op("c", "s", sql="SELECT * FROM s WHERE v > 0"), op("e", "c", sql="SELECT k FROM c"),
                  sinks=(Sink("c", "parquet", "out/c"), Sink("e", "parquet", "out/e")))  # fmt: skip
    late = replace(windowed("w", "s"), late=Late("out/late", "parquet"))
    assert left(of(query(called)), "s") == ()
    assert left(of(shown), "q.c") == ("ts", "v")  # of the reader, not of the sink
    assert left(of(shown), "s") == ()
    assert left(of(query(late)), "s") == ()


def pieces(given: Deployment, **homes: str) -> dict[str, Fragment]:
    found = cut(given, placed(**homes), lambda query, operator: is_stateful(operator), passes_by_sql)
    return {one.id: one for one in found}


def test_only_what_others_read_counts_for_a_fragment_and_only_where_queries_share() -> None:
    own = op("near", "a", sql="SELECT ts, v FROM a")
    given = query(
        op("a", "s", sql="SELECT * FROM s WHERE v > 0"), own, op("far", "a", sql="SELECT k FROM a"),
        sinks=(Sink("near", "parquet", "out/n"), Sink("far", "parquet", "out/f")),
    )  # fmt: skip
    found = pieces(of(given), a="x", near="x", far="y")
    assert found["q.a"].empty == (("q.a", "ts"), ("q.a", "v"))
    assert pieces(of(given), a="y", near="y", far="y")["s"].empty == ()
    assert pieces(of(given, control=Control()), a="x", near="x", far="y")["q.a"].empty == ()


def test_a_relay_sends_what_is_read_through_it_and_a_sink_elsewhere_gets_all() -> None:
    given = of(
        query(op("near", "s"), name="n"),
        query(op("far", "s", sql="SELECT v FROM s"), name="f"),
        query(op("shown", "s"), name="t", to="y"),
    )
    homes = placed().put("n.near", "x", "").put("f.far", "y", "").put("t.shown", "x", "")
    found = {one.id: one for one in cut(given, homes, lambda _, one: is_stateful(one), passes_by_sql)}
    assert found["s"].empty == (("s", "ts"), ("s", "k"))
    assert found["t.shown"].outputs == ("t.shown",)
    assert found["t.shown"].empty == ()
