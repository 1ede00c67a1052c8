"""A recording lies in its log as its file had it, however long it is."""

from __future__ import annotations

import random
from pathlib import Path

from weft.spark.sources.recordings import in_order_of_writing


def test_files_of_a_long_recording_follow_one_another_as_they_were_written(tmp_path: Path) -> None:
    names = [f"part-00000-4f0c9b12-c{number:03d}.snappy.parquet" for number in (0, 1, 99, 100, 101, 999, 1000, 1001)]
    for name in random.Random(1).sample(names, len(names)):
        (tmp_path / name).touch()
    assert [path.name for path in in_order_of_writing(tmp_path)] == names
