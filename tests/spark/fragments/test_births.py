"""Whose birth counts for the results of a batch: its own records', or for a window those that moved the watermark."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.model import Deployment, Operator, Query, Sink, Site, Watermark
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Times
from weft.spark.channels.folders import Folders
from weft.spark.checkpoints.offsets import Arrival, Offsets
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.wiring import RunContext

WINDOW = "SELECT window(ts, '1 minute') AS w, count(*) AS n FROM s GROUP BY 1"
DISTINCT = "SELECT DISTINCT ts, k FROM s"
JOIN = "SELECT s.ts FROM s JOIN t ON s.k = t.k AND s.ts = t.ts"


def born_with_the_second_batch(sql: str, folder: Path) -> tuple[float, float] | None:
    """The births of what a second batch gives, whose watermark the first one's records have moved."""
    operator = Operator("o", ("s", "t") if sql is JOIN else ("s",), sql=sql, watermarks=(Watermark("1 second"),))
    query = Query("q", (operator,), (Sink("o", "parquet", "out"),))
    context = RunContext(Deployment((Site("x"),), (), (query,)), Folders(folder), {})
    fragment = Fragment("q.o", "x", ("q",), ("o",), (), "o", ("s",), (), (), ("q",))
    times = BatchTimes(context, Times({}), fragment, False)
    first, second = Offsets({}, 1_000, 0.0), Offsets({}, 5_000, 0.0)

    def come(born: tuple[float, float]) -> dict[str, Arrival]:
        return {"s": Arrival(born, {}, False, 1, 1)}

    assert times.births(come((10.0, 20.0)), None, first) == (10.0, 20.0)
    return times.births(come((30.0, 40.0)), first, second)


def test_results_of_a_window_count_from_the_records_that_moved_the_watermark(tmp_path: Path) -> None:
    assert born_with_the_second_batch(WINDOW, tmp_path) == (10.0, 20.0)


@pytest.mark.parametrize("sql", [DISTINCT, JOIN])
def test_what_drops_repeats_or_joins_gives_its_results_with_their_own_batch(sql: str, tmp_path: Path) -> None:
    assert born_with_the_second_batch(sql, tmp_path) == (30.0, 40.0)
