"""What a site has measured is told once, whatever else fails or goes on meanwhile."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from tests.spark.fragments.test_last_batch import fragment
from weft.protocol.reporting import BatchDone
from weft.spark.measuring import site
from weft.spark.measuring.progress import BatchReport, new_reports
from weft.spark.measuring.site import SiteMeasures


class Stages:
    """Nothing is known of stages."""

    looks = 0

    def look(self, now: bool = False) -> None:
        """There is nothing."""

    def seconds(self, pool: str) -> float:
        """None were spent."""
        return 0.0


def run(born: int, *batches: int) -> Any:
    """A run as far as it is measured: Spark has reported some batches of it."""
    writer = SimpleNamespace(sync_ms=deque(), outputs=[], left_out=[])
    return SimpleNamespace(born=born, fragment=fragment("q.o", "o"), generation=0, writer=writer, batches=batches)


@pytest.fixture(autouse=True)
def reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's reports are those that runs were made with."""
    of = lambda run, after: (BatchReport(batch, 1) for batch in run.batches if batch > after)  # noqa: E731
    monkeypatch.setattr(site, "new_reports", of)
    monkeypatch.setattr(SiteMeasures, "_now", lambda self, run: run.born)


def told(measures: SiteMeasures) -> list[int]:
    """The batches that a look tells of."""
    return [event.batch for event in measures.look().events if isinstance(event, BatchDone)]


def test_what_a_look_that_failed_had_taken_is_told_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"q.o": run(1, 0, 1)}
    measures = SiteMeasures("a", runs, Stages(), {})  # type: ignore[arg-type]

    def fails(self: SiteMeasures, run: Any) -> None:
        raise FileNotFoundError("Spark tidied up")

    with monkeypatch.context() as once:
        once.setattr(SiteMeasures, "_now", fails)
        with pytest.raises(FileNotFoundError):
            measures.look()
    assert told(measures) == [0, 1]
    assert told(measures) == []


def test_a_run_that_began_and_ended_between_two_looks_is_told_of() -> None:
    first, second, third = run(1, 0), run(2, 1), run(3, 2)
    runs = {"q.o": first}
    measures = SiteMeasures("a", runs, Stages(), {})  # type: ignore[arg-type]
    assert told(measures) == [0]
    for before, after in ((first, second), (second, third)):
        runs["q.o"] = after
        measures.replaced(before)
    assert told(measures) == [1, 2]
    assert told(measures) == []


def test_counts_of_a_batch_are_found_while_another_is_being_added() -> None:
    batches: deque[Any] = deque()

    class Counted:
        @property
        def batch(self) -> int:
            batches.append(None)
            return 6

    batches += [Counted(), SimpleNamespace(batch=7)]
    text = '{"batchId": 7, "durationMs": {"addBatch": 1}, "sources": []}'
    query = SimpleNamespace(recentProgress=lambda: [SimpleNamespace(batchId=lambda: 7, json=lambda: text)])
    writer = SimpleNamespace(rehearsed=None, waited_ms={}, batches=batches)
    one: Any = SimpleNamespace(
        query=SimpleNamespace(_jsq=query), writer=writer, fragment=fragment("q.o", "o"),
        file_entries=lambda: iter(()), topic_entries=list,
    )  # fmt: skip
    assert next(new_reports(one, -1)).counts is not None
