"""For whom streams are kept: also for readers of the plan whose site has not started yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.plan.changing.test_next_plan import begun, rules, whole
from tests.spark.channels.test_log import segment
from weft.bodies.live.changes import Changes
from weft.bodies.live.state import State
from weft.spark.channels.channel import fragment_of, reader_name
from weft.spark.channels.folders import Folders
from weft.spark.channels.keeping import await_readers, keep_for_readers
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter

SEGMENTS = 20


def reads(log: Log, fragment: str, upto: int) -> None:
    """A fragment starts, as a run does, and passes some segments."""
    way_in = reader_name(fragment, "in")
    log.register(way_in)
    log.forget_others(fragment, {way_in})
    log.passed(way_in, upto)


def test_a_stream_is_kept_for_a_reader_of_the_plan_that_starts_long_after_the_others(tmp_path: Path) -> None:
    early = next(one for one in begun(whole()).fragments if one.channels)
    late, stream = replace(early, id="late"), early.channels[0]
    folders = Folders(tmp_path)
    await_readers(folders, [early, late])
    log = folders.stream(stream)
    assert isinstance(log, Log)
    reads(log, early.id, SEGMENTS)
    writer = LogWriter(log, 1, "f")
    for batch in range(SEGMENTS):
        segment(writer, batch)
    log.retain()
    assert log.first_segment() == 0
    reads(log, late.id, SEGMENTS)
    log.retain()
    assert log.first_segment() == SEGMENTS - 1
    await_readers(folders, [early, late])
    assert log.needed() == SEGMENTS, "who has begun is not awaited again"
    reads(log, late.id, 3)
    keep_for_readers(folders, [early])
    assert [fragment_of(reader) for reader in log.known()] == [early.id]


def test_the_desk_awaits_every_reader_of_its_first_plan(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    state.disk.make(state.path)
    plan = begun(whole())
    changes = Changes(state, rules(plan.deployment))
    changes.begin(plan, None)
    reading = {(stream, one.id) for one in plan.fragments for stream in one.channels}
    assert reading
    known = {(log.name, fragment_of(reader)) for log in state.folders.streams() for reader in log.known()}
    assert known == reading
    changes.close()
