"""By its lists of files: what Spark would read twice is refused, and a file that grew after it was read is told of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from weft.spark.sources.taken import PassedOver, changed_notes, refuse_doubled, refuse_gone, refuse_passed_over
from weft.spark.storage.disk import Damaged


def taken(checkpoint: Path, name: str, *files: Path, batch: int = 0) -> None:
    """Spark's list of files, as they are now."""
    lists = checkpoint / "sources" / "source_in"
    lists.mkdir(parents=True, exist_ok=True)
    told = [{"path": one.as_uri(), "timestamp": one.stat().st_mtime_ns // 1_000_000, "batchId": batch} for one in files]
    (lists / name).write_text("\n".join(["v1", *map(json.dumps, told)]))


def test_files_that_were_changed_after_they_were_taken_are_named(tmp_path: Path) -> None:
    state, checkpoint = tmp_path / "state", tmp_path / "state" / "checkpoint-0"
    names = ["a b.csv", "c#d.csv", "gone.csv", "same.csv"]
    files = [tmp_path / name for name in names]
    for file in [*files, tmp_path / "new.csv"]:
        file.write_text("1\n")
    tick = state / "ticks" / "start-1.json"
    tick.parent.mkdir(parents=True)
    tick.write_text("{}")
    taken(checkpoint, "0", tmp_path / "new.csv")  # which all of the compact list is about, too
    taken(checkpoint, "9.compact", *files[:2])
    taken(checkpoint, "10", *files[2:], tick)
    (checkpoint / "sources" / "source_in" / "11").write_text("v1\n{garbled\n[]\n")
    os.utime(tmp_path / "new.csv", (2_000_000_000, 2_000_000_000))
    assert changed_notes([checkpoint], state) == []
    for file in [*files[:3], tick]:
        os.utime(file, (file.stat().st_mtime + 5,) * 2)
    files[2].unlink()
    (line,) = changed_notes([checkpoint, tmp_path / "none", checkpoint], state)
    assert line.startswith(f"{files[0]}, {files[1]} were changed after they were read: what was added is ")


def test_of_many_such_files_some_are_named(tmp_path: Path) -> None:
    files = [tmp_path / f"{at}.csv" for at in range(5)]
    for file in files:
        file.write_text("1\n")
        os.utime(file, (1, 1))
    taken(tmp_path, "0", *files)
    os.utime(files[4])
    assert changed_notes([tmp_path], tmp_path / "state")[0].startswith(f"{files[4]} was changed after it was read: ")
    for file in files:
        os.utime(file)
    assert "2.csv and 2 more were changed after they were read: " in changed_notes([tmp_path], tmp_path / "state")[0]


@pytest.mark.parametrize("name", ["a [1].csv", "q?.csv", "{x}.csv", "a*.csv", "back\\slash.csv"])
def test_a_batch_of_several_files_with_a_name_like_a_pattern_is_refused_by_that_name(tmp_path: Path, name: str) -> None:
    odd, one, other = tmp_path / name, tmp_path / "one.csv", tmp_path / "other.csv"
    for file in (odd, one, other):
        file.write_text("1\n")
    lists = tmp_path / "sources" / "source_in"
    taken(tmp_path, "0", one, other, batch=0)
    taken(tmp_path, "1", odd, batch=1)
    taken(tmp_path, "2", one, batch=2)
    refuse_doubled(lists, -1, 0)
    refuse_doubled(lists, 0, 1)  # alone it is read once
    refuse_doubled(lists, 1, 2)
    refuse_doubled(lists, 2, 2)
    refuse_doubled(tmp_path / "none", -1, 0)
    (lists / "9.compact").write_text((lists / "0").read_text() + (lists / "1").read_text()[2:])
    taken(tmp_path, "9", one, batch=9)
    with open(lists / "9.compact", "a", encoding="utf-8") as compact:
        compact.write((lists / "9").read_text()[2:])
    (lists / "9").unlink()
    refuse_doubled(lists, 8, 9)  # of a compact list only what is its own
    with pytest.raises(
        Damaged, match="in its path makes Spark read the other files of its batch twice; rename it"
    ) as told:
        refuse_doubled(lists, 0, 2)
    assert told.value.path == odd


def test_a_source_is_not_at_its_end_while_a_file_lies_there_that_no_batch_took(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a b.csv", "größe.csv", "new.csv", os.fsdecode(b"\xff.csv"))]
    for file in files:
        file.write_text("1\n")
    taken(tmp_path, "0", files[0])
    taken(tmp_path, "1", files[1], batch=1)
    lists = tmp_path / "sources" / "source_in"
    names = [str(file) for file in files]
    refuse_passed_over(names[:2], lists, upto=1)
    for there, upto, named in (
        (names[:2], 0, "größe.csv: "),
        (names[:3], 1, "new.csv: "),
        (names[3:], 1, r"\udcff.csv: "),
    ):
        with pytest.raises(PassedOver) as refused:
            refuse_passed_over(there, lists, upto)
        assert named in str(refused.value)
        assert str(refused.value).encode()
    files[2].unlink()
    refuse_passed_over(names[:3], lists, upto=1)


def test_a_batch_of_which_a_file_is_gone_is_refused_by_that_name(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a b.csv", "b.csv", "c.csv")]
    for file in files:
        file.write_text("1\n")
    taken(tmp_path, "0", files[0])
    taken(tmp_path, "1", *files[1:], batch=1)
    lists = tmp_path / "sources" / "source_in"
    files[0].unlink()
    refuse_gone(lists, 0, 1)
    files[2].rename(tmp_path / "moved.csv")
    with pytest.raises(Damaged, match=r"c\.csv: is gone, though it was not read to its end; bring it back"):
        refuse_gone(lists, 0, 1)
    os.mkfifo(files[2])
    with pytest.raises(Damaged, match=r"c\.csv: is no file that can be read to its end; move it away"):
        refuse_gone(lists, 0, 1)
    (tmp_path / "moved.csv").rename(files[2])
    refuse_gone(lists, 0, 1)
