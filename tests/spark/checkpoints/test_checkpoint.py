"""What a checkpoint tells of its batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.spark.checkpoints import checkpoint
from weft.spark.checkpoints.checkpoint import last_committed, wait_for_commit
from weft.spark.storage.disk import Disk


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_a_commit_that_is_there_is_not_waited_for_the_first_included(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "COMMIT_S_MAX", 0.0)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / str(batch)).write_text("v1\n{}")
    assert wait_for_commit(tmp_path, batch)
    assert last_committed(tmp_path) == batch


def test_a_commit_that_never_comes_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "COMMIT_S_MAX", 0.05)
    assert not wait_for_commit(tmp_path, 0)


def test_a_checkpoint_made_from_one_that_goes_on_has_no_commit_beyond_its_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, run = tmp_path / "f" / "old" / "checkpoint-0", tmp_path / "f" / "new" / "checkpoint-0", "r"
    for folder, content in (("offsets", 'v2\n{"batchWatermarkMs":0,"batchTimestampMs":0}\ns:1'), ("commits", "v1\n{}")):
        (old / folder).mkdir(parents=True)
        for number in range(3):
            (old / folder / str(number)).write_text(content)
    (old / "commits" / ".3.tmp").write_text("half a commit")

    def and_another_batch(checkpoint: Path) -> int | None:
        found = last_committed(checkpoint)
        for folder in ("offsets", "commits"):  # the old run commits while its checkpoint is being looked at
            (old / folder / "3").write_text((old / folder / "2").read_text())
        return found

    monkeypatch.setattr(checkpoint, "last_committed", and_another_batch)
    checkpoint.fork(old, new, {"s": '{"position":1}'}, {}, False, {}, tmp_path / "ticks", run, Disk(fsync=False))
    assert sorted(path.name for path in (new / "commits").iterdir()) == ["0", "1", "2"]
    assert sorted(path.name for path in (new / "offsets").iterdir()) == ["1", "2"]


def test_state_beyond_the_last_batch_does_not_go_along(tmp_path: Path) -> None:
    """A batch that was given up may have left it, and the new checkpoint will cut that batch otherwise."""
    old, new = tmp_path / "f" / "old" / "checkpoint-0", tmp_path / "f" / "new" / "checkpoint-0"
    for folder, content in (("offsets", 'v2\n{"batchWatermarkMs":0,"batchTimestampMs":0}\ns:1'), ("commits", "v1\n{}")):
        (old / folder).mkdir(parents=True)
        (old / folder / "1").write_text(content)
    kept = ["1.delta", "2.delta", "2.snapshot", "2.zip", "2_4f-1.changelog", "_metadata/schema", "SSTs/12-a.sst"]
    beyond = ["3.delta", "3.snapshot", "3.zip", "3_4f-2.changelog"]
    for name in kept + beyond:
        path = old / "state" / "0" / "0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    disk = Disk(fsync=False)
    checkpoint.fork(old, new, {"s": '{"position":1}'}, {}, True, {}, tmp_path / "ticks", "r", disk)
    held = [path for path in (new / "state" / "0" / "0").rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(new / "state" / "0" / "0")) for path in held) == sorted(kept)
