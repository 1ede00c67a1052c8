"""What a fragment's plan must not let Spark conclude."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source, Watermark
from weft.plan import place
from weft.plan.changing.fragments import cut
from weft.plan.changing.task import Task
from weft.plan.dataflow.event_times import Times, passes_by_sql
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.channels.gate import Gate
from weft.spark.engine import SparkEngine
from weft.spark.fragments.analysis import analyse
from weft.spark.fragments.draining import RunSettings
from weft.spark.fragments.positions import Standing
from weft.spark.fragments.wiring import Entry, RunContext, Wiring
from weft.spark.measuring.progress import StageTimes
from weft.spec import is_stateful

COLUMNS = (Column("ts", "TIMESTAMP"), Column("k", "STRING"), Column("v", "BIGINT"))


def joined(folder: Path) -> Deployment:
    """Two files joined within a minute."""
    sources = tuple(Source(name, "a", "csv", COLUMNS, f"{name}.csv", event_time="ts") for name in ("left", "right"))
    within = "r.ts BETWEEN l.ts AND l.ts + INTERVAL 1 MINUTE"
    sql = f"SELECT l.k, l.v, r.v rv FROM left l JOIN right r ON l.k = r.k AND {within}"
    pairs = Operator("pairs", ("left", "right"), sql=sql, watermarks=(Watermark("10 seconds"),))
    query = Query("q", (pairs,), (Sink("pairs", "parquet", "out"),))
    return Deployment((Site("a"),), sources, (query,), folder=str(folder))


@pytest.mark.spark
def test_columns_of_ghosts_are_read_not_known_to_be_null(spark: Any, tmp_path: Path) -> None:
    deployment = joined(tmp_path)
    for source in deployment.sources:
        (tmp_path / f"{source.name}.csv").write_text("2024-01-01T00:00:00Z,k,1\n")
    context = RunContext(deployment, Folders(tmp_path / ".weft"), analyse(spark, deployment).schemas)

    def stateful(query: Query, operator: Operator) -> bool:
        return is_stateful(operator)

    (fragment,) = cut(deployment, place(deployment), stateful, passes_by_sql)
    trunk = Wiring(spark, context, fragment, 1, Gate(tmp_path / "gate.json")).trunk()
    plan = trunk._jdf.queryExecution().analyzed().toString()
    # A key that is null for sure lets Spark drop every record of the other side in a batch that only ghosts make.
    assert "EventTimeWatermark" in plan
    assert "null AS" not in plan
    assert "cast(null as" not in plan


@pytest.mark.spark
def test_a_channel_is_read_by_as_many_tasks_as_there_are_cores(spark: Any, tmp_path: Path) -> None:
    source = Source("made", "a", "rate", COLUMNS, arrivals=Constant(1.0), event_time="ts")
    steps = (
        Operator("keep", ("made",), sql="SELECT * FROM made WHERE v > 1", site="a"),
        Operator("shape", ("keep",), sql="SELECT k FROM keep", site="b"),
    )
    query = Query("q", steps, (Sink("shape", "parquet", "out"),))
    deployment = Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b"),), folder=str(tmp_path))
    context = RunContext(deployment, Folders(tmp_path / ".weft"), analyse(spark, deployment).schemas)
    fragments = cut(deployment, place(deployment), lambda _query, operator: is_stateful(operator), passes_by_sql)
    (reading,) = [fragment for fragment in fragments if fragment.site == "b"]
    cores = SimpleNamespace(defaultParallelism=7)
    session = SimpleNamespace(readStream=spark.readStream, sparkContext=cores)
    trunk = Wiring(session, context, reading, 1, Gate(tmp_path / "gate.json")).trunk()  # type: ignore[arg-type]
    leaf = trunk._jdf.queryExecution().analyzed().collectLeaves().apply(0)
    assert leaf.extraOptions().get("tasks") == "7"


@pytest.mark.spark
def test_a_move_that_is_called_off_leaves_no_reader_that_channels_wait_for(spark: Any, tmp_path: Path) -> None:
    source = Source("made", "a", "rate", COLUMNS, arrivals=Constant(1.0), event_time="ts")
    steps = (
        Operator("keep", ("made",), sql="SELECT * FROM made WHERE v > 1", site="a"),
        Operator("shape", ("keep",), sql="SELECT k FROM keep", site="b"),
    )
    query = Query("q", steps, (Sink("shape", "parquet", "out"),))
    deployment = Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b"),), folder=str(tmp_path))
    context = RunContext(deployment, Folders(tmp_path / ".weft"), analyse(spark, deployment).schemas)
    fragments = cut(deployment, place(deployment), lambda query, operator: False, passes_by_sql)
    shape = next(one for one in fragments if "shape" in one.operators)
    settings = RunSettings(spark, Times({}), lambda commit: None)
    engine = SparkEngine("a", settings, context, lambda home, site: None, StageTimes(spark))
    readers, task = context.folders.stream("q.keep").readers, Task(shape, plan=1)
    engine.warm(task, [])
    assert [path.name.partition("~")[0] for path in readers.iterdir()] == [shape.id]
    engine.discard_prepared(task)
    assert list(readers.iterdir()) == []
    # One that is in force, wherever it runs, keeps its place; where it is not known how it stands, too.
    entries = (Entry("q.keep", "shape", f"channel_{spark_name('q.keep_shape')}", True, None, 0),)
    for ends in ([Standing(shape, 0, entries)], None):
        engine.prepared._plan(task, ends)
        engine.discard_prepared(task)
        assert len(list(readers.iterdir())) == 1


UNITED = """
from pyspark.sql import DataFrame

def unite(fast: DataFrame, slow: DataFrame) -> DataFrame:
    return fast.unionByName(slow)
"""


@pytest.mark.spark
def test_streams_that_a_function_unites_are_as_far_as_the_slowest(spark: Any, folder: Path) -> None:
    (folder / "united.py").write_text(UNITED)
    for name, each in (("fast", 20), ("slow", 1)):
        (folder / name).mkdir()
        for minute in range(0, 40, each):
            lines = [f"2024-01-01T00:{at:02d}:00Z,{name},1\n" for at in range(minute, minute + each)]
            path = folder / name / f"{minute:02d}.csv"
            path.write_text("".join(lines))
            os.utime(path, (1_700_000_000 + minute,) * 2)  # Spark reads the oldest first
    one_each = {"maxFilesPerTrigger": "1"}
    sources = tuple(Source(name, "a", "csv", COLUMNS, name, one_each, event_time="ts") for name in ("fast", "slow"))
    counts = "SELECT window(ts, '1 minute') w, count(*) n FROM both GROUP BY 1"
    operators = (
        Operator("both", ("fast", "slow"), call="united:unite", site="a"),
        Operator("counts", ("both",), sql=counts, watermarks=(Watermark("0 seconds", "ts"),), site="b"),
    )
    query = Query("q", operators, (Sink("counts", "parquet", "out"),))
    deployment = Deployment((Site("a"), Site("b")), sources, (query,), (Link("a", "b"),), folder=str(folder))
    Run(deployment, folder / ".weft", Options(until_done=True)).go()
    found = spark.read.parquet(str(folder / "out"))
    assert found.selectExpr("count(*)", "min(n)", "max(n)").first() == (40, 2, 2)
