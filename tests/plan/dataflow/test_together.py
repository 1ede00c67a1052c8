"""Aggregates that differ in their filters are one operator, whose results are divided: the same rows, and exact counts.

Rows are compared in a database of Python's own, which knows FILTER and treats nulls as Spark does.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.bodies.live.journal import held as journal_held
from weft.bodies.twin import run as twin
from weft.model import (
    Column,
    Control,
    Deployment,
    Late,
    Operator,
    Placement,
    Query,
    Queue,
    Share,
    Sink,
    Watermark,
    dataflow,
    late_outlets,
)
from weft.model.wishes import MoveTo
from weft.plan.changing.fragments import cut, without_unused
from weft.plan.changing.next_plan import as_made
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.shared_streams import shared_streams
from weft.plan.dataflow.sharing import as_written, left_by, made_for_others, resumed, with_sharing
from weft.spec import with_reads_from

ON = Control(share=Share())
SCHEMA = (Column("ts", "TIMESTAMP"), Column("k", "STRING"), Column("v", "DOUBLE"), Column("n", "BIGINT"))
SUM = "SELECT window(ts, '1 minute') AS w, k, sum(v) AS v FROM {} GROUP BY 1, 2"


def sums(sql: str = SUM, upstream: str = "kept", **more: Any) -> Operator:
    marks = more.pop("watermarks", (Watermark("10 seconds", "ts"),))
    return op("sums", upstream, sql=sql.format(upstream), watermarks=marks, **more)


def filtered(name: str, condition: str, sql: str = SUM, **more: Any) -> Query:
    return query(op("kept", "s", sql=f"SELECT * FROM s WHERE {condition}"), sums(sql, **more), name=name)


def given(*queries: Query, control: Control = ON) -> Deployment:
    return deployment(["x", "y"], [replace(source("s", "x"), schema=SCHEMA)], *queries, control=control)


def streams(whole: Deployment) -> list[str]:
    return [node.stream for node in dataflow(whole).nodes]


def test_filters_before_and_within_aggregates_are_conditions_of_one_that_reads_the_source_once() -> None:
    minutes = "window(ts, '60 seconds')"
    within = f"SELECT {minutes} AS w, k, count(*) AS n FROM s WHERE k <> 'a' GROUP BY {minutes}, k"
    made = with_sharing(given(filtered("q", "v > 1"), query(sums(within, "s"), name="r")))
    assert streams(made) == ["q.sums_together", "q.sums", "r.sums"]
    assert [node.inputs for node in dataflow(made).nodes] == [("s",), ("q.sums_together",), ("q.sums_together",)]
    whole = made.query("q").operator("sums_together")
    assert whole.sql is not None
    assert "WHERE `v` > 1 OR `k` <> 'a' GROUP BY 1, 2" in whole.sql
    assert whole.watermarks == (Watermark("10 seconds", "ts"),)
    assert [(part.stream, part.where) for part in whole.parts] == [("q.sums", "`v` > 1"), ("r.sums", "`k` <> 'a'")]
    assert with_sharing(made) is made
    assert as_written(made).queries == given(filtered("q", "v > 1"), query(sums(within, "s"), name="r")).queries


def test_they_run_as_one_fragment_whose_branches_are_each_querys_own() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2"), filtered("t", "k = 'a'")))
    homes = dict.fromkeys(streams(made), "x")
    (only,) = cut(made, Placement(homes), lambda _, one: "GROUP BY" in str(one.sql), passes_by_sql)
    assert (only.stateful, only.sources, only.channels) == ("sums_together", ("s",), ())
    assert only.branches == ("sums", "r.sums", "t.sums")
    assert only.sinks == ("q", "r", "t")


def test_who_leaves_takes_branch_and_sink_out_of_the_fragment_and_the_twin_goes_on_with_the_rest() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2"), filtered("t", "k = 'a'")))
    homes = Placement(dict.fromkeys(streams(made), "x"))
    (only,) = cut(made, homes, lambda _, one: "GROUP BY" in str(one.sql), passes_by_sql)
    left = left_by(made, "q")
    (rest,) = without_unused((only,), dataflow(left))
    assert (rest.trunk, rest.branches, rest.sinks) == (("sums_together",), ("r.sums", "t.sums"), ("r", "t"))
    found = twin(left, Placement(dict.fromkeys(streams(left), "x")), seconds=5.0, seed=1).queries
    assert found["r"]["records_out"] > 0
    assert found["t"]["records_out"] > 0


APART: dict[str, Query] = {
    "another window": filtered("r", "v > 2", SUM.replace("1 minute", "2 minutes")),
    "another key": filtered("r", "v > 2", "SELECT window(ts, '1 minute') AS w, n, sum(v) AS v FROM {} GROUP BY 1, 2"),
    "another watermark": filtered("r", "v > 2", watermarks=(Watermark("11 seconds", "ts"),)),
    "late records are kept": filtered("r", "v > 2", late=Late("late")),
    "records wait in a queue": filtered("r", "v > 2", queue=Queue(10)),
    "pinned elsewhere": filtered("r", "v > 2", site="y"),
    "distinct": filtered("r", "v > 2", SUM.replace("sum(v)", "count(DISTINCT v)")),
    "the order of records": filtered("r", "v > 2", SUM.replace("sum(v)", "first(v)")),
    "a condition that may fail": filtered("r", "1 / n > 0.5"),
    "a text taken for a number": filtered("r", "k > 5"),
    "chance": filtered("r", "v > rand()"),
    "a query within": filtered("r", "v > (SELECT 1)"),
    "results in update mode": replace(
        filtered("r", "v > 2"), sinks=(Sink("sums", "parquet", "out/r", mode="update", key=("w", "k")),)
    ),
    "a renamed event time": query(
        op("kept", "s", sql="SELECT ts AS at, k, v FROM s WHERE v > 2"),
        sums(SUM.replace("(ts", "(at"), watermarks=(Watermark("10 seconds", "at"),)), name="r",
    ),
    "state that follows": query(
        *filtered("r", "v > 2").operators,
        op("more", "sums", sql="SELECT w, sum(v) AS v FROM sums GROUP BY w", watermarks=(Watermark("1 second", "w"),)),
        name="r",
    ),
    "several records for one": query(
        op("kept", "s", sql="SELECT ts, k, explode(sequence(1, 3)) AS v FROM s"), sums(), name="r"
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", APART)
def test_what_would_not_be_exact_is_left_apart(why: str) -> None:
    made = with_sharing(given(filtered("q", "v > 1"), APART[why]))
    assert not any(name.endswith("_together") for name in streams(made))


def test_it_can_be_asked_not_to_be() -> None:
    apart = given(filtered("q", "v > 1"), filtered("r", "v > 2"), control=Control(share=Share(together=False)))
    assert with_sharing(apart) is apart


def test_an_argument_that_may_fail_is_worked_out_for_its_own_records_alone() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "n <> 0", SUM.replace("sum(v)", "sum(v / n)"))))
    sql = made.query("q").operator("sums_together").sql or ""
    assert "SUM(CASE WHEN `n` <> 0 THEN `v` / `n` END)" in sql


def test_what_is_late_counts_for_each_query_whose_filter_keeps_it_under_a_name_of_its_own() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2")))
    outlets = late_outlets(made.query("q"), made.query("q").operator("sums_together"))
    assert [one.name for one in outlets] == ["q.sums_together.late@q.sums", "q.sums_together.late@r.sums"]
    assert [one.part.where for one in outlets if one.part is not None] == ["`v` > 1", "`v` > 2"]
    assert all(one.sink is None for one in outlets)


def test_a_run_goes_on_as_it_was_cut_whichever_query_has_left_the_file_and_whatever_the_file_shares() -> None:
    queries = filtered("q", "v > 1"), filtered("r", "v > 2"), filtered("t", "1 < v")
    made = with_sharing(given(*queries))
    assert made.sharing is not None
    stands, operators = made.sharing.stands, made_for_others(made)
    for control in (ON, Control()):
        again = resumed(given(*queries, control=control), {"q", "r", "t"}, stands, operators)
        assert (again.queries, again.sharing) == (made.queries, made.sharing)
        without = resumed(given(*queries[1:], control=control), {"q", "r", "t"}, stands, operators)
        assert sorted(streams(without)) == ["q.sums", "q.sums_together", "r.sums", "t.sums"], "t stands on q.sums"
        alone = resumed(given(queries[1], control=control), {"q", "r", "t"}, stands, operators)
        assert streams(alone) == ["q.sums_together", "r.sums"]
    apart = resumed(given(*queries[:2]), {"q", "r"}, {}, {})
    assert streams(apart) == ["q.kept", "q.sums", "r.kept", "r.sums"], "what began apart goes on so"


def test_a_query_that_leaves_is_counted_for_no_more_and_the_others_are_not_cut_anew() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2"), filtered("t", "v > 3")))
    left = left_by(made, "q")
    assert streams(left) == ["q.sums_together", "r.sums", "t.sums"]
    before, after = made.query("q").operator("sums_together"), left.query("q").operator("sums_together")
    assert replace(after, parts=()) == replace(before, parts=()), "it goes on to measure"
    assert [part.stream for part in after.parts] == ["r.sums", "t.sums"]
    assert streams(left_by(left_by(left, "r"), "t")) == []


def test_queries_that_come_are_one_among_themselves() -> None:
    late = [filtered("t", "v > 3"), filtered("u", "v > 4")]
    found = resumed(given(filtered("q", "v > 1"), filtered("r", "v > 2"), *late), {"q", "r"}, {}, {})
    assert [name for name in streams(found) if "together" in name] == ["t.sums_together"]
    assert "q.kept" in streams(found)


def test_a_wish_about_what_was_folded_in_is_about_the_operator_of_all() -> None:
    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2")))
    wish = as_made(made, MoveTo({"r.kept": "y"}, "asked for", "person"))
    assert isinstance(wish, MoveTo)
    assert dict(wish.homes) == {"q.sums_together": "y"}


def test_it_is_told_what_is_shared_and_planned_rates_stay() -> None:
    queries = [query(op("kept", "s", sql=f"SELECT * FROM s WHERE v > {at}", selectivity=0.5 / at),
                     sums(selectivity=0.1 * at), name=name) for at, name in ((1, "q"), (2, "r"))]  # fmt: skip
    whole = given(*queries)
    made = with_sharing(whole)
    (told,) = shared_streams(made)
    assert (told["stream"], told["queries"]) == ("q.sums_together", ["q", "r"])
    assert sorted(told["operators"]) == ["q.kept", "q.sums", "r.kept", "r.sums"]
    assert told["saves"] > 0
    for name in ("q.sums", "r.sums"):
        assert ideal_rates(made).per_s[name] == pytest.approx(ideal_rates(whole).per_s[name])


def test_so_many_that_one_operator_would_be_too_wide_are_several() -> None:
    made = with_sharing(given(*(filtered(f"q{at}", f"v > {at}") for at in range(40))))
    assert [name for name in streams(made) if "together" in name] == ["q0.sums_together", "q32.sums_together_"]


def test_it_is_kept_in_the_journal(tmp_path: Any) -> None:
    from dataclasses import asdict

    made = with_sharing(given(filtered("q", "v > 1"), filtered("r", "v > 2")))
    assert made.sharing is not None
    plain = {stream: asdict(one) for stream, one in made_for_others(made).items()}
    found = journal_held(
        {"number": 1, "placement": {}, "fragments": [], "generations": {}, "gates": {},
         "shared": {"stands": dict(made.sharing.stands), "operators": plain}}
    )  # fmt: skip
    assert found.operators == made_for_others(made)


CONDITIONS = [
    "v > 1", "v <= 2.5", "k = 'a'", "k <> 'b'", "k IN ('a', 'c')", "NOT k IN ('a', 'b')", "n % 3 = 1", "v IS NULL",
    "k IS NOT NULL", "NOT (v > 1)", "v BETWEEN 1 AND 2", "v > 1 AND n < 3", "k = 'a' OR v < 1", "coalesce(v, 0) < 1",
    "k LIKE 'a%'", "CASE WHEN v > 1 THEN n > 1 ELSE n < 2 END", "v * 2.0 > 3", "v = n", "lower(k) = 'a'", "true",
]  # fmt: skip
MEASURED = [
    "sum(v)", "count(*)", "count(v)", "min(v)", "max(n)", "avg(v)", "sum(v) / count(*)", "sum(n + 1)", "max(k)",
    "count(*) FILTER (WHERE v > 1)", "sum(CASE WHEN v > 1 THEN n END)", "coalesce(sum(v), 0)",
]  # fmt: skip
HAVING = ["", " HAVING count(*) > 1", " HAVING sum(v) > 2 OR k = 'a'", " HAVING a IS NOT NULL"]


def drawn(rng: Random, name: str) -> Query:
    """A query with filters in one place or several, and an aggregate in one spelling or another."""
    shown = [f"{one} AS {alias}" for one, alias in zip(rng.sample(MEASURED, 2), "ab", strict=True)]
    key = rng.choice([("k", "k"), ("k AS key", "k"), ("k AS key", "key")])
    columns = ["window(ts, '1 minute') AS w", key[0], *shown]
    steps, upstream = [], "s"
    for at in range(rng.randint(0, 2)):
        condition = rng.choice(CONDITIONS)
        sql = rng.choice(["SELECT * FROM {} WHERE {}", "SELECT x.k, x.v, x.n, x.ts, 1 AS one FROM {} x WHERE {}"])
        if "one" in sql and upstream != "s":
            sql = "SELECT * FROM {} WHERE {}"
        steps.append(op(f"kept{at}", upstream, sql=sql.format(upstream, condition)))
        upstream = f"kept{at}"
    where = rng.choice(["", f" WHERE {rng.choice(CONDITIONS)}"])
    sql = f"SELECT {', '.join(columns)} FROM {upstream}{where} GROUP BY w, {key[1]}{rng.choice(HAVING)}"
    return query(*steps, sums(sql, upstream), name=name)


def rows_of(whole: Deployment, rows: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    """What every query's sink would show, worked out by a database."""
    base = sqlite3.connect(":memory:")
    base.create_function("window", 2, lambda moment, _: moment // 60)
    base.execute("CREATE TABLE s (ts INT, k TEXT, v DOUBLE, n BIGINT)")
    base.executemany("INSERT INTO s VALUES (?, ?, ?, ?)", rows)
    flow = dataflow(whole)
    for node in flow.nodes:
        sql = with_reads_from(node.operator.sql or "", dict(zip(node.operator.from_, node.inputs, strict=True)))
        base.execute(f'CREATE TEMP TABLE "{node.stream}" AS {sql}')
    found = {}
    for outlet in flow.outlets:
        cursor = base.execute(f'SELECT * FROM "{outlet.stream}"')
        names = tuple(one[0] for one in cursor.description)
        found[outlet.name] = [names, *sorted(cursor.fetchall(), key=repr)]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_drawn_queries_give_the_rows_that_each_gives_alone_nulls_included(seed: int) -> None:
    rng = Random(seed)
    whole = given(*(drawn(rng, f"q{at}") for at in range(6)))
    made = with_sharing(whole)
    assert [name for name in streams(made) if "together" in name], "drawn so that they are one"
    rows = [
        (rng.randrange(240), rng.choice(["a", "b", "c", "Ab", None]), rng.choice([None, 0.5, 1.0, 1.5, 2.5, 3.0]),
         rng.choice([None, 0, 1, 2, 3, 7]))
        for _ in range(200)
    ]  # fmt: skip
    assert rows_of(made, rows) == rows_of(whole, rows)
