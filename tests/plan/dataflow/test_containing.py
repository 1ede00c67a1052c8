"""What is all among another's records is made of those, and gives the same; all that is not certain is left alone."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Control, Deployment, Query, Share, Watermark, dataflow
from weft.plan.dataflow.sharing import as_written, made_for_others, resumed, with_sharing

CONTAIN = Control(share=Share(contain=True))


def two(*queries: Query, **more: Any) -> Deployment:
    return deployment(["x", "y"], [source("s", "x")], *queries, control=more.pop("control", CONTAIN), **more)


def one(name: str, sql: str, **more: Any) -> Query:
    return query(op("o", "s", sql=sql, **more), name=name)


def reads(first: str, second: str, **more: Any) -> tuple[str, ...]:
    """What the second of two queries reads."""
    made = with_sharing(two(one("q", first), one("r", second, **more)))
    return dataflow(made).node("r.o").inputs


CONTAINED = [
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v > 6"),
    ("SELECT * FROM s WHERE v >= 5", "SELECT * FROM s WHERE v > 5"),
    ("SELECT * FROM s WHERE v >= 5", "SELECT * FROM s WHERE 5 <= v AND k = 1"),
    ("SELECT * FROM s WHERE v < 5", "SELECT k FROM s WHERE v = 4"),
    ("SELECT * FROM s WHERE v <> 5", "SELECT * FROM s WHERE v <> 5 AND k > 0"),
    ("SELECT * FROM s WHERE v > 5 OR k = 2", "SELECT v FROM s WHERE k = 2"),
    ("SELECT * FROM s WHERE v > 5 OR k < 2", "SELECT v FROM s WHERE v >= 7"),
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v > 6.5"),
    ("SELECT * FROM s WHERE k IN ('a', 'b', 'c')", "SELECT * FROM s WHERE k IN ('c', 'a')"),
    ("SELECT * FROM s WHERE v <> 5", "SELECT * FROM s WHERE v > 5"),
    ("SELECT * FROM s WHERE v IS NOT NULL", "SELECT k FROM s WHERE v = 1"),
    ("SELECT * FROM s WHERE ts >= TIMESTAMP '2026-01-31'", "SELECT * FROM s WHERE ts >= '2026-02-01 00:00'"),
    ("SELECT * FROM s WHERE v > 1", "SELECT * FROM s WHERE (v > 2 AND k = 'a') OR v > 5"),
    ("SELECT k, v FROM s", "SELECT k FROM s"),
    ("SELECT k, v FROM s WHERE v > 0", "SELECT v + 1 AS w FROM s WHERE v > 3"),
    ("SELECT k, date_trunc('hour', ts) AS v FROM s", "SELECT k FROM s"),
    ("SELECT k, v, v + k AS both FROM s WHERE k > 0", "SELECT k + v AS sum FROM s WHERE k > 1"),
]
NOT_CONTAINED = [
    ("SELECT * FROM s WHERE v > 6", "SELECT * FROM s WHERE v > 5"),
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v >= 5"),
    ("SELECT * FROM s WHERE v < 5", "SELECT * FROM s WHERE v > 5"),
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE k > 6"),
    ("SELECT * FROM s WHERE v > 6.5", "SELECT * FROM s WHERE v > 6"),
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v > '6'"),
    ("SELECT * FROM s WHERE k IN ('a', 'b')", "SELECT * FROM s WHERE k IN ('b', 'c')"),
    ("SELECT * FROM s WHERE v <> 5", "SELECT * FROM s WHERE v >= 5"),
    ("SELECT * FROM s WHERE ts >= TIMESTAMP '2026-02-01'", "SELECT * FROM s WHERE ts >= TIMESTAMP '2026-01-31'"),
    ("SELECT * FROM s WHERE v IS NOT NULL", "SELECT * FROM s WHERE v = 1 OR k = 'a'"),
    ("SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v > 6 OR k = 1"),
    ("SELECT * FROM s WHERE v > 5 AND k = 1", "SELECT * FROM s WHERE v > 6"),
    ("SELECT k FROM s", "SELECT k, v FROM s"),
    ("SELECT k, k AS v FROM s WHERE v > 5", "SELECT v FROM s WHERE v > 6"),
    ("SELECT k, v + 1 AS v FROM s", "SELECT v FROM s WHERE v > 6"),
    ("SELECT k, v FROM s WHERE v > 5", "SELECT * FROM s WHERE v > 6"),
    ("SELECT DISTINCT k, v FROM s", "SELECT k FROM s"),
    ("SELECT k, v FROM s LIMIT 5", "SELECT k FROM s"),
    ("SELECT k, v, rand() AS r FROM s", "SELECT k FROM s"),
    ("SELECT k, sum(v) AS v FROM s GROUP BY k", "SELECT k, sum(v) AS v FROM s GROUP BY k HAVING sum(v) > 2"),
]


@pytest.mark.parametrize(("first", "second"), CONTAINED)
def test_what_is_all_among_anothers_records_reads_those(first: str, second: str) -> None:
    assert reads(first, second) == ("q.o",)


@pytest.mark.parametrize(("first", "second"), NOT_CONTAINED)
def test_what_may_not_be_is_left_alone(first: str, second: str) -> None:
    assert reads(first, second) == ("s",)


def test_it_is_not_looked_for_unless_asked() -> None:
    given = two(one("q", CONTAINED[0][0]), one("r", CONTAINED[0][1]), control=Control(share=Share()))
    assert with_sharing(given) is given


def test_a_watermark_and_a_pin_stand_against_it() -> None:
    first, second = "SELECT * FROM s WHERE v > 5", "SELECT * FROM s WHERE v > 6"
    assert reads(first, second, watermarks=(Watermark("1 minute", "ts"),)) == ("s",)
    assert reads(first, second, site="y") == ("s",)


def test_a_column_that_carries_event_time_is_needed_where_the_reader_hands_it_on() -> None:
    # `ts` is the source's own here, and made anew there: a watermark on it would be another.
    assert reads("SELECT k, v FROM s WHERE v > 5", "SELECT ts, k FROM s WHERE v > 6") == ("s",)


def test_the_least_that_holds_all_is_read_and_what_runs_is_never_read_by_what_it_comes_of() -> None:
    made = with_sharing(two(
        one("q", "SELECT * FROM s WHERE v > 1"),
        query(
            op("a", "s", sql="SELECT * FROM s WHERE v > 3"),
            op("b", "a", sql="SELECT k, v FROM a WHERE v > 4"),
            name="r",
        ),
        one("t", "SELECT k FROM s WHERE v > 5"),
    ))  # fmt: skip
    flow = dataflow(made)
    assert flow.node("r.a").inputs == ("q.o",)
    assert flow.node("r.b").inputs == ("r.a",)
    assert flow.node("t.o").inputs == ("r.b",)


def test_statements_keep_their_words_and_what_was_written_is_kept() -> None:
    given = two(one("q", "SELECT * FROM s WHERE v > 5"), one("r", "SELECT k FROM s WHERE v > 6"))
    made = with_sharing(given)
    assert made.query("r").operator("o").sql == "SELECT k FROM `q.o` AS `s` WHERE v > 6"
    assert as_written(made) == given
    assert with_sharing(made) is made


def test_a_run_that_goes_on_reads_what_it_read_also_of_a_query_that_is_gone() -> None:
    given = two(one("q", "SELECT * FROM s WHERE v > 5"), one("r", "SELECT k FROM s WHERE v > 6"))
    made = with_sharing(given)
    assert made.sharing is not None
    stands, operators = made.sharing.stands, made_for_others(made)
    assert dataflow(resumed(given, {"q", "r"}, stands, operators)).node("r.o").inputs == ("q.o",)
    without = replace(given, queries=given.queries[1:])
    left = resumed(without, {"q", "r"}, stands, operators)
    assert dataflow(left).node("r.o").inputs == ("q.o",)
    assert left.query("q").sinks == ()


def test_rates_are_those_without_it() -> None:
    from weft.plan.dataflow.rates import ideal_rates

    given = two(
        one("q", "SELECT * FROM s WHERE v > 5", selectivity=0.5),
        one("r", "SELECT k FROM s WHERE v > 6", selectivity=0.1),
    )
    before, after = ideal_rates(given).per_s, ideal_rates(with_sharing(given)).per_s
    assert after["r.o"] == pytest.approx(before["r.o"])


ATOMS = st.one_of(
    st.tuples(st.sampled_from(["v", "k"]), st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(-2, 3)).map(
        lambda told: f"{told[0]} {told[1]} {told[2]}"
    ),
    st.sampled_from(["v IS NULL", "k BETWEEN 0 AND 2", "v IN (1, 2)"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two_: f"({two_[0]} AND {two_[1]})"),
        st.tuples(inner, inner).map(lambda two_: f"({two_[0]} OR {two_[1]})"),
        inner.map(lambda told: f"NOT ({told})"),
    ),
    max_leaves=4,
)
SHOWN = st.sampled_from(["*", "k, v", "k", "v", "k, v + k AS v", "v AS k, k AS v", "k, v, k + v AS w"])
VALUES = [None, -2, -1, 0, 1, 2, 3]


@settings(max_examples=400, deadline=None)
@given(first=CONDITIONS, second=CONDITIONS, shown=st.tuples(SHOWN, SHOWN))
def test_whoever_is_rewritten_gives_the_same_records(first: str, second: str, shown: tuple[str, str]) -> None:
    # Half of the time the second asks for more of the same, so that there is something to find.
    both = f"({first}) AND ({second})"
    for told in (second, both):
        given_ = two(
            one("q", f"SELECT {shown[0]} FROM s WHERE {first}"), one("r", f"SELECT {shown[1]} FROM s WHERE {told}")
        )
        made = with_sharing(given_)
        if dataflow(made).node("r.o").inputs != ("q.o",):
            continue
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE s (ts, k, v)")
        base.executemany("INSERT INTO s VALUES (0, ?, ?)", [(k, v) for k in VALUES for v in VALUES])
        base.execute(f'CREATE TABLE "q.o" AS {given_.query("q").operator("o").sql}')
        rewritten = made.query("r").operator("o").sql
        assert rewritten is not None
        order = lambda rows: sorted(map(repr, rows))  # noqa: E731
        written = given_.query("r").operator("o").sql
        assert order(base.execute(rewritten)) == order(base.execute(written or "")), (first, told, shown)


def test_an_hour_out_of_quarters_would_lose_what_is_late_for_its_quarter_alone() -> None:
    def counted(moments: list[int], length: int, delay: int) -> dict[int, int]:
        """Records by hour, of windows that take them in until the watermark passes their end, as Spark's do."""
        hours: dict[int, int] = {}
        watermark = -delay
        for moment in moments:
            if (moment // length + 1) * length > watermark:
                hours[moment // 60] = hours.get(moment // 60, 0) + 1
            watermark = max(watermark, moment - delay)
        return hours

    moments = [62, 70, 90, 65]  # minutes; the last one comes when the watermark is at 80
    assert counted(moments, 60, 10) == {1: 4}
    assert counted(moments, 15, 10) == {1: 3}
    sql, mark = "SELECT window(ts, '{}') w, k, count(*) v FROM s GROUP BY 1, 2", (Watermark("10 minutes", "ts"),)
    quarters, hours = (
        one(name, sql.format(long), watermarks=mark) for name, long in (("q", "15 minutes"), ("r", "1 hour"))
    )
    given_ = two(quarters, hours)
    assert with_sharing(given_) is given_, "so it is not made out of them"
