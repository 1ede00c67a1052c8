"""A plan that Spark has made and not begun is nobody's word yet: two kills in a row may each leave another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.changing.test_next_plan import begun, whole
from weft.spark.channels.folders import Folders
from weft.spark.checkpoints.inspection import left_by_a_kill
from weft.spark.checkpoints.ledger import Ledger, ledger_of, read_ledger
from weft.spark.storage.disk import Damaged, Disk, size_and_sum

FRAGMENT = next(one for one in begun(whole()).fragments if one.outputs and not one.channels)
RUN = "a run"


def plan(checkpoint: Path, batch: int, made: str) -> None:
    (checkpoint / "offsets" / str(batch)).write_text(
        f'v2\n{{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{{"made":"{made}"}}}}\nsource_0:{{"logOffset":{batch}}}'
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint with one batch that is done; the next is planned, and nothing of it was begun."""
    path = Folders(tmp_path).checkpoint(FRAGMENT.id, 0)
    for name in ("offsets", "commits"):
        (path / name).mkdir(parents=True)
    (path / "metadata").write_text("{}")
    plan(path, 0, "first")
    Ledger(path, RUN, Disk()).begin(0, {})
    (path / "commits" / "0").write_text("v1\n{}")
    plan(path, 1, "before the first kill")
    return path


def looked_at(tmp_path: Path) -> list[Path]:
    return left_by_a_kill(Folders(tmp_path, RUN), [FRAGMENT], {}, {}, [])


def test_a_plan_that_was_not_begun_is_not_listed(checkpoint: Path) -> None:
    Ledger(checkpoint, RUN, Disk()).look()
    told = read_ledger(checkpoint, RUN)
    assert told is not None
    assert sorted(told.files) == ["commits/0", "metadata", "offsets/0"]


def test_a_plan_that_is_made_again_after_a_kill_and_not_begun_either_is_taken_back(
    tmp_path: Path, checkpoint: Path
) -> None:
    Ledger(checkpoint, RUN, Disk()).look()
    plan(checkpoint, 1, "before the second kill")
    assert checkpoint / "offsets" / "1" in looked_at(tmp_path)


def test_a_list_of_an_earlier_version_that_holds_such_a_plan_does_no_harm(tmp_path: Path, checkpoint: Path) -> None:
    Ledger(checkpoint, RUN, Disk()).look()
    told = read_ledger(checkpoint, RUN)
    assert told is not None
    told.files["offsets/1"] = size_and_sum(checkpoint / "offsets" / "1")
    Disk().seal(ledger_of(checkpoint), told)
    plan(checkpoint, 1, "before the second kill")
    assert checkpoint / "offsets" / "1" in looked_at(tmp_path)


def test_a_plan_that_was_begun_and_differs_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    plan(checkpoint, 0, "another")
    with pytest.raises(Damaged, match="offsets/0: is damaged"):
        looked_at(tmp_path)
