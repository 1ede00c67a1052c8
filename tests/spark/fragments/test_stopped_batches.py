"""Wherever a stop meets a batch, what Spark counts of it is told once: by this epoch, or by the one that repeats it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.spark.storage.cut_disk import CutDisk
from tests.spark.storage.fake_spark import TOTAL, Engine, World, expected
from weft.bodies.live.counts import Counts
from weft.protocol.reporting import BatchDone
from weft.spark.fragments import lifecycle
from weft.spark.fragments.durations import Durations
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.writing import Closed

STOPPED = 2  # the batch that the stop meets


class Query:
    """A streaming query as Spark drives it: a written batch is committed, then reported; a stop breaks that off."""

    def __init__(self, engine: Engine, counts: Counts, slow: bool) -> None:
        self.engine, self.counts, self.slow = engine, counts, slow
        self.rows, self.reported, self.stopped = 0, -1, False
        self.todo: list[Callable[[], None]] = []
        self._jsq = SimpleNamespace(lastProgress=self._last_progress)
        work = engine._work

        def counted(rows: list[int], batch: int) -> list[str]:
            self.rows += len(rows)
            return work(rows, batch)

        engine._work = counted  # type: ignore[method-assign]

    def write(self) -> int | None:
        """The next batch up to where it is written."""
        batch = self.engine.plan()
        self.todo = []
        if batch is not None:
            self.rows = 0
            self.engine.write(batch)
            self.todo = [lambda: self.engine.commit(batch), lambda: self._report(batch)]
        return batch

    def go_on(self, steps: int = 1) -> None:
        """So many steps more, unless it was stopped."""
        for _ in range(steps):
            if self.todo and not self.stopped:
                self.todo.pop(0)()

    def _report(self, batch: int) -> None:
        self.reported = batch
        self.counts.take(BatchDone("q.keep", 0, batch, 1, {"n": self.rows}))

    def _last_progress(self) -> Any:
        return None if self.reported < 0 else SimpleNamespace(batchId=lambda: self.reported)

    @property
    def isActive(self) -> bool:
        if not self.slow:
            self.go_on()  # Spark works on while somebody waits for it
        return not self.stopped

    def stop(self) -> None:
        self.stopped = True


def launched(
    folder: Path, counts: Counts, monkeypatch: pytest.MonkeyPatch, slow: bool = False
) -> tuple[World, FragmentRun, Query]:
    """A life of the fragment that reads files, and who follows it."""
    world = World(folder, CutDisk(folder), monkeypatch)
    query = Query(world.engines[0], counts, slow)
    run = object.__new__(FragmentRun)
    run.writer, run.query, run.over, run.clean = world.engines[0].writer, query, False, False  # type: ignore[assignment]
    return world, run, query


@pytest.mark.parametrize(
    ("point", "clean"),
    [
        ("in the batch", False), ("written", False), ("written, and Spark is slow", False), ("committed", False),
        ("committed", True), ("reported", False), ("reported", True),
    ],
)  # fmt: skip
def test_a_stop_leaves_no_batch_uncounted_and_counts_none_twice(
    point: str, clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, slow = Counts(), "slow" in point
    if slow:
        monkeypatch.setattr(lifecycle, "REPORT_S_MAX", 0.0, raising=False)
    _, run, query = launched(tmp_path, counts, monkeypatch, slow)
    for _ in range(STOPPED):
        query.write()
        query.go_on(2)
    if point == "in the batch":
        work = query.engine._work
        query.engine._work = lambda rows, batch: (run.writer.close(), work(rows, batch))[1]  # type: ignore
    with suppress(Closed):
        query.write()
        query.go_on(("written", "committed", "reported").index(point) if point != "in the batch" and not slow else 0)
    if point == "in the batch":
        query.go_on()  # it may still come to its commit
    run.stop(clean)

    world, _, query = launched(tmp_path, counts, monkeypatch)
    while query.write() is not None:
        query.go_on(2)
    assert counts.fragments["q.keep"].sources["n"].records == TOTAL
    world.run()
    assert world.delivered() == expected()


def test_an_end_amid_a_batch_that_failed_when_its_results_were_there_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run, query = launched(tmp_path, Counts(), monkeypatch)
    query.write()
    query.go_on(2)

    def fails(commit: object) -> None:
        raise OSError("no space left")

    run.writer.on_commit = fails
    with pytest.raises(OSError, match="no space"):
        query.write()
    assert not run.stop(clean=True), "who goes on from the batch before, in another cut, would give its results again"


def test_a_batch_that_has_long_to_go_is_given_up_and_done_by_those_who_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, now, cancelled = Counts(), [0.0], []
    _, run, query = launched(tmp_path, counts, monkeypatch)
    run.writer.durations = Durations(lambda: now[0])
    work, given_up = query.engine._work, []

    def works(rows: list[int], batch: int) -> list[str]:
        now[0] += 0.01  # the batch has just begun when its run is asked to end
        if batch == STOPPED:
            given_up.append(run.writer.give_up())
            raise RuntimeError("Spark was told to cancel its jobs")
        now[0] += 10.0
        return work(rows, batch)

    query.engine._work = works  # type: ignore[method-assign]
    for _ in range(STOPPED):
        query.write()
        query.go_on(2)
    with pytest.raises(Closed):
        query.write()
    assert given_up == [True]
    run.session = SimpleNamespace(sparkContext=SimpleNamespace(cancelJobGroup=cancelled.append))  # type: ignore
    assert run.stop(clean=True), "nothing of it was committed: it ends before that batch"
    assert not cancelled, "there was nothing to cancel any more"

    world, _, query = launched(tmp_path, counts, monkeypatch)
    while query.write() is not None:
        query.go_on(2)
    assert counts.fragments["q.keep"].sources["n"].records == TOTAL
    world.run()
    assert world.delivered() == expected()


def test_a_batch_of_which_something_is_committed_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run, query = launched(tmp_path, Counts(), monkeypatch)
    now, given_up = [0.0], []
    run.writer.durations = Durations(lambda: now[0])
    for _ in range(STOPPED):
        query.write()
        query.go_on(2)
    run.writer.durations.begins(1)
    now[0] += 100.0
    run.writer.durations.is_over()
    commits = run.writer.on_commit
    run.writer.on_commit = lambda commit: (given_up.append(run.writer.give_up()), commits(commit))[1]
    query.write()
    query.go_on(2)
    assert given_up == [False]
    assert run.stop(clean=True)


class Slow:
    """What Spark is asked to start, and what it gives when it has: meanwhile the run is asked to end."""

    def __init__(self, run: FragmentRun) -> None:
        self.run, self.isActive = run, True

    def __getattr__(self, name: str) -> Any:
        return self if name == "writeStream" else lambda *given: self

    def start(self) -> Slow:
        self.run.stop()
        return self

    def stop(self) -> None:
        self.isActive = False


def test_one_that_is_asked_to_end_while_spark_takes_it_does_not_run_on() -> None:
    run = object.__new__(FragmentRun)
    nothing = lambda *given: None  # noqa: E731
    writer = SimpleNamespace(concluded=None, ledger=None, close=nothing, load_positions=nothing, write=nothing)
    context = SimpleNamespace(setLocalProperty=nothing)
    held = {
        "query": None, "over": False, "writer": writer, "gate": SimpleNamespace(waits=True), "generation": 1,
        "fragment": SimpleNamespace(id="q.o", site="a"), "batch_times": SimpleNamespace(updates=False), "born": 1,
        "session": SimpleNamespace(sparkContext=context), "clean": False, "checkpoint": "",
        "warm": (SimpleNamespace(entries=[], ticks=False), Slow(run)),
    }  # fmt: skip
    run.__dict__.update(held)
    run.launch()
    assert run.query is not None
    assert not run.query.isActive
