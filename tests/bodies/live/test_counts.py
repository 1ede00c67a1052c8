"""What is counted over several runs: every batch once, every source from its beginning, whoever reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live.counts import FILE, Counts, as_plain, taken_up
from weft.bodies.live.meter import Meter
from weft.bodies.live.progress import Progress
from weft.bodies.live.state import State
from weft.model import Column, Deployment, Operator, Query, Sink, Site, Source
from weft.plan.changing.fragments import Fragment
from weft.protocol.reporting import BatchDone, Committed

SOURCE = Source("lines", "a", "csv", (Column("v", "BIGINT"),), "in")
QUERY = Query("q", (Operator("o", ("lines",), sql="SELECT * FROM lines"),), (Sink("o", "csv", "out"),))
DEPLOYMENT = Deployment((Site("a"),), (SOURCE,), (QUERY,))
READING = {"q.o": {"lines"}}


def batch(number: int, rows: int, bad: int = 0, fragment: str = "q.o", generation: int = 0) -> BatchDone:
    return BatchDone(fragment, generation, number, 10, {"lines": rows}, {"lines": bad}, {"o": rows - bad})


def counted(*reports: BatchDone) -> Counts:
    counts = Counts()
    counts.follow(READING)
    for report in reports:
        counts.take(report)
    return counts


def test_a_batch_that_is_reported_again_is_counted_once() -> None:
    counts = counted(batch(0, 10, 1), batch(1, 5), batch(1, 5))
    again = taken_up(as_plain(counts))
    again.take(batch(1, 5, fragment="q.o", generation=0))
    again.take(batch(2, 3, 1, fragment="q.o", generation=0))
    assert (again.records_of("lines"), again.bad_of("lines")) == (18, 2)
    assert again.fragments["q.o"].batches == 3
    assert again.fragments["q.o"].operators == {"o": 16}


def test_batches_of_another_checkpoint_are_others_whatever_their_numbers() -> None:
    counts = counted(batch(8, 10))
    counts.take(batch(4, 5, fragment="q.o", generation=1))
    assert counts.records_of("lines") == 15
    assert not counts.take(batch(4, 5, generation=1))


def test_a_site_that_tells_late_is_counted_though_the_one_that_goes_on_was_quicker() -> None:
    counts = counted(batch(0, 10), batch(3, 2), batch(1, 5))
    again = taken_up(as_plain(counts))
    for report in (batch(2, 3), batch(2, 3), batch(1, 5), batch(3, 2)):
        again.take(report)
    assert again.records_of("lines") == 20
    moved = counted(batch(3, 2), batch(7, 1, generation=1), batch(4, 5), batch(7, 1, generation=1))
    assert moved.records_of("lines") == 8, "of the checkpoint before it, too"


def test_readers_side_by_side_do_not_add_up() -> None:
    counts = counted(batch(0, 10))
    counts.follow({**READING, "q.p": {"lines"}})
    counts.take(batch(0, 10, fragment="q.p", generation=0))
    assert counts.records_of("lines") == 10
    assert counts.records_into("q.p") == 10


def test_a_reader_that_a_move_brings_goes_on_where_the_old_one_ended() -> None:
    counts = counted(batch(0, 10, 1))
    counts.follow({"q.o": set(), "lines": {"lines"}})
    counts = taken_up(as_plain(counts))
    counts.take(batch(1, 5, 1, fragment="lines", generation=1))
    assert (counts.records_of("lines"), counts.bad_of("lines")) == (15, 2)
    assert (counts.records_into("q.o"), counts.records_into("lines")) == (10, 5)
    counts.follow(READING)
    counts.take(batch(2, 2, fragment="q.o", generation=2))
    assert counts.records_of("lines") == 17
    assert counts.records_into("q.o") == 12


def test_what_an_old_reader_had_taken_counts_though_it_is_told_when_the_new_one_runs() -> None:
    counts = counted(batch(0, 10))
    counts.follow({"q.o": set(), "lines": {"lines"}})
    counts = taken_up(as_plain(counts))
    counts.take(batch(0, 5, fragment="lines", generation=1))
    counts.take(batch(1, 3, 1))
    assert (counts.records_of("lines"), counts.bad_of("lines")) == (18, 1)
    assert (counts.records_into("q.o"), counts.records_into("lines")) == (13, 5)
    counts.follow(READING)
    counts.take(batch(1, 4, fragment="lines", generation=1))
    counts.take(batch(0, 2, fragment="q.o", generation=2))
    assert counts.records_of("lines") == 24
    assert counts.records_into("q.o") == 15


def test_a_new_reader_that_tells_of_a_batch_before_anybody_looked_loses_none_of_it() -> None:
    old = Fragment("q.o", "a", ("q",), ("o",), (), None, ("lines",), (), (), ("q",))
    new = Fragment("lines", "a", (), (), (), None, ("lines",), (), ("lines",), ())
    in_force = [old]
    heard = Progress(Meter(DEPLOYMENT), lambda: in_force)
    heard.hear("a", "life", batch(0, 10), 0.0)
    heard.look()
    in_force[:] = [new]
    heard.hear("a", "life", batch(0, 5, fragment="lines", generation=1), 0.0)
    heard.look()
    assert heard.meter.counts.records_of("lines") == 15


@pytest.mark.parametrize("kept", [None, [], {"fragments": {"q.o": {"batches": "many"}}}, "text"])
def test_what_is_not_counts_is_taken_as_nothing(kept: Any) -> None:
    assert taken_up(kept) == Counts()


def progress(state: State) -> Progress:
    return Progress(Meter(DEPLOYMENT), tuple, state=state)


def test_counts_are_kept_with_a_look_where_they_changed_and_are_there_at_the_next_start(tmp_path: Path) -> None:
    state = State(tmp_path)
    first = progress(state)
    first.meter.counts = counted(batch(0, 10, 2))
    first.look()
    written = (tmp_path / FILE).stat().st_mtime_ns
    first.look()
    assert (tmp_path / FILE).stat().st_mtime_ns == written
    told = progress(state).meter.query(QUERY)
    assert (told["records_in"], told["bad_records"]) == (10, 2)
    assert progress(state).fragment("q.o")["batches"] == 1


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]"])
def test_a_garbled_file_of_counts_is_taken_as_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert progress(State(tmp_path)).meter.query(QUERY)["records_in"] == 0


def test_results_are_those_of_all_runs_and_given_are_those_of_this_one() -> None:
    meter = Meter(DEPLOYMENT)
    meter.holds("q", 100)
    assert (meter.query(QUERY)["records_out"], meter.given(QUERY)) == (100, 0)
    meter.committed(Committed("q.o", "q", True, 3, rows=5, rows_total=105, committed_ms=0.0))
    meter.holds("q", 100)  # a look that began before the commit
    assert (meter.query(QUERY)["records_out"], meter.given(QUERY)) == (105, 5)
