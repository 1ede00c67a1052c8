"""A sweep runs every point once, reports what fails without failing, and takes up where it was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.lab.sweep import one_run, points_of, sweep
from weft.model import Cost, Deployment, Operator, Poisson, Query, Sink, Site, Source


def station(rate: float) -> Deployment:
    if rate < 0:
        raise ValueError("no such rate")
    work = Operator("o", ("s",), sql="SELECT 1", cost_ms=Cost("exponential", (1.0,)), selectivity=1.0)
    source = Source("s", "a", "rate", (), arrivals=Poisson(rate))
    return Deployment((Site("a"),), (source,), (Query("q", (work,), (Sink("o", "console"),)),))


class InProcess:
    """Stands for a Spark session: the same map, here and now."""

    class sparkContext:
        defaultParallelism = 2

        @staticmethod
        def parallelize(items: list[Any], pieces: int) -> Any:
            assert pieces >= 1

            class Pieces:
                def map(self, work: Any) -> Any:
                    self.work = work
                    return self

                def collect(self) -> list[Any]:
                    return [self.work(item) for item in items]

            return Pieces()


def test_every_point_of_the_grid_is_run_with_every_seed() -> None:
    assert points_of({"rate": [1, 2]}, [7, 8]) == [
        {"rate": 1, "seed": 7}, {"rate": 1, "seed": 8}, {"rate": 2, "seed": 7}, {"rate": 2, "seed": 8},
    ]  # fmt: skip
    seen: list[tuple[int, int]] = []
    grid = {"rate": [100.0, 500.0]}
    frame = sweep(station, grid, 5, [1, 2], session=InProcess(), progress=lambda *at: seen.append(at))
    assert len(frame) == 4
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    alone = one_run(station, {"rate": 500.0, "seed": 2}, 5, {})
    assert frame.iloc[3]["latency_ms_mean"] == alone["queries"]["q"]["latency_ms"]["mean"]


def test_a_run_that_fails_is_a_row_with_its_error() -> None:
    frame = sweep(station, {"rate": [-1.0, 100.0]}, 5, session=InProcess())
    assert "no such rate" in frame.iloc[0]["error"]
    assert frame.iloc[1]["error"] is None


def test_a_sweep_takes_up_where_it_was_left(tmp_path: Path) -> None:
    first = sweep(station, {"rate": [100.0, -1.0]}, 5, folder=tmp_path, session=InProcess())
    assert len(list(tmp_path.glob("*.json"))) == 1
    asked: list[float] = []

    def counting(rate: float) -> Deployment:
        asked.append(rate)
        return station(abs(rate))

    second = sweep(counting, {"rate": [100.0, -1.0]}, 5, folder=tmp_path, session=InProcess())
    assert asked == [-1.0]
    assert second.iloc[0]["latency_ms_mean"] == first.iloc[0]["latency_ms_mean"]


@pytest.mark.spark
def test_a_sweep_on_spark_gives_what_runs_here_give(spark: Any) -> None:
    frame = sweep(station, {"rate": [100.0, 300.0, -1.0]}, 2, [1, 2], session=spark)
    assert len(frame) == 6
    assert frame["error"].notna().sum() == 2
    here = one_run(station, {"rate": 300.0, "seed": 2}, 2, {})
    assert frame.iloc[3]["latency_ms_mean"] == here["queries"]["q"]["latency_ms"]["mean"]
