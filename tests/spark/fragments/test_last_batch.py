"""A fragment that follows another works out its first batch ahead of its turn: the last batch, and the gate."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from weft.model import Deployment
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Times
from weft.spark.channels.folders import Folders
from weft.spark.channels.gate import Gate, Gatekeeper
from weft.spark.channels.manifest import Manifest
from weft.spark.checkpoints.offsets import Offsets
from weft.spark.fragments import last_batch as ahead
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.last_batch import LastBatch
from weft.spark.fragments.positions import Ended, deciding_fragments, resume_positions
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.storage.disk import seal


def test_the_next_batch_to_begin_is_the_last_and_is_told_when_it_begins() -> None:
    last, told = LastBatch(), []
    last.begins(4)
    asking = threading.Thread(target=last.ask, args=(lambda: told.append(last.number),))
    asking.start()
    while last._told is None:
        continue
    assert not last.is_over(4)
    last.begins(5)
    asking.join()
    assert told == [5]
    assert last.is_over(5)


def test_where_none_begins_soon_the_one_under_way_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    last, told = LastBatch(), []
    last.begins(7)
    monkeypatch.setattr(ahead, "BEGIN_S_MAX", 0.01)
    last.ask(lambda: told.append(last.number))
    assert told == [7]
    assert last.is_over(7)


def test_where_nothing_runs_no_batch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    last, told = LastBatch(), []
    last.begins(1)
    assert not last.is_over(1)
    monkeypatch.setattr(ahead, "BEGIN_S_MAX", 0.01)
    last.ask(lambda: told.append(last.number))
    last.begins(2)
    assert told == []
    assert not last.is_over(2), "who asked has gone on without it"


def test_a_closed_gate_lets_one_rehearsal_through_and_then_only_what_lies_beyond(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate.json", waits=True)
    keeper = Gatekeeper(gate.options("in"))
    start = {"segment": 3}
    assert keeper.closed()
    assert keeper.first() == 0
    rehearsed = keeper.rehearsal(start)
    assert rehearsed != start
    assert keeper.rehearsal(rehearsed) == rehearsed, "a second one would never end"
    assert Gatekeeper(gate.options("in")).rehearsal(rehearsed) != rehearsed, "another generation has its own"
    gate.open({"in": 5})
    assert not keeper.closed()
    assert keeper.first() == 5, "what was seen of the closed gate is not remembered"
    assert keeper.nothing_beyond(5)
    assert not keeper.nothing_beyond(6)


ENTRY = Entry("q.up", "down", "from_up", True, None, 0)


def checkpoint(folder: Path, *batches: tuple[int, str], committed: int) -> Path:
    """A checkpoint as Spark leaves it: planned batches with the position on one input, some of them committed."""
    (folder / "offsets").mkdir(parents=True)
    (folder / "commits").mkdir()
    for number, line in batches:
        (folder / "offsets" / str(number)).write_text(f"v2\n{{}}\nfrom_up:{line}")
        if number <= committed:
            (folder / "commits" / str(number)).write_text("v1\n{}")
    return folder


def fragment(name: str, *operators: str, outputs: tuple[str, ...] = ()) -> Fragment:
    """A fragment of query q."""
    return Fragment(name, "a", ("q",), operators, (), None, (), (), outputs, ())


def test_the_last_batch_of_the_reader_before_tells_where_the_next_goes_on(tmp_path: Path) -> None:
    lines = ((0, '{"segment": 2, "tick": 0}'), (1, '{"segment": 6, "tick": 0}'))
    old = fragment("q.down", "down")
    held = checkpoint(tmp_path / "held", *lines, committed=0)
    ending = (Ended(old, held, (ENTRY,), last=1),)
    new = fragment("q.down", "down")
    assert deciding_fragments(new, (ENTRY,), ending) == ending
    assert resume_positions(Folders(tmp_path), new, (ENTRY,), ending) == {"from_up": 6}
    assert resume_positions(Folders(tmp_path), new, (ENTRY,), (Ended(old, held, (ENTRY,)),)) == {"from_up": 2}


def test_a_stream_that_an_ending_fragment_still_writes_is_not_told_ahead(tmp_path: Path) -> None:
    fused = fragment("q.up", "up", "down", outputs=("q.up",))
    held = checkpoint(tmp_path / "held", (0, "{}"), committed=0)
    assert deciding_fragments(fragment("q.down", "down"), (ENTRY,), (Ended(fused, held, ()),)) is None


def test_a_rehearsal_that_is_replayed_brings_nothing(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    log = folders.stream("q.up").create()
    for segment in (31, 32):
        manifest = msgspec.json.encode(Manifest(segment, 1, "w", segment, rows=5))
        (log.manifests / f"{segment:010d}").write_bytes(seal(manifest))
    context = RunContext(Deployment((), (), ()), folders, {})
    batch_times = BatchTimes(context, Times({}), fragment("q.down", "down"), False)
    batch_times.first = {"from_up": 32}
    planned_before = Offsets({"from_up": {"segment": 1, "tick": 0, "rehearsal": 1}}, 0, 0.0)
    found = batch_times.arrival(ENTRY, planned_before, planned_before)
    assert (found.rows, found.position, found.end) == (0, 32, False)
