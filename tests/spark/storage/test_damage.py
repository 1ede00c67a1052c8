"""Every file of a state and its sinks gone, empty, cut, garbled by a bit or a folder: exact, or refused by its name."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.storage.cut_disk import CutDisk
from tests.spark.storage.fake_spark import World, expected
from weft.bodies.live.state import CannotRun
from weft.spark.storage.disk import Damaged

HARMS = ("removed", "emptied", "cut", "garbled", "garbled at the end", "garbled in the middle", "a folder")


def harmed(path: Path, harm: str, rng: random.Random) -> None:
    """Do it to a file."""
    content = bytearray(path.read_bytes())
    if harm in ("removed", "a folder"):
        path.unlink()
        if harm == "a folder":
            path.mkdir()
        return
    if harm == "emptied" or not content:
        path.write_bytes(b"")
        return
    if harm == "cut":
        path.write_bytes(bytes(content[: rng.randrange(len(content))]))
        return
    at = {"garbled": rng.randrange(len(content)), "garbled at the end": len(content) - 1}.get(harm, len(content) // 2)
    content[at] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(content))


def files(folder: Path) -> Iterator[Path]:
    """All that a run has made but its results, which are the user's."""
    for path in sorted([*(folder / "state").rglob("*"), *(folder / ".out.weft").rglob("*")]):
        if path.is_file() and not path.name.startswith("."):
            yield path


@pytest.fixture(params=[3, 4])
def left(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was left in the middle, after so many batches, one of them planned and one half committed."""
    folder = tmp_path / "world"
    folder.mkdir()
    disk = CutDisk(folder)
    disk.fsync = False
    world = World(folder, disk, monkeypatch)
    world.run(steps=request.param)
    if request.param == 4:
        for engine in world.engines:
            engine.writer.ledger.look()  # type: ignore[union-attr]
    shutil.copytree(folder, tmp_path / "kept")
    return folder


def test_every_file_that_is_harmed_is_refused_by_name_or_makes_no_difference(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    told = {}
    for path in [file.relative_to(left) for file in files(left)]:
        for harm in HARMS:
            shutil.rmtree(left)
            shutil.copytree(kept, left)
            harmed(left / path, harm, random.Random(f"{path} {harm}"))
            told[str(path), harm] = outcome(left, left / path, monkeypatch)
    wrong = {key: value for key, value in told.items() if value not in ("exact", "refused")}
    assert wrong == {}
    assert "refused" in told.values()
    assert "exact" in told.values()


def outcome(folder: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What becomes of a run that goes on there: `exact`, `refused` with the file's name, or what went wrong."""
    disk = CutDisk(folder)
    disk.fsync = False
    try:
        world = World(folder, disk, monkeypatch)
        world.run()
    except (CannotRun, Damaged) as error:
        named = str(path) in str(error) or str(path.parent) in str(error)
        return "refused" if named else f"refused without it: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "exact" if world.delivered() == expected() else f"gave {world.delivered()}"


@pytest.mark.parametrize("room", ["streams", "streams/q.keep", "streams/q.keep/manifests", "heads", "recordings",
                                  "fragments/q.keep", "fragments/q.sums", "fragments/q.sums/checkpoint-0",
                                  "fragments/q.keep/checkpoint-0/offsets", "fragments/q.sums/checkpoint-0/state",
                                  "../.out.weft", "../.out.weft/manifests", "../.out.weft/data"])  # fmt: skip
@pytest.mark.parametrize("harm", ["removed", "emptied"])
def test_every_folder_that_is_gone_or_emptied_is_refused_or_makes_no_difference(
    left: Path, room: str, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (left / "state" / room).resolve()
    if folder.exists():
        shutil.rmtree(folder)
    if harm == "emptied":
        folder.mkdir(exist_ok=True, parents=True)
    found = outcome(left, folder, monkeypatch)
    named = found.startswith("refused without it") and str(left) in found
    assert found in ("exact", "refused") or named, found
