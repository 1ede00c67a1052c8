"""Ordering on Spark: in any program, and in front of an operator of a deployment; nothing lost, also over a restart."""

from __future__ import annotations

import os
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import weft
import weft.spec
from weft.bodies.live.run import Options, Run
from weft.spark.ordering.dataframe import BadOrder
from weft.spark.ordering.holds import measured_order

pytestmark = pytest.mark.spark
START_US = 1_700_000_000_000_000
FILES_S = 1_700_000_000
SCHEMA = "ts TIMESTAMP, name STRING, n BIGINT, nested STRUCT<a: BIGINT, b: ARRAY<STRING>>"


def stream_times(count: int) -> np.ndarray:
    """A record every millisecond, a third of them up to 400 ms late, in order of arrival."""
    rng = np.random.default_rng(3)
    delay = np.where(rng.random(count) < 0.3, rng.uniform(0, 400_000, count), 0)
    return (START_US + np.arange(count) * 1000 - delay).astype(np.int64)


def write(folder: Path, times: np.ndarray, first: int, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.arange(first, first + size)
    moments = [None if n % 500 == 7 else int(times[n]) for n in numbers]
    table = pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "name": [None if n % 3 == 0 else f"name {n}" for n in numbers],
            "n": pa.array([None if n % 1000 == 8 else 2**60 + int(n) for n in numbers], pa.int64()),
            "nested": [{"a": int(n), "b": ["x", None]} for n in numbers],
        }
    )
    pq.write_table(table, folder / f".{first:08d}")
    # Spark reads files by their time of change: made within one tick of the clock, their order would be chance.
    os.utime(folder / f".{first:08d}", (FILES_S + first, FILES_S + first))
    (folder / f".{first:08d}").rename(folder / f"{first:08d}.parquet")


def until(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def test_any_program_can_order_a_stream_and_go_on_after_a_restart(spark: Any, folder: Path) -> None:
    times = stream_times(4000)

    def start() -> Any:
        records = spark.readStream.schema(SCHEMA).name("records").option("maxFilesPerTrigger", 1)
        ordered = weft.order(records.parquet(str(folder / "in")), time="ts", idle_s=1.0)
        writer = ordered.writeStream.format("parquet").option("checkpointLocation", str(folder / "ck"))
        return writer.trigger(processingTime="200 milliseconds").start(str(folder / "out"))

    def out() -> Any:
        there = (folder / "out" / "_spark_metadata").exists()
        return spark.read.parquet(str(folder / "out")).toArrow() if there else pa.table({"n": []})

    for first in range(0, 2000, 500):
        write(folder / "in", times, first, 500)
    query = start()
    until(lambda: query.exception() or sum(p["numInputRows"] for p in query.recentProgress) >= 2000)
    query.stop()
    for first in range(2000, 4000, 500):
        write(folder / "in", times, first, 500)
    query = start()
    try:
        until(lambda: query.exception() or out().num_rows == 4000)
    finally:
        failed = query.exception()
        query.stop()
    assert failed is None
    found = spark.read.parquet(str(folder / "out")).toArrow().to_pylist()
    assert sorted(row["nested"]["a"] for row in found) == list(range(4000))
    by_number = {row["nested"]["a"]: row for row in found}
    assert by_number[11]["n"] == 2**60 + 11
    assert (by_number[8]["n"], by_number[9]["name"]) == (None, None)
    late = [row for row in found if row["late"]]
    assert all(row["late"] for row in found if row["ts"] is None)
    assert len(late) < 8 + 400, "the first batch teaches; later ones are in order"
    files = spark.read.parquet(str(folder / "out")).inputFiles()
    parts = [pq.read_table(file.removeprefix("file://")).to_pylist() for file in files]
    in_place = [[row["ts"] for row in part if not row["late"]] for part in parts]
    assert all(one == sorted(one) for one in in_place)
    spans = sorted((one[0], one[-1]) for one in in_place if one)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), "files follow one another"


@pytest.mark.long
def test_a_window_behind_ordering_needs_no_delay_and_drops_nothing(spark: Any, folder: Path) -> None:
    times = stream_times(6000)
    for first in range(0, 6000, 500):
        write(folder / "in", times, first, 500)
    records = spark.readStream.schema(SCHEMA).name("records").option("maxFilesPerTrigger", 1)
    ordered = weft.order(records.parquet(str(folder / "in")), time="ts", lambda_=3.0, idle_s=1.0).where("NOT late")
    counted = ordered.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 second").alias("w")).count()
    writer = counted.writeStream.format("parquet").option("checkpointLocation", str(folder / "ck"))
    query = writer.trigger(processingTime="200 milliseconds").start(str(folder / "out"))
    known = np.array([int(moment) for at, moment in enumerate(times) if at % 500 != 7])
    expected = dict(zip(*np.unique(known // 1_000_000, return_counts=True), strict=True))
    last = max(expected)

    def found() -> dict[int, int]:
        if not (folder / "out" / "_spark_metadata").exists():
            return {}
        out = spark.read.schema("w STRUCT<start: TIMESTAMP, end: TIMESTAMP>, count BIGINT").parquet(str(folder / "out"))
        return {row.s: row["count"] for row in out.select(F.unix_seconds("w.start").alias("s"), "count").collect()}

    try:
        until(lambda: query.exception() or last - 1 in found())
        assert query.exception() is None
        dropped = [op["numRowsDroppedByWatermark"] for p in query.recentProgress for op in p["stateOperators"]]
    finally:
        query.stop()
    assert sum(dropped) == 0
    closed = found()
    # What was learned too late to be ordered is flagged, and was kept out of the windows: at the start only.
    assert sum(expected[s] - closed[s] for s in closed) <= 0.05 * 6000
    assert all(closed[s] == expected[s] for s in closed if s > min(closed) + 2)


def test_what_cannot_be_ordered_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "a")], "n INT, name STRING")
    for time_, options, says in (
        ("when", {}, "there is no column 'when'"),
        ("name", {}, "is no time: it is string"),
        ("n", {"partitions": 4}, "need `by`"),
        ("n", {"late": "name"}, "there is a column 'name' already"),
        ("n", {"late_max": 2.0}, "between 0 and 1"),
    ):
        with pytest.raises(BadOrder, match=says):
            weft.order(frame, time_, **options)  # type: ignore[arg-type]


