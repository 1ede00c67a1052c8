"""Is the vessel example what it says: messages counted once, as batch Spark does, while operators move?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.examples.example_rows import batch, copied, delivered, differing, module, moved, run

STATIONS = ("skagen", "gedser")


def test_messages_are_the_same_every_time_and_many_are_heard_by_both_stations(tmp_path: Path) -> None:
    generate = module("vessels")
    for name in ("once", "again"):
        generate.fill(tmp_path / name, messages=2_000, made_up=True)
    heard = []
    for station in STATIONS:
        text = (tmp_path / "once" / f"{station}.csv").read_text()
        assert text == (tmp_path / "again" / f"{station}.csv").read_text()
        heard.append(text.splitlines()[1:])
    assert sum(map(len, heard)) == 2_000
    assert len(set(heard[0]) & set(heard[1])) > 300


def test_no_message_is_later_than_the_queries_wait(tmp_path: Path) -> None:
    module("vessels").fill(tmp_path, messages=2_000, made_up=True)
    for station in STATIONS:
        sent = pd.to_datetime(pd.read_csv(tmp_path / f"{station}.csv")["ts"], dayfirst=True)
        assert pd.Timedelta(0) < (sent.cummax() - sent).max() < pd.Timedelta(seconds=20)


@pytest.mark.spark
@pytest.mark.long
def test_made_up_messages_give_the_rows_of_batch_spark_while_operators_move(spark: Any, tmp_path: Path) -> None:
    deployment = copied("vessels", tmp_path, seconds=6, messages=3_000, made_up=True)
    assert moved(run(deployment)) == ["fishing.once: to centre-south", "fishing.avg_speed: to navy"]
    wanted = batch(spark, deployment)
    assert all(wanted.values())
    assert differing(delivered(deployment), wanted) == {}


@pytest.mark.spark
@pytest.mark.long
def test_the_whole_example_gives_the_rows_of_batch_spark(spark: Any, tmp_path: Path) -> None:
    """Recorded messages where there are some, at the speed that the file says."""
    deployment = copied("vessels", tmp_path)
    run(deployment)
    assert differing(delivered(deployment), batch(spark, deployment)) == {}
