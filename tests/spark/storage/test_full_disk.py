"""A disk that is full or cannot be written to: a clear error, nothing corrupted, and the same command goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import FILE, delivered, differing, expected, make
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import CannotRun

RUN_S_MAX = 400.0
LITTLE_KB, ENOUGH_KB = 900, 100_000


def mounted(folder: Path, options: str) -> bool:
    """Whether a file system of its own could be put over a folder; that takes root and a kernel that lets it."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def little(tmp_path: Path) -> Iterator[Path]:
    """A folder with next to no room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not mounted(disk, f"size={LITTLE_KB}k"):
        pytest.skip("a small disk can only be made by root, where mounting is allowed")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def weft_run(folder: Path) -> subprocess.CompletedProcess[str]:
    """The command a user would type."""
    command = [sys.executable, "-m", "weft", "run", str(folder / "weft.yaml"), "--until-done", "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_S_MAX)


@pytest.mark.spark
@pytest.mark.long
def test_a_full_disk_is_said_and_what_was_written_goes_on_when_there_is_room(spark: Any, little: Path) -> None:
    deployment = make(little, 5, 3000, 400)
    full = weft_run(little)
    assert full.returncode == 1
    assert "No space left on device" in full.stderr
    subprocess.run(["mount", "-o", f"remount,size={ENOUGH_KB}k", str(little)], check=True)
    resumed = weft_run(little)
    assert resumed.returncode == 0, resumed.stderr[-2000:]
    assert json.loads(resumed.stdout)["queries"]
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}


def test_a_state_folder_that_cannot_be_written_is_refused_before_spark_starts(tmp_path: Path) -> None:
    deployment = make(tmp_path, 5, 10, 10)
    (tmp_path / "taken").write_text("a file where a folder should be")
    with pytest.raises(CannotRun, match=r"no state can be kept in .*taken.*; give another folder with --state"):
        Run(deployment, tmp_path / "taken" / "state", Options(until_done=True)).go()


def test_a_sink_that_cannot_be_written_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = make(tmp_path, 5, 10, 10)
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path) and allowed(path, mode))
    with pytest.raises(CannotRun, match=r"sink of plain\.1: .*out/shape: .* cannot be written to"):
        Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()
    assert not (tmp_path / ".weft" / "lock").exists()


def test_a_folder_for_late_records_that_cannot_be_written_is_refused_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").mkdir()
    text = FILE.replace("watermark: 30 seconds,", "watermark: 30 seconds, late: {to: shut/late},", 1)
    deployment = make(tmp_path, 5, 10, 10, text=text)
    shut, allowed = str(tmp_path / "shut"), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != shut and allowed(path, mode))
    with pytest.raises(CannotRun, match=r"sink of windowed\.sums\.late: .*late: .*shut cannot be written to; choose"):
        Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()
    assert not (tmp_path / ".weft").exists()


def test_a_sink_is_refused_where_what_is_on_its_way_could_not_lie_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = make(tmp_path, 5, 10, 10)
    (tmp_path / "out" / "shape").mkdir(parents=True)
    beside, allowed = str(tmp_path / "out"), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != beside and allowed(path, mode))
    with pytest.raises(CannotRun, match=r"sink of plain\.1: .*out/shape: .*out cannot be written to"):
        Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()


def test_a_read_only_disk_is_refused_before_spark_starts(tmp_path: Path) -> None:
    deployment = make(tmp_path, 5, 10, 10)
    disk = tmp_path / "disk"
    disk.mkdir()
    if not mounted(disk, "ro"):
        pytest.skip("a read-only disk can only be made by root, where mounting is allowed")
    try:
        with pytest.raises(CannotRun, match="Read-only file system"):
            Run(deployment, disk / ".weft", Options(until_done=True)).go()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_sink_that_is_a_disk_of_its_own_is_refused_before_spark_starts(tmp_path: Path) -> None:
    disk = tmp_path / "out"
    disk.mkdir()
    if not mounted(disk, "size=100k"):
        pytest.skip("a disk can only be made by root, where mounting is allowed")
    try:
        text = FILE.replace("path: out/shape", "path: out", 1)
        assert text != FILE
        deployment = make(tmp_path, 5, 10, 10, text=text.replace("path: out/", "path: others/"))
        with pytest.raises(CannotRun, match=r"out: is a disk of its own, .*; name a folder on that disk"):
            Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
