"""What a process puts into temporary space is one private folder, and goes with it or after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.spark.storage import temporary

PROGRAM = """
import sys, time
from pathlib import Path
from typing import Any
from weft.spark.storage import temporary
print(temporary.claim(Path(sys.argv[1])), flush=True)
(temporary.claim() / "deep" / "er").mkdir(parents=True)
(temporary.claim() / "deep" / "er" / "file").write_text("x")
print("made", flush=True)
if sys.argv[2] == "release":
    temporary.release()
else:
    time.sleep(600)
"""


def started(record: Path, how: str = "stay") -> tuple[subprocess.Popen[str], Path]:
    """A process that has claimed a folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(record), how],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(record.parent)},
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert process.stdout.readline() == "made\n"
    return process, folder


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, Path]:
    """The record and the folder of a process that was killed."""
    record = tmp_path / "temporary"
    process, folder = started(record)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "deep" / "er" / "file").exists()
    return record, folder


def test_a_folder_is_private_and_lies_where_its_record_says(tmp_path: Path) -> None:
    process, folder = started(tmp_path / "temporary")
    try:
        assert (tmp_path / "temporary").read_text().splitlines()[0] == str(folder)
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        assert json.loads((folder / temporary.OWNER).read_text())["process"] == process.pid
    finally:
        process.kill()
        process.wait()


def test_an_orderly_end_leaves_neither_folder_nor_record(tmp_path: Path) -> None:
    process, folder = started(tmp_path / "temporary", "release")
    process.wait()
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_by_its_record(killed: tuple[Path, Path]) -> None:
    record, folder = killed
    assert temporary.sweep(record)
    assert not folder.exists()
    assert not record.exists()
    assert not temporary.sweep(record)


def test_the_folder_of_a_process_that_lives_stays(tmp_path: Path) -> None:
    process, folder = started(tmp_path / "temporary")
    try:
        assert not temporary.sweep(tmp_path / "temporary")
        assert (folder / "deep" / "er" / "file").exists()
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="start times are in /proc")
def test_a_process_that_only_has_the_same_number_is_told_apart(killed: tuple[Path, Path]) -> None:
    record, folder = killed
    owner = json.loads((folder / temporary.OWNER).read_text())
    (folder / temporary.OWNER).write_text(json.dumps({"process": os.getpid(), "started": owner["started"] - 1}))
    assert temporary.sweep(record)
    assert not folder.exists()


def test_a_folder_without_an_owner_or_of_another_name_stays(killed: tuple[Path, Path], tmp_path: Path) -> None:
    record, folder = killed
    renamed = folder.rename(tmp_path / "precious")
    record.write_text(str(renamed))
    assert not temporary.sweep(record)
    other = renamed.rename(tmp_path / "weft-other")
    record.write_text(str(other))
    (other / temporary.OWNER).unlink()
    assert not temporary.sweep(record)
    (tmp_path / "weft-link").symlink_to(other)
    record.write_text(str(tmp_path / "weft-link"))
    assert not temporary.sweep(record)
    assert (other / "deep" / "er" / "file").exists()


def test_an_empty_folder_whose_maker_died_at_once_is_swept(tmp_path: Path) -> None:
    (tmp_path / "weft-empty").mkdir()
    (tmp_path / "record").write_text(str(tmp_path / "weft-empty"))
    assert temporary.sweep(tmp_path / "record")
    assert not (tmp_path / "weft-empty").exists()


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"relative/weft-x", b"/nowhere/weft-x", b"/", b"x\0y"])
def test_a_record_that_tells_nothing_sweeps_nothing(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "record").write_bytes(text)
    assert not temporary.sweep(tmp_path / "record")
    assert not temporary.sweep(tmp_path / "none")


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, swept = tmp_path / "temporary", []
    made = Path.mkdir

    def and_somebody_sweeps(folder: Path, *words: Any, **more: Any) -> None:
        made(folder, *words, **more)
        if folder.name.startswith(temporary.PREFIX):
            swept.append(temporary.sweep(record))

    monkeypatch.setattr(temporary, "_mine", temporary._Mine(0))
    monkeypatch.setattr(Path, "mkdir", and_somebody_sweeps)
    try:
        folder = temporary.claim(record)
        assert swept == [False]
        assert (folder / temporary.OWNER).exists()
    finally:
        temporary.release()
