"""How two checkouts are compared: who with whom, on what disk, and what the numbers say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks import durability
from benchmarks.durability import Side

from weft import model

PAIR = (Side("old", Path("/a")), Side("new", Path("/b")))


def turn(hop: float, **synced: Any) -> dict[str, Any]:
    return {"values": {"hop": hop}, "sync_ms": {"moves": synced or None}}


def test_a_ratio_is_taken_within_rounds_and_the_median_over_them() -> None:
    base = [turn(100.0), turn(200.0), turn(400.0)]
    other = [turn(110.0), turn(300.0), turn(400.0)]
    found = durability.compared(PAIR, base, other, "hop")
    assert found["old"] == {"median": 200.0, "range": [100.0, 400.0], "rounds": [100.0, 200.0, 400.0]}
    assert (found["ratio"], found["ratios"]) == (1.1, [1.1, 1.5, 1.0])
    assert (found["unit"], found["better"]) == ("ms", "less")


def test_what_syncing_took_is_shown_where_a_version_tells_it() -> None:
    assert durability._synced([turn(1.0), turn(1.0)]) == {}
    told = [turn(1.0, per_batch_p50=2.0, per_batch_p95=9.0), turn(1.0, per_batch_p50=4.0, per_batch_p95=11.0)]
    assert durability._synced(told) == {"moves": {"per_batch_p50": 3.0, "per_batch_p95": 10.0}}


def test_without_another_checkout_syncing_is_compared_with_not_syncing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(model, "Store", raising=False)
    assert durability.sides(None) is None
    monkeypatch.setattr(model, "Store", object, raising=False)
    found = durability.sides(None)
    assert found is not None
    assert [side.fsync for side in found] == [False, True]
    other = durability.sides(Path("."))
    assert other is not None
    assert [(side.name, side.fsync) for side in other] == [("old", None), ("new", None)]


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    assert durability.file_system(Path("/proc")) == "proc"
    assert durability.file_system(tmp_path) not in ("", "proc")


def test_data_are_as_many_records_as_asked_for_in_equal_files(tmp_path: Path) -> None:
    durability.make_data(tmp_path / "data", 1200)
    counts = [len(path.read_text().splitlines()) for path in sorted((tmp_path / "data").iterdir())]
    assert counts == [100] * durability.FILES
