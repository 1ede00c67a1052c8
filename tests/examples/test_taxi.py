"""Is the taxi example what it says: trips judged, placed and counted as batch Spark does, while operators move?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.examples.example_rows import batch, copied, delivered, differing, module, moved, run

WAIT = pd.Timedelta(minutes=5)


def test_trips_are_the_same_every_time_and_late_within_the_wait(tmp_path: Path) -> None:
    generate = module("taxi")
    for name in ("once", "again"):
        generate.fill(tmp_path / name, trips=500, made_up=True)
    for vendor in (1, 2):
        text = (tmp_path / "once" / f"vendor-{vendor}.csv").read_bytes()
        assert text == (tmp_path / "again" / f"vendor-{vendor}.csv").read_bytes()
        ended = pd.read_csv(tmp_path / "once" / f"vendor-{vendor}.csv", parse_dates=["dropoff_datetime"])
        late = ended["dropoff_datetime"].cummax() - ended["dropoff_datetime"]
        assert pd.Timedelta(0) < late.max() < WAIT


@pytest.mark.spark
def test_made_up_trips_give_the_rows_of_batch_spark_while_operators_move(spark: Any, tmp_path: Path) -> None:
    deployment = copied("taxi", tmp_path, seconds=6, trips=1_500, made_up=True)
    assert moved(run(deployment)) == ["zones.count: to hub-west", "zones.profit: to commission"]
    wanted = batch(spark, deployment)
    assert all(wanted.values())
    assert differing(delivered(deployment), wanted) == {}


@pytest.mark.spark
@pytest.mark.long
def test_the_whole_example_gives_the_rows_of_batch_spark(spark: Any, tmp_path: Path) -> None:
    """Recorded trips where there are some, at the speed that the file says."""
    deployment = copied("taxi", tmp_path)
    run(deployment)
    assert differing(delivered(deployment), batch(spark, deployment)) == {}
