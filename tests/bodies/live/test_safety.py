"""What goes wrong on disk while Spark runs is told by the file's name; put right, the run goes on and is exact."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.bodies.live.moving import delivered, differing, expected, make
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.run import Options, Run
from weft.spark.channels.log_writer import LogWriter
from weft.spark.fragments.draining import DrainingRun
from weft.spark.sources import recordings

pytestmark = pytest.mark.spark
WAIT_S_MAX = 120.0
TWO_SITES = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b, delay_ms: 3000, emulate: true}]
sources:
  - {name: n, site: a, format: replay, path: n.csv, schema: "v BIGINT", arrivals: {kind: constant, rate_per_s: 100}}
queries:
  - name: q
    operators:
      - {name: keep, from: [n], sql: "SELECT v FROM n WHERE v % 2 = 0", site: a}
      - {name: more, from: [keep], sql: "SELECT v, v * v AS w FROM keep", site: b}
    sink: {from: more, format: parquet, path: out}
"""


def two_sites(folder: Path, records: int = 600) -> Run:
    """Records on a slow way from one site to another."""
    if not (folder / "n.csv").exists():  # written again it would be another file, which a run that closes refuses
        (folder / "n.csv").write_text("".join(f"{v}\n" for v in range(records)))
    (folder / "d.yaml").write_text(TWO_SITES)
    return Run(weft.spec.load(folder / "d.yaml"), folder / "state", Options(until_done=True))


def values(session: Any, folder: Path) -> list[int]:
    files = [str(path) for path in (folder / "out").glob("*.parquet")]
    return sorted(row["v"] for row in session.read.parquet(*files).collect()) if files else []


def harmed(run: Run, folder: Path, harm: Callable[[Path], None]) -> None:
    """Do something to the first segment of the stream as soon as it is there."""

    def wait() -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        manifests = folder / "state" / "streams" / "q.keep" / "manifests"
        while time.monotonic() < deadline and run.phase not in ("failed", "stopped"):
            if manifests.is_dir() and any(name.isdigit() for name in os.listdir(manifests)):
                harm(folder / "state" / "streams" / "q.keep")
                return
            time.sleep(0.01)

    threading.Thread(target=wait, daemon=True).start()


