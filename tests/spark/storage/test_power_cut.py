"""A power cut at any point leaves what was called committed, and a state that goes on, nothing lost or doubled."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.spark.storage.cut_disk import CutDisk, Image
from tests.spark.storage.fake_spark import World, expected


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CutDisk, list[tuple[int, int]]]:
    """All that a whole run writes, and after how many writes how many batches of the sink were called committed."""
    folder.mkdir()
    disk = CutDisk(folder)
    marks: list[tuple[int, int]] = []
    world = World(folder, disk, monkeypatch)
    writer = world.engines[1].writer.outputs[0].writer
    commit = writer.commit

    def acknowledged(manifest: object) -> object:
        done = commit(manifest)  # type: ignore[arg-type]
        marks.append((len(disk.ops), world.acknowledged()))
        return done

    monkeypatch.setattr(writer, "commit", acknowledged)
    world.run()
    assert world.delivered() == expected()
    shutil.rmtree(folder)
    return disk, marks


def go_on(image: Image, keep: str, seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """Take up what a cut has left and run to the end: batches of the sink that were there at once, and all results."""
    image.lay_out(folder, keep, random.Random(seed))
    disk = CutDisk(folder)
    disk.fsync = False
    world = World(folder, disk, monkeypatch)
    there = world.acknowledged()
    world.run()
    return there, world.delivered()


@pytest.mark.parametrize("keep", ["least", "most", "some"])
def test_what_was_committed_survives_a_power_cut_at_every_point(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, marks = recorded(tmp_path / "world", monkeypatch)
    image = Image()
    for number, op in enumerate(disk.ops, 1):
        image.apply(op)
        # The least changes with syncs alone.
        if op[0] != "sync" if keep == "least" else number % {"some": 3, "most": 5}[keep]:
            continue
        folder = tmp_path / "world"
        there, delivered = go_on(image, keep, number, folder, monkeypatch)
        acknowledged = max((count for at, count in marks if at <= number), default=0)
        assert there >= acknowledged, f"cut after {number} writes ({op}): {there} of {acknowledged} are left"
        assert delivered == expected(), f"cut after {number} writes: {op}"
        shutil.rmtree(folder)


def test_the_check_notices_a_sync_that_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself is tried: without any one kind of sync, some cut loses or doubles records, or ends the run."""
    disk, _ = recorded(tmp_path / "world", monkeypatch)
    kinds = {
        "plans": lambda path: "offsets" in path,
        "segments": lambda path: "data" in path and "streams" in path,
        "manifests": lambda path: "manifests" in path,
        "state of batches": lambda path: "state" in path[1:] and "0" in path,
    }
    for kind, concerns in kinds.items():
        image = Image()
        broken = False
        for number, op in enumerate(disk.ops, 1):
            if op[0] == "sync" and concerns(op[1]):
                continue
            image.apply(op)
            if number % 5:
                continue
            try:
                _, delivered = go_on(image, "least", number, tmp_path / "world", monkeypatch)
                broken = delivered != expected()
            except Exception:
                broken = True
            shutil.rmtree(tmp_path / "world")
            if broken:
                break
        assert broken, f"nothing noticed that {kind} were not synced"
