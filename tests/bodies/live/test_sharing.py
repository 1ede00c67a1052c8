"""Queries that ask alike share what runs, and are exact; one of them leaves the file, and what others use stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live import journal
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark
RECORDS, RATE = 600, 100
HEAD = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
control: {share: true}
sources:
  - {name: s, site: a, format: replay, path: s.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 100}}
queries:
"""
FIRST = """
  - name: q
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v % 3 <> 0 AND v >= 0"}
      - {name: odd, from: [keep], sql: "SELECT v FROM keep WHERE v % 2 = 1"}
      - {name: sums, from: [keep], sql: "SELECT window(ts, '1 minute') w, sum(v) n FROM keep GROUP BY 1",
         watermark: 5 seconds}
    sink:
      - {from: odd, format: parquet, path: out/q}
      - {from: sums, format: parquet, path: out/qs}
"""
SECOND = """
  - name: r
    operators:
      - {name: good, from: [s], sql: "select ts, v from s as x where 0 <= x.v and not x.v % 3 = 0"}
      - {name: even, from: [good], site: b, sql: "SELECT v FROM good WHERE v % 2 = 0"}
      - {name: all, from: [s], watermark: {column: ts, delay: 5000 milliseconds},
         sql: "SELECT sum(v) AS n, window(ts, '60 seconds') AS w FROM s WHERE v >= 0 AND v % 3 <> 0 GROUP BY w"}
    sink:
      - {from: even, format: parquet, path: out/r}
      - {from: all, format: parquet, path: out/rs}
"""


def run_with(folder: Path, *queries: str, **options: Any) -> Run:
    (folder / "weft.yaml").write_text(HEAD + "".join(one.lstrip("\n") for one in queries))
    run = Run(weft.spec.load(folder / "weft.yaml"), folder / "state", Options(**options))
    run.go()
    return run


def test_what_others_use_of_a_query_that_leaves_runs_on_and_all_results_are_exact(spark: Any, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:{v // 60:02d}:{v % 60:02d}Z,{v}\n" for v in range(RECORDS)]
    (tmp_path / "s.csv").write_text("".join(lines))
    run = run_with(tmp_path, FIRST, SECOND, seconds=2)
    summary = run.status()
    shared = {(one["stream"], *one["queries"]) for one in summary["shared"]}
    assert shared == {("q.keep", "q", "r"), ("q.sums", "q", "r")}
    assert run.changes is not None
    assert set(run.changes.placement.homes) == {"q.keep", "q.odd", "q.sums", "r.even", "r.all"}
    assert run.deployment.query("r").operator("all").from_ == ("q.sums",)
    assert run.finding is not None
    where, homes = run.finding.where(), run.changes.placement.homes
    assert where.keys() == homes.keys(), "the directory knows of all that was made"
    assert all(home in where[stream] for stream, home in homes.items()), where
    assert summary["sites"]["b"]["directory"]["offers"] == [stream for stream, sites in where.items() if "b" in sites]

    run = run_with(tmp_path, SECOND, until_done=True)
    held = journal.read(run.state)
    assert held is not None
    assert set(held.placement.homes) == {"q.keep", "q.sums", "r.even", "r.all"}, "q.odd was for q alone"
    assert list(run.status()["queries"]) == ["r"]
    batch = spark.read.csv(str(tmp_path / "s.csv"), schema="ts TIMESTAMP, v BIGINT")
    batch.createOrReplaceTempView("s")
    sums = "SELECT sum(v) AS n, window(ts, '1 minute') AS w FROM s WHERE v % 3 <> 0 GROUP BY 2"
    for name, sql in (("r", "SELECT v FROM s WHERE v % 6 IN (2, 4)"), ("rs", sums)):
        found = spark.read.parquet(str(tmp_path / "out" / name))
        wanted = spark.sql(sql)
        assert found.columns == wanted.columns
        assert sorted(found.collect()) == sorted(wanted.collect())
    # What left has given what it had, each once.
    files = [str(path) for path in (tmp_path / "out/q").glob("part-*")]
    odd = [row.v for row in spark.read.parquet(*files).collect()] if files else []
    assert sorted(odd) == [v for v in range(RECORDS) if v % 3 and v % 2][: len(odd)]


def test_columns_that_nobody_asks_for_travel_as_nulls_until_somebody_does(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("".join(f"{v},{v % 7},word {v}\n" for v in range(RECORDS)))
    (tmp_path / "weft.yaml").write_text("""
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
control: {share: true}
sources: [{name: s, site: a, format: csv, path: s.csv, schema: "v BIGINT, k INT, word STRING"}]
queries:
  - name: q
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v >= 100"}
      - {name: far, from: [keep], site: b, sql: "SELECT v FROM keep WHERE k <> 3"}
    sink: {from: far, format: parquet, path: out/q}
""")
    run = Run(weft.spec.load(tmp_path / "weft.yaml"), tmp_path / "state", Options(until_done=True))
    run.go()
    found = spark.read.parquet(str(tmp_path / "out/q"))
    assert sorted(row.v for row in found.collect()) == [v for v in range(100, RECORDS) if v % 7 != 3]
    files = [str(path) for path in (tmp_path / "state/streams").rglob("*.parquet")]
    carried = [row for row in spark.read.parquet(*files).collect() if row.v is not None]
    assert carried
    assert all(row.word is None and row.k == row.v % 7 for row in carried)