def test_a_segment_that_is_garbled_before_it_is_read_ends_the_run_by_its_name(spark: Any, tmp_path: Path) -> None:
    # Few records: the source is done, and windows are being closed, before the first of them is read.
    run = two_sites(tmp_path, 100)
    kept: dict[Path, bytes] = {}

    def garble(stream: Path) -> None:
        [path] = sorted(stream.glob("data/0000000000-*/*.parquet"))[:1]
        kept[path] = path.read_bytes()
        content = bytearray(kept[path])
        content[len(content) // 2] ^= 4
        path.write_bytes(bytes(content))

    harmed(run, tmp_path, garble)
    with pytest.raises(RunFailed, match=r"data/0000000000-1/part-.*\.parquet: is damaged"):
        run.go()
    for path, content in kept.items():
        path.write_bytes(content)
    two_sites(tmp_path).go()
    assert values(spark, tmp_path) == list(range(0, 100, 2))


def test_a_stream_that_vanishes_in_mid_run_is_not_made_again_and_goes_on_when_it_is_back(
    spark: Any, tmp_path: Path
) -> None:
    run = two_sites(tmp_path)
    harmed(run, tmp_path, lambda stream: os.rename(stream, tmp_path / "away"))
    with pytest.raises(RunFailed, match=r"streams/q\.keep.*is gone"):
        run.go()
    left = tmp_path / "state" / "streams" / "q.keep"
    assert not (left / "manifests").exists()
    if left.exists():
        left.rename(tmp_path / "remains")
    os.rename(tmp_path / "away", left)
    two_sites(tmp_path).go()
    assert values(spark, tmp_path) == list(range(0, 600, 2))


def test_a_recording_that_was_cut_off_is_begun_anew(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = make(tmp_path, 9, 300, 300)
    monkeypatch.setattr(recordings, "RECORDS_PER_SEGMENT", 100)
    commit = LogWriter.commit

    def cut(self: LogWriter, manifest: Any) -> Any:
        if manifest.writer == "recording" and manifest.segment == 2:
            raise KeyboardInterrupt
        return commit(self, manifest)

    monkeypatch.setattr(LogWriter, "commit", cut)
    with pytest.raises(KeyboardInterrupt):
        Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    monkeypatch.undo()
    Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}


def test_a_run_that_is_copied_whole_goes_on_where_it_was_copied_to(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    deployment = make(tmp_path / "one", 21, 400, 200)

    def stop_soon(run: Run) -> None:
        if run.flowing_s is not None and run.flowed_s() > 1.5:
            run.stop()

    Run(deployment, tmp_path / "one" / "state", Options()).go(stop_soon)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copied = weft.spec.load(tmp_path / "two" / "weft.yaml")
    run = Run(copied, tmp_path / "two" / "state", Options(until_done=True))
    run.go()
    assert any("goes on here" in note for note in run.notes)
    assert differing(delivered(spark, copied), expected(spark, copied)) == {}


def test_a_file_that_comes_late_with_an_old_date_is_read_like_any_other(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "new.csv").write_text("1\n2\n")
    (tmp_path / "d.yaml").write_text("""
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "v BIGINT"}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: parquet, path: out}}
""")
    deployment = weft.spec.load(tmp_path / "d.yaml")
    first = Run(deployment, tmp_path / "state", Options())
    first.go(lambda run: run.stop() if any((tmp_path / "out").glob("*.parquet")) else None)
    (tmp_path / "in" / "old.csv").write_text("3\n4\n")
    os.utime(tmp_path / "in" / "old.csv", (1_600_000_000, 1_600_000_000))
    Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    assert values(spark, tmp_path) == [1, 2, 3, 4]


def test_a_first_batch_that_is_quicker_than_the_start_of_its_fragment_counts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text("1\n2\n")
    (tmp_path / "d.yaml").write_text("""
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "v BIGINT"}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: parquet, path: out}}
""")

    def waits_long(run: DrainingRun) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not (run.checkpoint / "commits" / "0").exists() and time.monotonic() < min(deadline, begun_s + 5):
            time.sleep(0.02)

    begun_s = time.monotonic()
    monkeypatch.setattr(DrainingRun, "_wait_for_sources", waits_long)
    Run(weft.spec.load(tmp_path / "d.yaml"), tmp_path / "state", Options(until_done=True)).go()
    assert values(spark, tmp_path) == [1, 2]


def test_files_that_spark_would_read_twice_beside_an_odd_name_are_refused_until_it_is_renamed(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for at, name in enumerate(["a.csv", "b [1].csv", "c.csv"]):
        (tmp_path / "in" / name).write_text(f"{at}\n")
    (tmp_path / "d.yaml").write_text("""
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "v BIGINT"}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT v FROM s"}], sink: {from: o, format: parquet, path: out}}
""")
    deployment = weft.spec.load(tmp_path / "d.yaml")
    with pytest.raises(
        RunFailed, match=r"b \[1\]\.csv: `\[` in its path makes Spark read the other files of its batch twice"
    ):
        Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    os.rename(tmp_path / "in" / "b [1].csv", tmp_path / "in" / "b.csv")
    Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    assert values(spark, tmp_path) == [0, 1, 2]


def test_a_sink_on_the_console_shows_every_record_once(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.csv").write_text("1,one\n2,two\n")
    (tmp_path / "d.yaml").write_text("""
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: in, schema: "id BIGINT, v STRING"}]
queries:
  - {name: q, operators: [{name: o, from: [s], sql: "SELECT id, v FROM s"}], sink: {from: o, format: console}}
""")
    deployment = weft.spec.load(tmp_path / "d.yaml")
    summary = Run(deployment, tmp_path / "state", Options(until_done=True)).go()
    assert summary["queries"]["q"]["records_out"] == 2
    assert sorted(line for line in capsys.readouterr().out.splitlines() if "|" in line) == ["1 | one", "2 | two"]
