"""What tasks took is told by query, and not taken twice."""

from __future__ import annotations

import time
from typing import Any

import pytest

from weft.spark.measuring.task_times import TaskTimes

SLEPT_S = 0.3


def work(session: Any, query: str) -> None:
    """A job as of a query's batch, whose one task waits."""

    def waits(rows: Any) -> Any:
        time.sleep(SLEPT_S)
        yield from rows

    session.sparkContext.setJobDescription(f"{query}\nid = 1\nrunId = 2\nbatch = 3")
    try:
        session.sparkContext.parallelize([1], 1).mapPartitions(waits).count()
    finally:
        session.sparkContext.setJobDescription("")


@pytest.mark.spark
def test_tasks_are_told_by_query_once_and_of_one_that_is_closed_no_more(spark: Any) -> None:
    times = TaskTimes(spark)

    def told_s(query: str) -> float:
        until_s = time.monotonic() + 10.0
        while not (told := times.worked_s(query) or 0.0) and time.monotonic() < until_s:
            continue
        return told

    try:
        assert times.worked_s("q.a#0.1") == 0.0
        work(spark, "q.a#0.1")
        work(spark, "q.b#0.2")
        assert told_s("q.a#0.1") >= SLEPT_S
        assert told_s("q.b#0.2") >= SLEPT_S
        assert times.worked_s("q.a#0.1") == 0.0
    finally:
        times.close()
    assert times.worked_s("q.a#0.1") is None
