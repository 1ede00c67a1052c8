"""A file that goes before it was read is told of, and what was committed already does not need it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark.storage.cut_disk import CutDisk
from tests.spark.storage.fake_spark import Engine, World, expected
from weft.spark.storage.disk import Damaged


def lists_of(engine: Engine, number: int, file: Path) -> None:
    """Spark's list says that the next batch takes a file."""
    lists = engine.checkpoint / "sources" / engine.entry.name
    lists.mkdir(parents=True, exist_ok=True)
    told = {"path": file.as_uri(), "timestamp": 1, "batchId": number}
    (lists / str(number)).write_text(f"v1\n{json.dumps(told)}")


def test_a_batch_waits_for_its_file_until_its_results_are_committed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(folder, CutDisk(folder), monkeypatch)
    engine, file = world.engines[0], folder / "in" / "one.csv"
    lists_of(engine, 1, file)
    batch = engine.plan()
    assert batch == 0
    for _ in range(2):
        with pytest.raises(Damaged, match=r"one\.csv: is gone"):
            engine.write(batch)
    file.write_text("1\n2\n3\n")
    engine.write(batch)
    file.unlink()
    # The process ends before Spark has committed the batch: it is done again, and writes nothing.
    later = World(folder, CutDisk(folder), monkeypatch)
    later.run()
    assert later.delivered() == expected()