DEPLOYMENT = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core, delay_ms: 1}]
sources:
  - {name: readings, site: edge, format: csv, path: in, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     options: {maxFilesPerTrigger: 1}}
queries:
  - name: sums
    promise: {loss: 0.0}
    operators:
      - {name: valid, from: [readings], sql: "SELECT * FROM readings WHERE v >= 0", site: edge}
      - name: counted
        from: [valid]
        sql: "SELECT window(ts, '1 second') w, count(*) c FROM valid GROUP BY 1"
        order: {lambda: 0.5}
        site: core
      - {name: flat, from: [counted], sql: "SELECT w.start AS at, c FROM counted"}
    sink: {from: flat, format: csv, path: out}
"""


def arrive(folder: Path, times: np.ndarray, first: int, last: int) -> None:
    """Records by number, in files of 500."""
    (folder / "in").mkdir(exist_ok=True)
    for number in range(first, last, 500):
        moments = np.datetime_as_string(times[number : number + 500].astype("datetime64[us]"))
        aside = folder / f"{number:06d}.csv"
        aside.write_text("".join(f"{moment}Z,k,1\n" for moment in moments))
        aside.rename(folder / "in" / aside.name)
        time.sleep(0.002)


def assert_all_counted(folder: Path, total: int) -> int:
    """Every record is counted in one window or lies with the late ones; how many do."""
    rows = [line.split(",") for file in (folder / "out").glob("*.csv") for line in file.read_text().splitlines()]
    late = sum(pq.read_metadata(file).num_rows for file in (folder / ".weft" / "late").rglob("*.parquet"))
    assert sum(int(count) for _, count in rows) + late == total
    assert len({at for at, _ in rows}) == len(rows), "no window is sent twice"
    return late


def test_an_ordered_operator_needs_no_watermark_and_loses_nothing(spark: Any, folder: Path) -> None:
    arrive(folder, stream_times(6000), 0, 6000)
    (folder / "deployment.yaml").write_text(DEPLOYMENT)
    run = Run(weft.spec.load(folder / "deployment.yaml"), folder / ".weft", Options(until_done=True))
    summary = run.go()
    assert summary["placement"]["sums"]["counted_order"] == ["core"]
    late = assert_all_counted(folder, 6000)
    assert late < 400
    measured = summary["ordering"]["sums.counted_order"]
    assert (measured["records"], measured["held"], measured["late"]) == (6000, 0, late)
    assert measured["hold_ms"] > 100
    # As in the twin: what was put aside is in no result, and counts as dropped.
    found = summary["queries"]["sums"]
    assert found["late"] == found["dropped"] == late
    assert found["promise"]["loss"] == {"promised": 0, "measured": round(late / 6000, 9), "kept": late == 0}


def test_ordering_moves_with_its_operator_and_lets_go_when_the_stream_falls_silent(spark: Any, folder: Path) -> None:
    times = stream_times(6000)
    arrive(folder, times, 0, 2000)
    (folder / "deployment.yaml").write_text(DEPLOYMENT)
    deployment = weft.spec.load(folder / "deployment.yaml")
    run = Run(deployment, folder / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()

    def measured(what: str) -> int:
        found = measured_order(folder / ".weft" / "late" / "sums.counted_order")
        return int(found[what]) if found else -1

    try:
        until(lambda: measured("records") == 2000)
        until(lambda: measured("held") == 0)  # nothing more comes: what was held has left
        move = run.move("sums", "counted", "edge")
        arrive(folder, times, 2000, 4000)
        until(lambda: move.state == "done" or move.why != "")
        assert move.state == "done", move.why
        assert run.changes is not None
        assert run.changes.placement.home("sums.counted_order") == "edge"
        arrive(folder, times, 4000, 6000)
        until(lambda: measured("records") == 6000)
    finally:
        run.stop()
        thread.join(60)
    Run(deployment, folder / ".weft", Options(until_done=True)).go()
    assert_all_counted(folder, 6000)
