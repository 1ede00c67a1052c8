"""The log of segments and the sink folder: fences, replays, retention and what a crash leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.model import Sink
from weft.spark.log import Fenced, Log, LogWriter, Manifest, fence
from weft.spark.sinks import MANIFEST, SinkWriter, aside_of


def segment(writer: LogWriter, batch: int, rows: int = 1) -> Manifest:
    """One committed segment with a file in it."""
    folder = writer.folder()
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"records")
    total = (writer.last.rows_total if writer.last else 0) + rows
    manifest = Manifest(
        writer.segment, writer.epoch, writer.writer, batch, rows=rows, rows_total=total, files=("part.parquet",)
    )
    return writer.commit(manifest)


def test_segments_are_numbered_without_gaps(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 1, "f")
    for batch in range(3):
        segment(writer, batch)
    assert [log.manifest(number).batch for number in range(log.next_segment())] == [0, 1, 2]


def test_a_replayed_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    segment(LogWriter(log, 1, "f"), 7)
    again = LogWriter(log, 2, "f")
    assert again.written(7)
    assert not again.written(8)


def test_a_lower_epoch_can_neither_claim_nor_commit(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    old = LogWriter(log, 1, "f")
    LogWriter(log, 2, "f")
    with pytest.raises(Fenced):
        segment(old, 0)
    with pytest.raises(Fenced):
        LogWriter(log, 1, "f")
    assert log.next_segment() == 0


def test_a_fence_stops_the_writer_it_passes(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 3, "f")
    fence(log.folder, 4)
    fence(log.folder, 2)
    with pytest.raises(Fenced, match="fenced by 4"):
        segment(writer, 0)


def test_no_segment_is_ever_written_twice(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    first, twin = LogWriter(log, 1, "f"), LogWriter(log, 1, "f")
    segment(first, 0)
    with pytest.raises(Fenced):
        twin.commit(Manifest(0, 1, "f", 0))
    assert log.manifest(0).rows == 1


def test_segments_that_all_readers_have_passed_are_deleted(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    log.register("one")
    log.register("two")
    writer = LogWriter(log, 1, "f")
    for batch in range(40):
        segment(writer, batch)
    log.passed("one", 40)
    log.passed("two", 30)
    writer.retain()
    assert log.first_segment() == 29, "the manifest before the first needed one stays, it carries the times"
    assert len(os.listdir(log.data)) == 10
    assert log.beyond(30) == (10, 10)
    assert log.beyond(40) == (0, 0)
    log.forget("two")
    writer.retain()
    assert len(os.listdir(log.data)) == 0


def test_readers_that_a_called_off_move_left_behind_hold_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    for reader in ("q.a~channel_s", "q.ab~channel_s", "q.b~channel_s_b"):
        log.register(reader)
    log.passed("q.a~channel_s", 7)
    log.forget_but(["q.a", "q.other"])
    assert os.listdir(log.readers) == ["q.a~channel_s"]
    log.register("q.a~channel_s_b")
    log.register("q.ab~channel_s")
    log.forget_others("q.a", {"q.a~channel_s", "q.a~channel_t"})
    assert set(os.listdir(log.readers)) == {"q.a~channel_s", "q.ab~channel_s"}
    log.forget("q.ab~channel_s")
    assert log.needed() == 7
    Log(tmp_path / "never written").forget_but([])


def test_nothing_is_deleted_while_nobody_reads(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 1, "f")
    for batch in range(20):
        segment(writer, batch)
    assert len(os.listdir(log.data)) == 20


def test_records_of_an_uncommitted_segment_are_swept_away(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 1, "f")
    segment(writer, 0)
    left = writer.folder()
    left.mkdir()
    (left / "part.parquet").write_bytes(b"half")
    LogWriter(log, 2, "f")
    assert sorted(os.listdir(log.data)) == ["0000000000-1"]


def sink(path: Path, epoch: int) -> SinkWriter:
    return SinkWriter(path, Sink("o", "csv", str(path)), epoch, "f")


def sink_batch(writer: SinkWriter, batch: int, names: tuple[str, ...] = ("a.csv", "b.csv")) -> Manifest:
    folder = writer.folder()
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"{batch},{name}\n")
    return Manifest(writer.segment, writer.epoch, "f", batch, rows=len(names), files=names)


def test_readers_of_a_sink_see_every_batch_once(tmp_path: Path) -> None:
    writer = sink(tmp_path / "out", 1)
    for batch in range(3):
        writer.commit(sink_batch(writer, batch))
    lines = sorted(path.read_text() for path in (tmp_path / "out").glob("*.csv"))
    assert len(lines) == len(set(lines)) == 6
    assert not list((tmp_path / "out").glob("**/.*"))


def test_what_a_crash_left_half_delivered_is_delivered_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    manifest = sink_batch(writer, 0)
    # As after kill -9 between two moves: pending is there, one file has already been moved.
    import msgspec

    (writer.folder() / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    waiting = writer.pending / "0000000000"
    os.rename(writer.folder(), waiting)
    os.rename(waiting / "a.csv", path / "part-0000000000-0.csv")
    again = sink(path, 2)
    assert again.written(0)
    assert sorted(file.read_text() for file in path.glob("*.csv")) == ["0,a.csv\n", "0,b.csv\n"]


def test_what_a_crash_left_aside_is_not_seen_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    sink_batch(writer, 0)
    again = sink(path, 2)
    assert not again.written(0)
    assert not list(path.iterdir())
    assert not (aside_of(path) / "aside").exists()
