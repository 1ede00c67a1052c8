"""What a checkpoint tells of its batches."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from weft.spark.checkpoints import checkpoint
from weft.spark.checkpoints.checkpoint import last_committed, wait_for_commit


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_a_commit_that_is_there_is_not_waited_for_the_first_included(batch: int, tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / str(batch)).write_text("v1\n{}")
    begun = time.monotonic()
    assert wait_for_commit(tmp_path, batch)
    assert time.monotonic() - begun < checkpoint.COMMIT_S_MAX / 2
    assert last_committed(tmp_path) == batch


def test_a_commit_that_never_comes_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "COMMIT_S_MAX", 0.05)
    assert not wait_for_commit(tmp_path, 0)
