"""One file runs on Spark: sources, sinks, operators and policies, in as few runs as tell."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.bodies.live.open_sockets import elsewhere, family, listening, told_by_the_system
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import CannotRun

pytestmark = pytest.mark.spark

LISTENING: set[tuple[str, int]] = set()
RULES = """
from pyspark.sql import functions as F

def above(df, least):
    return df.filter(F.col("v") > least)

def once(df):
    return df.dropDuplicates(["k", "ts"])
"""

EVERYTHING = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core, delay_ms: 1}]
sources:
  - {name: lines, site: edge, format: csv, path: "in/lines-*.csv", options: {header: true}, bad_records: skip,
     schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts}
  - {name: docs, site: core, format: json, path: in/docs, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts}
  - {name: played, site: edge, format: replay, path: in/played.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT",
     event_time: ts, arrivals: {kind: constant, rate_per_s: 200}}
queries:
  - name: fork
    promise: {latency_ms: 60000}
    operators:
      - {name: good, from: [lines], sql: "SELECT * FROM lines WHERE v >= 0"}
      - {name: big, from: [good], call: "rules:above", args: {least: 50}}
      - {name: small, from: [good], sql: "SELECT k, v FROM good WHERE v <= 50", site: core}
    sink:
      - {from: big, format: csv, path: out/big, options: {header: true}}
      - {from: small, format: json, path: out/small}
      - {from: good, format: parquet, path: out/good, site: core}
  - name: sums
    operators:
      - {name: total, from: [docs], sql: "SELECT k, sum(v) AS v, count(*) AS n FROM docs GROUP BY k"}
    sink: {from: total, format: csv, path: out/sums, mode: update, options: {header: true}}
  - name: unique
    operators:
      - {name: once, from: [played], call: "rules:once", watermark: {column: ts, delay: 1 minute}, site: core}
    sink: {from: once, format: parquet, path: out/unique}
"""


def write_inputs(folder: Path) -> None:
    (folder / "rules.py").write_text(RULES)
    (folder / "in" / "docs").mkdir(parents=True)
    for number in range(2):
        with open(folder / "in" / f"lines-{number}.csv", "w", encoding="utf-8") as file:
            file.write("ts,k,v\n")
            for i in range(100):
                file.write(f"2024-01-01T00:{i % 60:02d}:00Z,k{i % 3},{i - 5}\n")
            file.write("not a time,k,many\n")
        with open(folder / "in" / "docs" / f"{number}.json", "w", encoding="utf-8") as file:
            for i in range(30):
                file.write(json.dumps({"ts": "2024-01-01T00:00:00Z", "k": f"k{i % 4}", "v": i}) + "\n")
    with open(folder / "in" / "played.csv", "w", encoding="utf-8") as file:
        for i in range(150):
            file.write(f"2024-01-01T00:00:{i // 3 % 60:02d}Z,k{i // 3},{i}\n")


def rows(folder: Path, pattern: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for path in sorted(folder.glob(pattern)):
        with open(path, encoding="utf-8") as file:
            found.extend(csv.DictReader(file) if path.suffix == ".csv" else (json.loads(line) for line in file))
    return found


@pytest.fixture(scope="module")
def everything(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """One run over everything, to its end."""
    folder = tmp_path_factory.mktemp("everything")
    write_inputs(folder)
    file = folder / "weft.yaml"
    file.write_text(EVERYTHING)
    return folder, Run(weft.spec.load(file), folder / ".weft", Options(until_done=True)).go(look_around)


def look_around(run: Run) -> None:
    """Where this process, its Java and its Python processes listen, once while records flow."""
    if run.phase == "running" and not LISTENING and Path("/proc/net/tcp").exists():
        LISTENING.update(listening(family()))


@told_by_the_system
@pytest.mark.usefixtures("everything")
def test_a_run_listens_on_loopback_only() -> None:
    assert LISTENING, "Java listens for Python"
    assert elsewhere(LISTENING) == set()


def test_a_fork_gives_each_of_its_sinks_every_record_once(everything: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = everything
    assert sorted(int(row["v"]) for row in rows(folder, "out/big/*.csv")) == sorted([*range(51, 95)] * 2)
    assert sorted(int(row["v"]) for row in rows(folder, "out/small/*.json")) == sorted([*range(51)] * 2)


def test_a_sink_at_another_site_gets_the_same_records(spark: Any, everything: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = everything
    assert spark.read.parquet(str(folder / "out/good")).count() == 190


def test_bad_records_are_left_out_and_counted(everything: tuple[Path, dict[str, Any]]) -> None:
    _, summary = everything
    assert summary["queries"]["fork"]["bad_records"] == 2
    assert summary["queries"]["fork"]["records_in"] == 202


def test_update_mode_leaves_the_last_value_of_every_key(everything: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = everything
    found = {row["k"]: (int(row["v"]), int(row["n"])) for row in rows(folder, "out/sums/*.csv")}
    assert len(rows(folder, "out/sums/*.csv")) == 4
    assert found == {
        f"k{k}": (2 * sum(i for i in range(30) if i % 4 == k), 2 * len([i for i in range(30) if i % 4 == k]))
        for k in range(4)
    }


def test_a_replay_gives_the_recording_once_at_its_rate(spark: Any, everything: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = everything
    assert spark.read.parquet(str(folder / "out/unique")).count() == 50
    assert summary["queries"]["unique"]["records_in"] == 150
    assert summary["queries"]["unique"]["latency_ms"]["p50"] > 0


def test_records_out_of_every_operator_are_known(everything: tuple[Path, dict[str, Any]]) -> None:
    _, summary = everything
    counts: dict[str, int] = {}
    for fragment in summary["fragments"].values():
        counts.update(fragment["records_out"])
    assert counts["good"] == 190
    assert counts["big"] == 88
    assert counts["small"] == 102
    assert counts["once"] == 50


def test_sites_used_cpu_time(everything: tuple[Path, dict[str, Any]]) -> None:
    _, summary = everything
    assert all(site["utilisation"] > 0 for site in summary["sites"].values())


def test_a_finished_run_gives_its_summary_again_and_refuses_new_files(everything: tuple[Path, dict[str, Any]]) -> None:
    folder, summary = everything
    deployment = weft.spec.load(folder / "weft.yaml")
    again = Run(deployment, folder / ".weft", Options(until_done=True)).go()
    assert again["queries"] == summary["queries"]
    extra = folder / "in" / "docs" / "9.json"
    extra.write_text("{}\n")
    try:
        with pytest.raises(CannotRun, match="--fresh"):
            Run(deployment, folder / ".weft", Options(until_done=True)).go()
    finally:
        extra.unlink()


def test_a_changed_file_is_refused_with_the_difference(everything: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = everything
    changed = folder / "changed.yaml"
    changed.write_text(EVERYTHING.replace("WHERE v >= 0", "WHERE v >= 1"))
    with pytest.raises(CannotRun, match=r"operator fork\.good: sql was"):
        Run(weft.spec.load(changed), folder / ".weft", Options(until_done=True)).go()


def test_an_endless_source_never_gets_done(tmp_path: Path) -> None:
    file = tmp_path / "weft.yaml"
    file.write_text(
        """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", arrivals: {kind: constant, rate_per_s: 1}}]
queries: [{name: q, operators: [{name: o, from: [s], sql: "SELECT * FROM s"}], sink: {from: o, format: console}}]
"""
    )
    with pytest.raises(CannotRun, match="endless source s"):
        Run(weft.spec.load(file), tmp_path / ".weft", Options(until_done=True)).go()
