"""Spark is set as a file says; a program's own session keeps its settings; what is made is private and goes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import weft
from tests import ROOT
from weft.spark.session.lent import Lent, let_go
from weft.spark.session.private_files import CLASS
from weft.spark.session.settings import BULK, EXCLUDED, JAVA_OPTIONS, SLOW, settings, with_conf
from weft.spark.session.starting import start_session

WAIT_S_MAX = 240.0
FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
spark: {master: "local[3]", conf: {spark.sql.shuffle.partitions: 3}}
sources:
  - {name: r, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: 50}}
queries:
  - name: q
    operators:
      - {name: keep, from: [r], site: a, sql: "SELECT * FROM r WHERE n % 2 = 0"}
      - {name: sums, from: [keep], site: b, watermark: 0 seconds,
         sql: "SELECT window(ts, '1 second') w, count(*) n FROM keep GROUP BY 1"}
    sink: {from: sums, format: csv_or_parquet, path: out}
"""
BORROWING = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
mine = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "Europe/Vienna").config("spark.sql.shuffle.partitions", "16")
        .config("spark.sql.caseSensitive", "true").getOrCreate())
mine.conf.set("spark.sql.csv.filterPushdown.enabled", "true")
mine.range(3).createOrReplaceTempView("left")
settings, environment, inside = dict(mine.conf.getAll), dict(os.environ), dict(mine.sparkContext.environment)
mask = os.umask(0o022)
os.umask(mask)

from dataclasses import replace
from tests.bodies.live import moving
from weft.bodies.live.run import Options, Run
from weft.model import MoveAt, Operator, Query, Sink
folder = Path("deployed")
folder.mkdir()
operator, sink = Operator("shout", ("left",), call="shouting:shout"), Sink("shout", "parquet", "out/loud")
called = Query("called", (operator,), (sink,))
(folder / "shouting.py").write_text(
    "from pyspark.sql import functions as F\\n"
    "def loud(text): return text + '!'\\n"
    "def shout(left): return left.withColumn('k', F.udf(loud, 'string')('k'))\\n")
deployment = moving.make(folder, 3, 60, 30)
moves = (MoveAt(0.5, "windowed.totals", "c"), MoveAt(1.0, "plain.small", "c"))
both = deployment.queries[:2]  # without windows, and with
deployment = replace(deployment, queries=(*both, called), scenario=moves)
Run(deployment, folder / ".weft", Options(until_done=True)).go()

assert dict(mine.conf.getAll) == settings
assert SparkSession.getActiveSession() is mine
assert mine._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession().get().equals(mine._jsparkSession)
assert dict(os.environ) == environment
assert mine.sparkContext.environment == inside
assert os.umask(mask) == mask
assert mine.table("left").count() == 3
other = mine.newSession()
for key, value in (("session.timeZone", "UTC"), ("caseSensitive", "false")):
    other.conf.set("spark.sql." + key, value)
plain = replace(deployment, queries=both)
assert moving.differing(moving.delivered(other, plain), moving.expected(other, plain)) == {}
loud = [row.k for row in other.read.parquet(str(folder.resolve() / "out" / "loud")).collect()]
assert len(loud) == 60 and all(text.endswith("!") for text in loud)
print("as before")
"""


def environment(folder: Path) -> dict[str, str]:
    """What a program needs to find the tests' helpers, with temporary space of its own."""
    (folder / "tmp").mkdir()
    path = os.pathsep.join([str(ROOT), str(Path(weft.__file__).parent.parent)])
    return {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(folder / "tmp")}


def test_the_users_settings_win_and_java_hears_of_both(tmp_path: Path) -> None:
    ours = settings(tmp_path / "log4j2.properties", tmp_path)
    both = with_conf(ours, {"spark.ui.enabled": "true", JAVA_OPTIONS: "-Dmine=1"})
    assert both["spark.ui.enabled"] == "true"
    assert both[JAVA_OPTIONS].startswith(ours[JAVA_OPTIONS])
    assert both[JAVA_OPTIONS].endswith(" -Dmine=1")
    left_out = with_conf(ours, {EXCLUDED: "a.Rule"})[EXCLUDED]
    assert left_out == f"{ours[EXCLUDED]},a.Rule"
    for java in (BULK, SLOW):
        ours = settings(tmp_path / "log4j2.properties", tmp_path, java)
        chosen = with_conf(ours, {JAVA_OPTIONS: "-XX:+UseG1GC"})[JAVA_OPTIONS]
        assert re.findall(r"Use\w+GC", chosen) == ["UseG1GC"], "Java starts with one collector only"
        assert "MaxNewSize" not in chosen
        assert "java.io.tmpdir" in chosen


def test_sockets_are_given_up_where_their_names_would_be_too_long(tmp_path: Path) -> None:
    enabled = "spark.python.unix.domain.socket.enabled"
    assert settings(tmp_path / "x", Path("/tmp/weft-0123456789"))[enabled] == "true"
    assert settings(tmp_path / "x", Path("/" + "d" * 60))[enabled] == "false"


