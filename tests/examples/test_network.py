"""Is the network example what it says: the heaviest pairs, as batch Spark finds them, while operators move?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.examples.example_rows import batch, copied, delivered, differing, module, moved, run

WAITS = {"flows-1": pd.Timedelta(minutes=5), "flows-2": pd.Timedelta(minutes=5), "dns": pd.Timedelta(minutes=2)}


def test_logs_are_the_same_every_time_and_late_within_the_waits(tmp_path: Path) -> None:
    generate = module("network")
    for name in ("once", "again"):
        generate.fill(tmp_path / name, records=1_000, made_up=True)
    for log, wait in WAITS.items():
        assert (tmp_path / "once" / f"{log}.csv").read_bytes() == (tmp_path / "again" / f"{log}.csv").read_bytes()
        moment = pd.read_csv(tmp_path / "once" / f"{log}.csv", parse_dates=["ts"])["ts"]
        assert pd.Timedelta(0) < (moment.cummax() - moment).max() < wait


@pytest.mark.spark
@pytest.mark.long
def test_made_up_logs_give_the_rows_of_batch_spark_while_operators_move(spark: Any, tmp_path: Path) -> None:
    deployment = copied("network", tmp_path, seconds=6, records=2_000, made_up=True)
    assert moved(run(deployment)) == ["heavy.pairs: to operations", "lookups.asked: to core"]
    wanted = batch(spark, deployment)
    assert all(wanted.values())
    assert differing(delivered(deployment), wanted) == {}


@pytest.mark.spark
@pytest.mark.long
def test_the_whole_example_gives_the_rows_of_batch_spark(spark: Any, tmp_path: Path) -> None:
    """Recorded logs where there are some, at the speed that the file says."""
    deployment = copied("network", tmp_path)
    run(deployment)
    assert differing(delivered(deployment), batch(spark, deployment)) == {}
