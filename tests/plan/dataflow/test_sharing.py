"""What several queries ask alike is made once; what others use of a query that leaves stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.plan.plan_builders import deployment, op, query, source, windowed
from weft.bodies.twin import run as twin
from weft.model import Control, Deployment, Late, Operator, Place, Query, Share, Sink, Watermark, dataflow
from weft.plan import place
from weft.plan.dataflow.meanings import meanings
from weft.plan.dataflow.sharing import as_written, left_by, made_for_others, resumed, with_sharing
from weft.plan.judging.batch_costs import SHIPPED
from weft.plan.judging.batch_projection import project_on_spark
from weft.plan.judging.potential import potential

ON = Control(share=Share())
VALID = "SELECT * FROM s WHERE v >= 0"


def two(*queries: Query, **more: Any) -> Deployment:
    return deployment(["x", "y"], [source("s", "x")], *queries, control=more.pop("control", ON), **more)


def first() -> Query:
    return query(op("valid", "s", sql=VALID), windowed("sums", "valid"), name="q")


def second() -> Query:
    good = op("good", "s", sql="select ts, k, v from s where 0 <= s.v")
    return query(good, op("high", "good", sql="SELECT k, v FROM good WHERE v > 6"), name="r")


def streams(given: Deployment) -> list[str]:
    return [node.stream for node in dataflow(given).nodes]


def test_an_equal_filter_runs_once_and_the_other_query_reads_it() -> None:
    made = with_sharing(two(first(), second()))
    assert streams(made) == ["q.valid", "q.sums", "r.high"]
    assert dataflow(made).node("r.high").inputs == ("q.valid",)
    assert made.query("r").operator("high").sql == "SELECT k, v FROM `q.valid` AS `good` WHERE v > 6"
    assert made.sharing is not None
    assert made.sharing.users() == {"q.valid": ("q", "r")}


def test_nothing_is_shared_unless_it_is_asked_for() -> None:
    for control in (Control(), Control(share=Share(on=False))):
        given = two(first(), second(), control=control)
        assert with_sharing(given) is given


def test_sharing_again_changes_nothing_and_what_was_written_is_kept() -> None:
    given = two(first(), second())
    made = with_sharing(given)
    assert with_sharing(made) is made
    assert as_written(made) == given


def test_one_step_and_two_are_the_same_and_what_lies_before_is_not_made_again() -> None:
    sql = "SELECT k, sum(v) AS v, window(ts, '60 seconds') AS w FROM s WHERE v >= 0 GROUP BY w, k"
    whole = op("all", "s", sql=sql, watermarks=(Watermark("10000 milliseconds", "ts"),))
    made = with_sharing(two(first(), query(whole, name="r")))
    assert streams(made) == ["q.valid", "q.sums", "r.all"]
    # Its columns have another order, and a sink shows them: it only picks them.
    assert made.query("r").operator("all").sql == "SELECT `k` AS `k`, `v` AS `v`, `w` AS `w` FROM `q.sums`"
    made = with_sharing(two(query(whole, name="r"), first()))
    assert streams(made) == ["r.all", "q.sums"], "q.valid led to nothing else"


def test_a_query_that_is_equal_altogether_only_picks_the_results() -> None:
    made = with_sharing(two(first(), replace(first(), name="r")))
    assert streams(made) == ["q.valid", "q.sums", "r.sums"]
    assert dataflow(made).node("r.sums").inputs == ("q.sums",)


def test_two_equal_operators_of_one_query_run_once() -> None:
    same = query(op("a", "s", sql=VALID), op("b", "s", sql=VALID), op("c", "a"), op("d", "b"), name="q",
                 sinks=(Sink("c", "parquet", "out/c"), Sink("d", "parquet", "out/d")))  # fmt: skip
    made = with_sharing(two(same))
    assert "q.b" not in streams(made)
    assert dataflow(made).node("q.d").inputs == ("q.a",)


def test_who_reads_both_of_two_equal_streams_goes_on_to_read_two() -> None:
    both = op("both", "a", "b", sql="SELECT * FROM a UNION ALL SELECT * FROM b")
    made = with_sharing(two(query(op("a", "s", sql=VALID), op("b", "s", sql=VALID), both)))
    assert dataflow(made).node("q.both").inputs == ("q.a", "q.b")


def test_operators_share_only_where_each_may_run() -> None:
    pinned = query(op("valid", "s", sql=VALID, site="y"), op("high", "valid", sql="SELECT k FROM valid"), name="r")
    assert "r.valid" in streams(with_sharing(two(first(), pinned)))
    assert "q.valid" not in streams(with_sharing(two(pinned, first()))), "who is not pinned may run where the other is"


CHANGED: list[dict[str, Any]] = [
    {"watermarks": (Watermark("11 seconds"),)},
    {"late": Late("late")},
    {"sql": "SELECT window(ts, '2 minutes') w, k, sum(v) v FROM valid GROUP BY 1, 2"},
    {"sql": "SELECT window(ts, '1 minute') w, k, max(v) v FROM valid GROUP BY 1, 2"},
    {"sql": "SELECT window(ts, '1 minute') w, k, sum(v) AS total FROM valid GROUP BY 1, 2"},
]


@pytest.mark.parametrize("change", CHANGED)
def test_another_policy_or_statement_is_another_meaning(change: dict[str, Any]) -> None:
    other = query(op("valid", "s", sql=VALID), replace(windowed("sums", "valid"), **change), name="r")
    known = meanings(two(first(), other))
    assert known["q.valid"].key == known["r.valid"].key
    assert known["q.sums"].key != known["r.sums"].key


def test_a_watermark_on_what_was_renamed_is_measured_after_the_filter_and_not_the_same() -> None:
    renamed = op("valid", "s", sql="SELECT ts AS at, k, v FROM s WHERE v >= 0")
    sums = op("sums", "valid", sql="SELECT window(at, '1 minute') w, k, sum(v) v FROM valid GROUP BY 1, 2",
              watermarks=(Watermark("10 seconds", "at"),))  # fmt: skip
    known = meanings(two(first(), query(renamed, sums, name="r")))
    assert known["q.sums"].key != known["r.sums"].key


def test_results_in_update_mode_and_what_comes_by_chance_are_nobody_elses() -> None:
    updates = query(
        op("a", "s", sql=VALID), sinks=(Sink("a", "parquet", "out/q", mode="update", key=("k",)),), name="q"
    )
    by_chance = query(op("a", "s", sql="SELECT *, rand() r FROM s"), name="r")
    for one in (updates, by_chance):
        given = two(one, replace(one, name="other"))
        assert with_sharing(given) is given


def called(name: str, **more: Any) -> Query:
    return query(Operator("f", ("s",), call="rules:keep", args={"least": 1}, **more), name=name)


def test_a_function_is_shared_by_code_and_arguments_and_only_if_it_is_pure(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("from helpers import bound\ndef keep(frame, least):\n    return bound(frame)\n")
    (tmp_path / "helpers.py").write_text("def bound(frame):\n    return frame\n")

    def keys(*queries: Query) -> list[str]:
        given = two(*queries, folder=str(tmp_path))
        return [meanings(given)[f"{one.name}.f"].key for one in queries]

    assert len(set(keys(called("q"), called("r")))) == 2
    pure = called("q", pure=True)
    assert len(set(keys(pure, called("r", pure=True)))) == 1
    more = replace(called("r", pure=True).operators[0], args={"least": 2})
    assert len(set(keys(pure, replace(pure, name="r", operators=(more,))))) == 2
    for other in ({"least": {1: "a"}}, {"least": {"1": "a"}}), ({"least": {1: 2, 3: 4}}, {"least": {3: 4, 1: 2}}):
        of_each = [replace(called("r", pure=True).operators[0], args=args) for args in other]
        assert len(set(keys(*(query(one, name=f"q{at}") for at, one in enumerate(of_each))))) == 2, other
    before = keys(pure)
    (tmp_path / "helpers.py").write_text("# said otherwise\ndef bound(frame):\n    return (frame)\n")
    assert keys(pure) == before, "comments and brackets change no code"
    (tmp_path / "helpers.py").write_text("def bound(frame):\n    return frame.limit(1)\n")
    assert keys(pure) != before, "what the function reaches has changed"
    said = [{"least": 1, "most": 2}, {"most": 2, "least": 1}]
    ways = [query(replace(pure.operators[0], args=args), name=f"q{at}") for at, args in enumerate(said)]
    assert len(set(keys(*ways))) == 1
    (tmp_path / "rules.py").write_text("def keep(frame, **columns):\n    return frame.withColumns(columns)\n")
    assert len(set(keys(*ways))) == 2, "it sees the order of what it takes"


def test_what_others_use_of_a_query_that_leaves_stays_and_the_rest_ends() -> None:
    made = with_sharing(two(first(), second()))
    without = left_by(made, "q")
    assert streams(without) == ["q.valid", "r.high"]
    assert without.query("q").sinks == ()
    assert streams(left_by(without, "r")) == [], "nobody uses it any more"
    assert streams(left_by(made, "r")) == ["q.valid", "q.sums"]


def test_a_run_goes_on_sharing_what_it_did_though_the_first_query_has_left_the_file() -> None:
    made = with_sharing(two(first(), second()))
    assert made.sharing is not None
    stands, operators = made.sharing.stands, made_for_others(made)
    assert list(operators) == ["q.valid"]
    again = resumed(two(first(), second()), {"q", "r"}, stands, operators)
    assert (again.queries, again.sharing) == (made.queries, made.sharing)
    without = resumed(two(second()), {"q", "r"}, stands, operators)
    assert streams(without) == ["q.valid", "r.high"]
    assert without.sharing is not None
    assert [one.name for one in without.sharing.written] == ["r"]
    off = resumed(two(second(), control=Control()), {"q", "r"}, stands, operators)
    assert off.queries == without.queries, "what runs shared is not cut apart"


def test_a_query_that_comes_later_shares_only_with_those_that_come_with_it() -> None:
    later = [replace(second(), name=name) for name in ("t", "u")]
    given = two(first(), second(), *later)
    found = resumed(given, {"q", "r"}, {}, {})
    assert streams(found) == ["q.valid", "q.sums", "r.good", "r.high", "t.good", "t.high", "u.high"]
    assert dataflow(found).node("u.high").inputs == ("t.high",)


@pytest.mark.parametrize("policy", ["refine", "near", "greedy", "dp", "exact", "random", "latency", "partition"])
def test_what_is_left_of_a_query_is_placed_and_projected_like_any_other(policy: str) -> None:
    without = left_by(with_sharing(two(first(), second())), "q")
    asked = replace(without, control=replace(without.control, place=Place(policy=policy)))
    placement = place(asked)
    assert set(placement.homes) == {"q.valid", "r.high"}
    on_spark = project_on_spark(asked, placement, SHIPPED)
    assert on_spark["r"].latency_ms is not None
    assert potential(asked, placement).total >= 0.0
    assert twin(asked, placement, seconds=5.0, seed=1).queries["r"]["records_out"] > 0
