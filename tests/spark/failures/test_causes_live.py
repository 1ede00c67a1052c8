"""What a user is told when a run fails on Spark: the file and line, in the error, the status and the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import CannotRun
from weft.spark.failures.causes import LOG
from weft.spark.fragments.operators import BadOperator

pytestmark = pytest.mark.spark

FILE = """
weft: 1
sites: [{{name: a}}]
sources:
  - {{name: r, site: a, format: {format}, path: {path}, schema: "id INT, v DOUBLE"{more}}}
queries:
  - name: q
    operators: [{{name: o, from: [r], {operator}}}]
    sink: {{from: o, format: parquet, path: out}}
"""
PLAYED = ", arrivals: {kind: constant, rate_per_s: 100}"
ALL = 'sql: "SELECT id, v FROM r"'


def fails(folder: Path, data: str, operator: str = ALL, format_: str = "csv", path: str = "in", more: str = "") -> str:
    """What a run over one file of data fails with; its status says the same, and the log holds Spark's own text."""
    (folder / "in").mkdir()
    (folder / "in" / ("x.json" if format_ == "json" else "x.csv")).write_text(data)
    (folder / "weft.yaml").write_text(FILE.format(format=format_, path=path, operator=operator, more=more))
    run = Run(weft.spec.load(folder / "weft.yaml"), folder / ".weft", Options(until_done=True))
    with pytest.raises((RunFailed, BadOperator)) as failure:
        run.go()
    status = json.loads((folder / ".weft" / "status.json").read_text())
    assert (status["phase"], status["reason"]) == ("failed", str(failure.value))
    assert "Traceback" in (folder / ".weft" / "logs" / LOG).read_text()
    return str(failure.value)


def test_a_bad_record_of_a_file_source_ends_the_run_at_once_with_its_line(spark: Any, folder: Path) -> None:
    said = fails(folder, "1,1.5\n2,2.5\n3,oops\n")
    assert said.startswith("q.o: in/x.csv, line 3: column v: `oops` is no DOUBLE: 3,oops;")
    assert (folder / ".weft" / "logs" / LOG).read_text().count("q.o: in/x.csv") == 1, "it was tried again"


def test_a_bad_json_record_is_told_with_its_line(spark: Any, folder: Path) -> None:
    said = fails(folder, '{"id":1,"v":1.5}\n{"id":3,"v":"oops"}\n', format_="json")
    assert said.startswith("q.o: in/x.json, line 2: column v: `oops` is no DOUBLE:")


def test_a_bad_record_of_a_replay_is_told_with_its_line(spark: Any, folder: Path) -> None:
    said = fails(folder, "1,1.5\n3,oops\n", format_="replay", path="in/x.csv", more=PLAYED)
    assert said.startswith("in/x.csv, line 2: column v: `oops` is no DOUBLE: 3,oops;")
    assert said.endswith("`bad_records: skip` on source r leaves such records out and counts them")


def test_a_function_that_raises_while_it_is_built_is_told_with_its_line(spark: Any, folder: Path) -> None:
    (folder / "built_rules.py").write_text("def over(df):\n    return {}['nope']\n")
    said = fails(folder, "1,1.5\n", 'call: "built_rules:over"')
    assert said == "operator q.o: KeyError: 'nope' (built_rules.py:2, in over)"


UDF = """\
from pyspark.sql import functions as F

@F.udf("double")
def third(v):
    raise ValueError("no third: way")

def over(df):
    return df.withColumn("v", third("v"))
"""


def test_a_function_that_raises_in_a_batch_is_told_with_its_line(spark: Any, folder: Path) -> None:
    (folder / "batch_rules.py").write_text(UDF)
    said = fails(folder, "1,1.5\n", 'call: "batch_rules:over"')
    assert said == "q.o: ValueError: no third: way (batch_rules.py:5, in third)"


def test_sql_that_divides_by_zero_is_told_with_the_expression(spark: Any, folder: Path) -> None:
    said = fails(folder, "1,1.5\n", 'sql: "SELECT v / (id - id) AS v FROM r"')
    assert said.startswith("q.o: Division by zero. Use `try_divide`")
    assert said.endswith("(in `v / (id - id)`)")


def test_a_damaged_state_file_is_named_and_not_tried_again(spark: Any, folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "x.csv").write_text("1,1.5\n2,2.5\n")
    text = FILE.format(format="csv", path="in", operator='sql: "SELECT DISTINCT id FROM r"', more="")
    (folder / "weft.yaml").write_text(text)
    deployment = weft.spec.load(folder / "weft.yaml")
    Run(deployment, folder / ".weft", Options(seconds=4)).go()
    deltas = sorted((folder / ".weft" / "fragments").rglob("*.delta"))
    assert deltas
    for delta in deltas:
        delta.write_bytes(delta.read_bytes()[:10])
    (folder / "in" / "y.csv").write_text("5,1.5\n6,2.5\n")
    with pytest.raises(CannotRun, match=r"state/0/./.\.delta: is damaged: its content is not what Spark wrote; "):
        Run(deployment, folder / ".weft", Options(seconds=30)).go()
    for ledger in (folder / ".weft" / "fragments").rglob("ledger-*.json"):
        ledger.unlink()  # then it is Spark that finds it out
    with pytest.raises(RunFailed, match=r"q\.o: .*\.delta is damaged; put it back from a copy, or `--fresh`"):
        Run(deployment, folder / ".weft", Options(seconds=30)).go()
