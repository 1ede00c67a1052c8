"""Queries that differ in their filters are one Spark query: exact, over a move too, and late records count for each."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.plan.dataflow.test_together import SCHEMA, drawn, filtered
from weft.bodies.live.run import Options, Run
from weft.model import Constant, Control, Deployment, Link, MoveAt, Query, Share, Site, Source, dataflow

pytestmark = pytest.mark.spark
RECORDS, RATE, QUERIES = 600, 100, 6


def records(rng: Random) -> list[str]:
    """A record a second; texts and numbers are missing now and then."""
    lines = []
    for at in range(RECORDS):
        key, value = rng.choice(["a", "b", "c", "Ab", ""]), rng.choice(["", "0.5", "1.0", "1.5", "2.5", "3.0"])
        lines.append(f"2024-01-01T00:{at // 60:02d}:{at % 60:02d}Z,{key},{value},{rng.choice(['', 0, 1, 2, 3, 7])}\n")
    return lines


def rows(frame: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.collect())


def as_batch(spark: Any, query: Query) -> Any:
    """What a query gives over the records that are the view `s`."""
    for operator in query.operators:
        frame = spark.sql(operator.sql)
        frame.createOrReplaceTempView(operator.name)
    return frame


def test_drawn_queries_give_what_batch_spark_gives_though_their_operator_moves(spark: Any, tmp_path: Path) -> None:
    rng = Random(7)
    queries = tuple(drawn(rng, f"q{at}") for at in range(QUERIES))
    (tmp_path / "s.csv").write_text("".join(records(rng)))
    source = Source("s", "a", "replay", SCHEMA, "s.csv", event_time="ts", arrivals=Constant(RATE))
    moved = next(f"{one.name}.{one.operators[0].name}" for one in queries if len(one.operators) > 1)
    whole = Deployment(
        (Site("a"), Site("b")), (source,), queries, (Link("a", "b"),), control=Control(share=Share()),
        scenario=(MoveAt(2.0, moved, "b"),), folder=str(tmp_path),
    )  # fmt: skip
    run = Run(whole, tmp_path / "state", Options(until_done=True))
    summary = run.go()
    made = [node.stream for node in dataflow(run.deployment).nodes if node.operator.parts]
    assert len(made) == 1, "all are one"
    assert summary["moves"], "it has moved"
    spark.read.csv(
        str(tmp_path / "s.csv"), schema="ts TIMESTAMP, k STRING, v DOUBLE, n BIGINT"
    ).createOrReplaceTempView("s")
    for query in queries:
        wanted, found = as_batch(spark, query), spark.read.parquet(str(tmp_path / "out" / query.name))
        assert found.columns == wanted.columns
        assert rows(found) == rows(wanted), query.name


def with_late(folder: Path) -> None:
    """A file of records a minute; every third of the later ones is of the first."""
    folder.mkdir()
    for at in range(5):
        minutes = [0 if at > 2 and n % 3 == 0 else at for n in range(60)]
        lines = [f"2024-01-01T00:{minute:02d}:{n:02d}Z,{'ab'[n % 2]},{n % 4},{n}\n" for n, minute in enumerate(minutes)]
        path = folder / f"{at}.csv"
        path.write_text("".join(lines))
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


def test_late_records_count_for_each_query_whose_filter_keeps_them_as_if_it_ran_alone(
    spark: Any, tmp_path: Path
) -> None:
    with_late(tmp_path / "in")
    queries = filtered("q", "v > 1"), filtered("r", "k = 'a' AND v < 3"), filtered("t", "v IS NOT NULL")
    source = Source("s", "a", "csv", SCHEMA, "in", {"maxFilesPerTrigger": "1"}, event_time="ts")
    told, given = [], []
    for share in (True, False):
        (folder := tmp_path / str(share)).mkdir()
        (folder / "in").symlink_to(tmp_path / "in")
        whole = Deployment((Site("a"),), (source,), queries, control=Control(share=Share(share)), folder=str(folder))
        run = Run(whole, folder / "state", Options(until_done=True))
        summary = run.go()
        assert len(summary["fragments"]) == (1 if share else 3)
        told.append({name: (one["late"], one["records_out"]) for name, one in summary["queries"].items()})
        given.append({one.name: rows(spark.read.parquet(str(folder / "out" / one.name))) for one in queries})
        if share:
            assert summary["queries"]["t"]["late"] == 40, "every one of them, each once"
            assert run.status()["shared"][0]["queries"] == ["q", "r", "t"]
    assert told[0] == told[1]
    assert given[0] == given[1]
