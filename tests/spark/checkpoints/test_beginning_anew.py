"""A start that was cut short before its first batch was begun can be made again: Spark wants to find nothing there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.changing.test_next_plan import begun, whole
from tests.spark.channels.test_log import segment
from weft.spark.channels.folders import Folders
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter
from weft.spark.checkpoints.inspection import begin_anew

FRAGMENT = next(one for one in begun(whole()).fragments if one.outputs)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint as a start leaves it that was ended while it planned its first batch."""
    path = Folders(tmp_path).checkpoint(FRAGMENT.id, 0)
    (path / "offsets").mkdir(parents=True)
    (path / "commits").mkdir()
    (path / "metadata").write_text("{}")
    return path


def test_what_was_only_planned_is_taken_back(tmp_path: Path, checkpoint: Path) -> None:
    begin_anew(Folders(tmp_path), FRAGMENT, 0, None, [])
    assert not checkpoint.exists()


def test_a_first_batch_of_which_nothing_was_written_is_planned_again(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "offsets" / "0").write_text("v1\n{}\n0")
    begin_anew(Folders(tmp_path), FRAGMENT, 0, None, [])
    assert not checkpoint.exists()


def test_a_first_batch_whose_results_are_written_is_not_taken_back(tmp_path: Path, checkpoint: Path) -> None:
    (checkpoint / "offsets" / "0").write_text("v1\n{}\n0")
    log = Folders(tmp_path).stream(FRAGMENT.outputs[0]).create()
    assert isinstance(log, Log)
    segment(LogWriter(log, 1, f"{FRAGMENT.id}/0"), 0)
    begin_anew(Folders(tmp_path), FRAGMENT, 0, None, [])
    assert (checkpoint / "offsets" / "0").exists()
