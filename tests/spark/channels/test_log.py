"""The log of segments and the sink folder: fences, replays, retention and what a crash leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.model import Sink
from weft.spark.channels.channel import Fenced
from weft.spark.channels.folders import Folders
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Manifest, Written
from weft.spark.sinks.delivery import SinkLog, SinkWriter
from weft.spark.storage.disk import Damaged, Disk, checked


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
    log.fence(4)
    log.fence(2)
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


def test_records_of_an_uncommitted_segment_are_swept_away_once_its_number_is_taken(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 1, "f")
    segment(writer, 0)
    left = writer.folder()
    left.mkdir()
    (left / "part.parquet").write_bytes(b"half")
    segment(LogWriter(log, 2, "f"), 1)
    assert sorted(os.listdir(log.data)) == ["0000000000-1", "0000000001-2"]


def test_who_is_overtaken_between_its_look_at_the_fence_and_its_commit_keeps_its_records(tmp_path: Path) -> None:
    slow, later = Disk(), []
    link = slow.link

    def overtaken(path: Path, name: Path) -> None:
        later.append(LogWriter(Log(tmp_path / "s"), 2, "f"))
        link(path, name)

    slow.link = overtaken  # type: ignore[method-assign]
    manifest = segment(LogWriter(Log(tmp_path / "s", disk=slow), 1, "f"), 0)
    log = Log(tmp_path / "s")
    assert [checked(*file) for file in log.files(manifest)] == [b"records"]
    with pytest.raises(Fenced):
        segment(later[0], 0)
    again = LogWriter(log, 3, "f")
    assert again.written(0), "its batch is not written twice"
    segment(again, 1)
    assert sorted(os.listdir(log.data)) == ["0000000000-1", "0000000001-3"]


def sink(path: Path, epoch: int) -> SinkWriter:
    log = Folders(path.parent / "state").sink("s", path)
    return SinkWriter(SinkLog(log, Sink("o", "csv", str(path)), path), epoch, "f")


def sink_batch(writer: SinkWriter, batch: int, names: tuple[str, ...] = ("a.csv", "b.csv")) -> Manifest:
    folder = writer.folder()
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"{batch},{name}\n")
    return Manifest(writer.segment, writer.epoch, "f", batch, rows=len(names), files=names)


def test_a_batch_without_records_that_was_written_aside_is_taken_though_it_has_no_folder(tmp_path: Path) -> None:
    log = Log(tmp_path / "s").create()
    writer = LogWriter(log, 1, "f")
    taken = writer.take(Written(folder=log.folder / "ahead" / "7"))
    writer.commit(Manifest(writer.segment, 1, "f", 0, files=taken.files))
    assert log.next_segment() == 1


def test_readers_of_a_sink_see_every_batch_once(tmp_path: Path) -> None:
    writer = sink(tmp_path / "out", 1)
    for batch in range(3):
        writer.commit(sink_batch(writer, batch))
    lines = sorted(path.read_text() for path in (tmp_path / "out").glob("*.csv"))
    assert len(lines) == len(set(lines)) == 6
    assert not list((tmp_path / "out").glob("**/.*"))


def cut_off(writer: SinkWriter, manifest: Manifest, monkeypatch: pytest.MonkeyPatch, links: int) -> None:
    """Commit a batch in a process that ends after so many files were given their names."""
    link, made = os.link, []

    def until(start: object, name: object) -> None:
        if "part-0" in str(name):
            if len(made) == links:
                raise KeyboardInterrupt
            made.append(name)
        link(start, name)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", until)
    with pytest.raises(KeyboardInterrupt):
        writer.commit(manifest)
    monkeypatch.undo()


@pytest.mark.parametrize("links", [0, 1])
def test_what_a_crash_left_half_delivered_is_delivered_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: int
) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    cut_off(writer, sink_batch(writer, 0), monkeypatch, links)
    assert len(list(path.iterdir())) == links
    again = sink(path, 2)
    assert again.written(0)
    assert sorted(file.read_text() for file in path.glob("*.csv")) == ["0,a.csv\n", "0,b.csv\n"]
    assert not list(again.log.data.iterdir())


def test_a_delivery_that_is_all_but_tidied_up_counts_as_done(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    writer.commit(sink_batch(writer, 0))
    left = writer.log.data / ".done-0000000000-1"
    left.mkdir()
    os.link(path / "part-0000000000-0.csv", left / "a.csv")
    again = sink(path, 2)
    assert again.written(0)
    assert len(list(path.iterdir())) == 2
    assert not list(again.log.data.iterdir())


def test_a_committed_batch_whose_file_is_gone_before_it_was_delivered_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = sink(tmp_path / "out", 1)
    cut_off(writer, sink_batch(writer, 0), monkeypatch, 1)
    (writer.log.data / "0000000000-1" / "b.csv").unlink()
    with pytest.raises(Damaged, match=r"0000000000-1/b.csv: is gone, though it was committed and not delivered yet"):
        sink(tmp_path / "out", 2)


def test_a_result_file_of_somebody_else_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    (path / "part-0000000000-1.csv").write_text("precious\n")
    with pytest.raises(Damaged, match=r"part-0000000000-1.csv: is there already"):
        writer.commit(sink_batch(writer, 0))
    assert (path / "part-0000000000-1.csv").read_text() == "precious\n"
    (path / "part-0000000000-1.csv").rename(tmp_path / "mine.csv")
    assert sink(path, 2).written(0), "what was committed is delivered once the name is free"
    assert (path / "part-0000000000-1.csv").read_text() == "0,b.csv\n"


def test_what_a_crash_left_aside_is_not_seen_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "out"
    writer = sink(path, 1)
    sink_batch(writer, 0)
    again = sink(path, 2)
    assert not again.written(0)
    assert not list(path.iterdir())
    again.commit(sink_batch(again, 0))
    assert not list(again.log.data.iterdir())


def headed(folder: Path) -> Log:
    return Folders(folder, "r1").stream("s")


def test_a_log_whose_last_segment_is_gone_is_refused(tmp_path: Path) -> None:
    writer = LogWriter(headed(tmp_path), 1, "f")
    for batch in range(3):
        segment(writer, batch)
    (writer.log.manifests / "0000000002").unlink()
    with pytest.raises(Damaged, match="0000000002: is gone, though it was committed"):
        LogWriter(headed(tmp_path), 2, "f")


def test_a_stream_whose_folder_has_gone_is_not_made_again(tmp_path: Path) -> None:
    writer = LogWriter(headed(tmp_path), 1, "f")
    segment(writer, 0)
    moved = tmp_path / "away"
    os.rename(writer.log.folder, moved)
    for attempt in (lambda: LogWriter(headed(tmp_path), 2, "f"), lambda: headed(tmp_path).fence(3)):
        with pytest.raises(Damaged, match="is gone, though it held segments up to 0"):
            attempt()
    with pytest.raises(Damaged, match="is gone in the middle of the run"):
        writer.commit(Manifest(1, 1, "f", 1))
    assert not writer.log.folder.exists()
    os.rename(moved, writer.log.folder)
    assert LogWriter(headed(tmp_path), 2, "f").segment == 1


def test_a_manifest_of_another_run_is_refused(tmp_path: Path) -> None:
    segment(LogWriter(headed(tmp_path), 1, "f"), 0)
    with pytest.raises(Damaged, match="belongs to another run"):
        Folders(tmp_path, "r2").stream("s").last()


@pytest.mark.parametrize("harm", [b"", b"{", None])
def test_a_manifest_that_is_emptied_cut_or_garbled_is_refused_by_name(tmp_path: Path, harm: bytes | None) -> None:
    writer = LogWriter(headed(tmp_path), 1, "f")
    segment(writer, 0)
    path = writer.log.manifests / "0000000000"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(bytes(content) if harm is None else harm)
    with pytest.raises(Damaged, match="0000000000: is "):
        headed(tmp_path).last()


def test_what_is_committed_while_somebody_looks_does_not_seem_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "s", head=tmp_path / "heads" / "s").create()
    writer = LogWriter(log, 1, "f")
    segment(writer, 0)
    seen = Log(tmp_path / "s", head=tmp_path / "heads" / "s")
    listed = seen.next_segment

    def listed_before_a_commit() -> int:
        following = listed()
        segment(writer, following)
        return following

    monkeypatch.setattr(seen, "next_segment", listed_before_a_commit)
    last = seen.last()
    assert last is not None
    assert last.batch == 0


def test_a_manifest_under_the_number_of_another_is_refused_by_name(tmp_path: Path) -> None:
    writer = LogWriter(headed(tmp_path), 1, "f")
    segment(writer, 0)
    segment(writer, 1)
    first, second = (writer.log.manifests / f"000000000{at}" for at in (0, 1))
    second.write_bytes(first.read_bytes())
    with pytest.raises(Damaged, match="0000000001: is that of segment 0"):
        headed(tmp_path).last()