@pytest.mark.spark
def test_a_programs_own_session_is_as_before_after_a_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BORROWING],
        cwd=tmp_path,
        # Its Spark is not ours to set: of itself Java would compile a short program at length.
        env={**environment(tmp_path), "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout.endswith("as before\n"), done.stderr[-3000:]


@pytest.mark.spark
def test_a_run_is_private_uses_the_spark_it_was_told_and_leaves_nothing_in_temporary_space(tmp_path: Path) -> None:
    variables = environment(tmp_path)
    file = tmp_path / "weft.yaml"
    file.write_text(FILE.replace("csv_or_parquet", "parquet"))
    command = [sys.executable, "-m", "weft", "run", str(file)]
    before = set(tmp_path.rglob("*"))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(command, cwd=tmp_path, env=variables, start_new_session=True, **quiet)
    try:
        _until(lambda: any((tmp_path / "out").glob("*.parquet")))
        (folder,) = (tmp_path / "tmp").iterdir()
        assert (tmp_path / ".weft" / "weft.yaml" / "temporary").read_text().splitlines()[0] == str(folder)
        state = tmp_path / ".weft" / "weft.yaml" / "fragments"
        assert {path.name for path in state.glob("q.sums/checkpoint-*/state/0/*") if path.name.isdigit()} == {*"012"}
        made = [path for path in tmp_path.rglob("*") if path not in before and not path.is_symlink()]
        assert len(made) > 50
        assert [path for path in made if _mode(path) & 0o077] == []
        forker = int((folder / "readers" / "ready").read_text())
        os.kill(forker, signal.SIGKILL)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert folder.exists()
    again = subprocess.run(
        [*command, "--seconds", "1"], cwd=tmp_path, env=variables, capture_output=True, timeout=300, check=False
    )
    assert again.returncode == 0, again.stderr.decode()[-2000:]
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.spark
def test_spark_writes_private_files_without_a_process_for_each(spark: Any, tmp_path: Path) -> None:
    java = spark._jvm
    files = java.org.apache.hadoop.fs.FileSystem.get(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == CLASS
    spark.range(10).write.parquet(str(tmp_path / "out"))
    assert files.mkdirs(java.org.apache.hadoop.fs.Path(str(tmp_path / "made")))
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "out").glob("*")} == {"0o600"}
    assert oct((tmp_path / "made").stat().st_mode & 0o777) == "0o700"
    # What is to be for others too is set as asked.
    open_to_all = java.org.apache.hadoop.fs.permission.FsPermission("755")
    files.setPermission(java.org.apache.hadoop.fs.Path(str(tmp_path / "made")), open_to_all)
    assert oct((tmp_path / "made").stat().st_mode & 0o777) == "0o755"


@pytest.mark.spark
def test_a_session_beside_a_programs_own_serves_the_next_run_that_asks_for_the_same(spark: Any, tmp_path: Path) -> None:
    """Spark starts Python processes anew for each session: 2 s of a run's first batch."""
    found = []
    for partitions in ("6", "6", "7"):
        lent = Lent.now()
        found.append(start_session(tmp_path, conf={"spark.sql.shuffle.partitions": partitions}))
        let_go(found[-1], lent)
    assert found[0] is found[1]
    assert found[2] is not found[0]
    lent = Lent.now()
    first, second = (start_session(tmp_path, conf={"spark.sql.shuffle.partitions": "6"}) for _ in range(2))
    assert first is not second  # two at once are kept apart
    let_go(first, lent)
    let_go(second, lent)


@pytest.mark.spark
def test_a_session_beside_one_that_knows_our_sources_knows_them_too(spark: Any, tmp_path: Path) -> None:
    before, known = dict(spark.conf.getAll), dict(spark.sparkContext.environment)
    lent = Lent.now()
    beside = start_session(tmp_path, [str(tmp_path)], conf={"spark.sql.shuffle.partitions": "5"})
    assert beside is not spark
    assert beside.sparkContext is spark.sparkContext
    assert beside.conf.get("spark.sql.shuffle.partitions") == "5"
    reader = beside.readStream.format("weft_log").name("x").schema("n INT").option("path", str(tmp_path))
    assert reader.option("reader", "x").load().isStreaming
    assert str(tmp_path) in spark.sparkContext.environment["PYTHONPATH"]
    let_go(beside, lent)
    assert (dict(spark.conf.getAll), dict(spark.sparkContext.environment)) == (before, known)
    assert type(spark).getActiveSession() is spark


def _until(condition: object) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.2)


def _mode(path: Path) -> int:
    """The mode of a file; one that has gone meanwhile is private enough."""
    try:
        return path.lstat().st_mode & 0o777
    except FileNotFoundError:
        return 0
