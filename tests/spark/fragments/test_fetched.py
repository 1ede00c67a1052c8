"""What branches pick of a batch that was fetched is what Spark would give, types and all; the rest is its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import dataflow
from weft.plan.changing.fragments import Fragment
from weft.spark.fragments import operators
from weft.spark.fragments.fetched import FetchedBatch, FetchedFrame, without

pytestmark = pytest.mark.spark
BRANCHES = {
    "some": "SELECT `w` AS `When`, m2 AS x FROM a WHERE `m1` > 0",
    "all": "SELECT m2, k FROM a",
    "again": "SELECT x AS y FROM some",
    "more": "SELECT upper(k) AS k FROM a WHERE m1 > 1",
}


def batch(spark: Any, where: str = "true") -> Any:
    rows = "VALUES (TIMESTAMP '2024-01-01 00:00:00', 'a', 1, 2.5), (TIMESTAMP '2024-01-01 00:01:00', NULL, 0, NULL), "
    rows += "(TIMESTAMP '2024-01-01 00:02:00', 'b', 3, NULL), (NULL, 'c', CAST(NULL AS INT), 1.0)"
    shown = "window(ts, '1 minute') AS w, k, m1, CAST(m2 AS DOUBLE) AS m2"
    return spark.sql(f"SELECT {shown} FROM {rows} AS t(ts, k, m1, m2) WHERE {where}")


def held(frame: Any) -> FetchedBatch:
    steps = [op(name, "some" if name == "again" else "a", sql=sql) for name, sql in BRANCHES.items()]
    whole = deployment(["x"], [source("s", "x")], query(op("a", "s"), *steps))
    fragment = Fragment("q.a", "x", ("q",), ("a",), tuple(BRANCHES), "a", ("s",), (), (), ())
    return FetchedBatch(dataflow(whole), fragment, frame, frame.toArrow())


def by_spark(frame: Any, name: str) -> Any:
    if name == "again":
        return operators.apply(op(name, "some", sql=BRANCHES[name]), {"some": by_spark(frame, "some")}, "")
    return operators.apply(op(name, "a", sql=BRANCHES[name]), {"a": frame}, "")


@pytest.mark.parametrize("name", ["some", "all", "again"])
def test_columns_that_are_picked_come_without_spark_and_are_as_it_gives_them(spark: Any, name: str) -> None:
    frame = batch(spark)
    asked: list[str] = []

    def make() -> Any:
        asked.append(name)
        return by_spark(frame, name)

    found, wanted = held(frame).of(name, make), by_spark(frame, name)
    assert found.toArrow().to_pylist() == wanted.toArrow().to_pylist()
    assert found.toArrow().schema.types == wanted.toArrow().schema.types
    assert found.schema == wanted.schema
    assert not asked
    assert sorted(map(repr, found.collect())) == sorted(map(repr, wanted.collect())), "whoever asks more has the frame"
    assert asked


def test_what_does_more_is_sparks_own_but_of_nothing_comes_nothing(spark: Any) -> None:
    frame = batch(spark)
    assert not isinstance(held(frame).of("more", lambda: by_spark(frame, "more")), FetchedFrame)
    empty = batch(spark, "false")
    found = held(empty).of("more", lambda: by_spark(empty, "more"))
    assert found.toArrow().num_rows == 0
    assert found.columns == ["k"]


def test_columns_that_do_not_travel_are_null_whether_fetched_or_spark_s(spark: Any) -> None:
    frame = spark.sql("SELECT id, id % 3 AS k, struct(id AS a, 'x' AS b) AS s FROM range(5)")
    held = FetchedFrame(frame, lambda: frame, frame.toArrow(), frame.schema)
    for one in (held.without({"k", "s"}), without(frame, {"k", "s"})):
        assert one.columns == ["id", "k", "s"]
        assert [(field.name, field.dataType) for field in one.schema] == [(f.name, f.dataType) for f in frame.schema]
        assert one.toArrow().to_pylist() == [{"id": at, "k": None, "s": {"a": at, "b": "x"}} for at in range(5)]
    assert held.without({"k"}).filter("id > 3").collect()[0].asDict() == {"id": 4, "k": None, "s": (4, "x")}
