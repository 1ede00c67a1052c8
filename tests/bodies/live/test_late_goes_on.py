"""Late records are counted and kept once each, through stops, moves and kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests import ROOT
from tests.bodies.live.late_shapes import SHAPES, SOURCES, START, Row, drawn, expected, given, late_ids, lay_down
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark
WAIT_S_MAX = 240.0
# Where a process may end: before or after (!) a batch's results, or its late records, are committed.
POINTS = (
    "!link out/.window.weft/manifests/0@2",
    "link late/.window.weft/manifests/0@1",
    "!link late/.window.weft/manifests/0@1",
    "!link late/window/part-@1",
)


def in_time(files: int, each: int) -> list[list[Row]]:
    """An hour of records in every file."""
    return [
        [(at * each + n, f"k{n % 3}", START + timedelta(minutes=60 * at + n * 60 // each), 1) for n in range(each)]
        for at in range(files)
    ]


def too_late(files: int, each: int, first: int) -> list[list[Row]]:
    """Files of records of the first half hour."""
    return [
        [(first + at * each + n, f"k{n % 3}", START + timedelta(minutes=n % 30), 1) for n in range(each)]
        for at in range(files)
    ]


def wait_for(met: Any) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not met():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.2)


def test_300_of_2400_records_are_told_and_kept_after_a_stop_and_a_move(spark: Any, folder: Path) -> None:
    left = in_time(3, 700)
    lay_down(folder, "left", left)
    lay_down(folder, "right", in_time(1, 1))
    file = folder / "weft.yaml"
    file.write_text(SOURCES + SHAPES["window"])
    first = Run(weft.spec.load(file), folder / ".weft", Options())
    going = threading.Thread(target=first.go)
    going.start()
    try:
        wait_for(lambda: first.meter.sinks.get("window.1", 0) > 0 and first.meter.source("left") == 2100)
        wait_for(lambda: first.status()["backlog"]["window"] == 0)
    finally:
        first.stop()
        going.join()
    assert first.status()["queries"]["window"]["late"] == 0

    late = too_late(3, 100, 2100)
    lay_down(folder, "left", late, first=3)
    second = Run(weft.spec.load(file), folder / ".weft", Options(until_done=True))
    told: dict[str, Any] = {}
    going = threading.Thread(target=lambda: told.update(second.go()))
    going.start()
    wait_for(lambda: second.phase in ("running", "stopping", "stopped"))
    second.move("window", "sums", "core")
    going.join()
    found = told["queries"]["window"]
    assert (found["records_in"], found["late"], found["dropped"], found["bad_records"]) == (2400, 300, 300, 0)
    assert found["promise"]["loss"] == {"promised": 0, "measured": 0.125, "kept": False}
    assert found["promise_kept"] is False
    assert told["operators"]["window.sums"]["late"] == 300
    assert late_ids(spark, folder / "late" / "window") == [row[0] for rows in late for row in rows]
    kept = [row for rows in left for row in rows]
    assert given(spark, folder, "window") == expected(spark, "window", kept, [])


def start(folder: Path, point: str | None) -> tuple[int, str]:
    """Run to the end, or to where the process is killed; how it ended, and what it printed."""
    how = ["-m", "weft", "run"] if point is None else ["-m", "tests.bodies.live.cut_run", point, "run"]
    environment = {**os.environ, "CUT_TOLD": str(folder / "told"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    words = [sys.executable, *how, str(folder / "weft.yaml"), "--until-done", "--json"]
    with open(folder / "err.log", "a") as err:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=err, cwd=ROOT, env=environment, start_new_session=True,
            timeout=600, check=False, text=True,
        )  # fmt: skip
    return done.returncode, done.stdout


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_late_records_are_counted_and_kept_once_after_a_kill(point: str, spark: Any, folder: Path) -> None:
    left = drawn(3)
    lay_down(folder, "left", left)
    lay_down(folder, "right", drawn(4))
    (folder / "weft.yaml").write_text(SOURCES + SHAPES["window"])
    assert start(folder, point)[0] == -9
    code, printed = start(folder, None)
    assert code == 0, (folder / "err.log").read_text()[-1500:]
    late = late_ids(spark, folder / "late" / "window")
    assert len(late) == len(set(late)) == json.loads(printed)["queries"]["window"]["late"] > 0
    kept = [row for rows in left for row in rows if row[0] not in late]
    assert given(spark, folder, "window") == expected(spark, "window", kept, [])
