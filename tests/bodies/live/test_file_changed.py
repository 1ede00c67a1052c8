"""A stopped run goes on with another file: queries more, one that reads a stream of the first, and one less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live import journal
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import CannotRun

pytestmark = pytest.mark.spark
RECORDS, RATE = 1400, 100
HEAD = """
weft: 1
sites: [{name: a, capacity: CAPACITY}, {name: b}]
links: [{from: a, to: b}]
sources:
  - {name: s, site: a, format: replay, path: s.csv, schema: "ts TIMESTAMP, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
"""
FIRST = """
  - name: q
    operators:
      - {name: keep, from: [s], site: a, sql: "SELECT * FROM s WHERE v % 3 <> 0"}
      - {name: odd, from: [keep], site: PIN, sql: "SELECT v FROM keep WHERE v % 2 = 1"}
    sink: {from: odd, format: parquet, path: out/q}
"""
OTHERS = """
  - name: r
    operators: [{name: even, from: [q.keep], site: b, sql: "SELECT v FROM q.keep WHERE v % 2 = 0"}]
    sink: {from: even, format: parquet, path: out/r}
  - name: t
    operators: [{name: tens, from: [s], site: b, sql: "SELECT v FROM s WHERE v % 10 = 0"}]
    sink: {from: tens, format: parquet, path: out/t}
"""


def run_with(folder: Path, text: str, **options: Any) -> Run:
    (folder / "weft.yaml").write_text(text.replace("RATE", str(RATE)))
    run = Run(weft.spec.load(folder / "weft.yaml"), folder / "state", Options(**options))
    run.go()
    return run


def results(session: Any, folder: Path, name: str) -> list[int]:
    return sorted(row.v for row in session.read.parquet(str(folder / "out" / name)).collect())


def test_a_run_goes_on_with_a_file_whose_queries_have_come_and_gone(spark: Any, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:{v // 60:02d}:{v % 60:02d}Z,{v}\n" for v in range(RECORDS)]
    (tmp_path / "s.csv").write_text("".join(lines))
    first = HEAD.replace("CAPACITY", "1") + FIRST.replace("PIN", "a").lstrip("\n")
    run_with(tmp_path, first, seconds=2)
    more = HEAD.replace("CAPACITY", "2") + FIRST.replace("PIN", "b").lstrip("\n") + OTHERS.lstrip("\n")
    run = run_with(tmp_path, more, until_done=True)
    assert [asked.state for asked in run.changes.asked.values()] == ["done", "done"]  # type: ignore[union-attr]
    held = journal.read(run.state)
    assert held is not None
    assert held.placement.home("q.odd") == "b", "the file pins it there now"
    assert results(spark, tmp_path, "q") == [v for v in range(RECORDS) if v % 3 and v % 2]
    assert results(spark, tmp_path, "t") == [v for v in range(RECORDS) if v % 10 == 0], "it reads its source whole"
    # It reads another's stream from when it was added on, once each.
    whole = [v for v in range(RECORDS) if v % 3 and v % 2 == 0]
    found = results(spark, tmp_path, "r")
    assert found == whole[len(whole) - len(found) :]
    assert found


def test_a_query_that_was_removed_comes_again_and_reads_its_source_whole(spark: Any, tmp_path: Path) -> None:
    lines = [f"2024-01-01T00:{v // 60:02d}:{v % 60:02d}Z,{v}\n" for v in range(800)]
    (tmp_path / "s.csv").write_text("".join(lines))
    first = HEAD.replace("CAPACITY", "1") + FIRST.replace("PIN", "a").lstrip("\n")
    tens = OTHERS[OTHERS.index("  - name: t") :]
    for _ in range(5):  # a busy machine may take longer to give the first results
        run_with(tmp_path, first + tens, seconds=2)
        if list((tmp_path / "out" / "t").glob("*.parquet")):
            break
    run_with(tmp_path, first, seconds=1)
    with pytest.raises(CannotRun, match="give its sink another path"):
        run_with(tmp_path, first + tens, seconds=1)
    run = run_with(
        tmp_path,
        first + tens.replace("out/t", "out/t2") + tens.replace(" t\n", " u\n").replace("out/t", "out/u"),
        until_done=True,
    )
    assert any("t was in the file before, and begins anew" in note for note in run.notes)
    assert results(spark, tmp_path, "t2") == [v for v in range(800) if v % 10 == 0]
    assert results(spark, tmp_path, "u") == results(spark, tmp_path, "t2")
    assert results(spark, tmp_path, "q") == [v for v in range(800) if v % 3 and v % 2]
