"""What a batch means for those downstream: whose birth counts for its results, and how far event time has come."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bodies.live.test_placements import drawn
from weft.model import Deployment, Operator, Placement, Query, Sink, Site, Source, Watermark, dataflow
from weft.plan.changing.fragments import Fragment, cut
from weft.plan.dataflow.event_times import Times, carried_times, passes_by_sql
from weft.spark.channels.folders import Folders
from weft.spark.channels.manifest import Written
from weft.spark.checkpoints.offsets import Arrival, Offsets
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.wiring import RunContext
from weft.spec import ddl, is_stateful

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


@pytest.mark.parametrize("handed_on", ["SELECT w, n FROM one WHERE n > 1", "SELECT w, n FROM one"])
def test_what_follows_a_window_on_its_site_has_come_as_far_as_its_watermark(handed_on: str, tmp_path: Path) -> None:
    sources = (Source("s", "x", "rate", ddl("ts TIMESTAMP, k INT"), event_time="ts"),)
    window = "SELECT window({}, '1 second') AS w, count(*) AS n FROM {} GROUP BY 1"
    operators = (
        Operator("f", ("s",), sql="SELECT ts, k FROM s WHERE k > 0"),
        Operator("one", ("f",), sql=window.format("ts", "f"), watermarks=(Watermark("1 second"),)),
        Operator("m", ("one",), sql=handed_on),
        Operator("two", ("m",), sql=window.format("w", "m"), watermarks=(Watermark("0 seconds"),)),
    )
    deployment = Deployment((Site("x"), Site("y")), sources, (Query("q", operators, (Sink("two", "parquet", "out"),)),))
    placement = Placement({"q.f": "x", "q.one": "y", "q.m": "y", "q.two": "x"})
    fragments = cut(deployment, placement, lambda query, one: is_stateful(one), passes_by_sql)
    (here,) = (one for one in fragments if one.outputs == ("q.m",))
    assert here.stateful == "one"
    carried = carried_times(deployment, lambda query, one: is_stateful(one), passes_by_sql)
    times = BatchTimes(RunContext(deployment, Folders(tmp_path), {}), carried, here, False)
    arrivals = {"from q.f": Arrival(None, {"ts": 9_500_000}, False, 1, 1)}
    output: Any = SimpleNamespace(stream="q.m", writer=SimpleNamespace(last=None))
    assert times.times_us(output, arrivals, Offsets({}, 8_000, 0.0), Written()) == {"w": 8_000_000}


@pytest.mark.parametrize("seed", range(12))
def test_every_stream_that_a_watermark_depends_on_says_how_far_it_has_come(seed: int, tmp_path: Path) -> None:
    """Wherever operators run, so that no window waits for the end of a run."""
    deployment, rng = drawn(seed, tmp_path), Random(seed)
    homes = {node.stream: rng.choice("abc") for node in dataflow(deployment).nodes}
    fragments = cut(deployment, Placement(homes), lambda query, one: is_stateful(one), passes_by_sql)
    carried = carried_times(deployment, lambda query, one: is_stateful(one), passes_by_sql)
    for fragment in fragments:
        times = BatchTimes(RunContext(deployment, Folders(tmp_path), {}), carried, fragment, False)
        arrivals = {
            stream: Arrival(
                None, {} if stream in fragment.sources else dict.fromkeys(carried.columns(stream), 5), False
            )
            for stream in fragment.inputs
        }
        for stream in fragment.outputs:
            output: Any = SimpleNamespace(stream=stream, writer=SimpleNamespace(last=None))
            written = Written(times_us=dict.fromkeys(times.measured(stream), 5))
            told = times.times_us(output, arrivals, Offsets({}, 8_000, 0.0), written)
            assert set(told) == set(carried.columns(stream)), (fragment, stream)
