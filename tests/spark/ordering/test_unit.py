"""The part of ordering that Spark calls, in memory: pack, the unit with its state, unpack; no session is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from weft.model import Order
from weft.spark.ordering.holds import measured_order
from weft.spark.ordering.packing import BLOB, PART, pack, pack_or_sign, unpack
from weft.spark.ordering.unit import END_MS, Unit


class State:
    """What Spark would keep for one part."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.hasTimedOut = False
        self.timeout_ms: int | None = None
        self.now_ms = 0
        self.watermark_ms = 0

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def remove(self) -> None:
        self.value = None

    def getCurrentProcessingTimeMs(self) -> int:
        return self.now_ms

    def getCurrentWatermarkMs(self) -> int:
        return self.watermark_ms

    def setTimeoutDuration(self, ms: int) -> None:
        self.timeout_ms = ms

    def setTimeoutTimestamp(self, ms: int) -> None:
        self.timeout_ms = ms


def stream(count: int) -> pa.Table:
    rng = np.random.default_rng(3)
    delay = np.where(rng.random(count) < 0.3, rng.uniform(0, 400_000, count), 0)
    times = (1_700_000_000_000_000 + np.arange(count) * 1000 - delay).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array([None if n % 500 == 7 else int(times[n]) for n in range(count)], pa.timestamp("us", "UTC")),
            "n": pa.array([None if n % 1000 == 8 else 2**60 + n for n in range(count)], pa.int64()),
            "text": [f"{n} " * (n % 50) for n in range(count)],
            "number": np.arange(count),
        }
    )


def through(unit: Unit, state: State, batch: pa.Table | None) -> pa.Table | None:
    """One micro-batch, or the timeout, as Spark would run it; records come out of the shuffle in any order."""
    frames: list[pd.DataFrame] = []
    state.hasTimedOut = batch is None
    if batch is not None:
        mixed = batch.take(np.random.default_rng(1).permutation(batch.num_rows))
        marked = mixed.append_column(PART, pa.array([0] * mixed.num_rows, pa.int32()))
        frames = [one.to_pandas() for one in pack(iter(marked.to_batches(max_chunksize=300)))]
    given = list(unit((0,), iter(frames), state))  # type: ignore[arg-type]
    out = [records for frame in given for records in unpack(iter([pa.RecordBatch.from_pandas(frame[[BLOB]])]))]
    return pa.Table.from_batches(out) if out else None


def test_what_goes_in_comes_out_once_in_order_with_every_value(tmp_path: Path) -> None:
    records = stream(6000)
    unit, state = Unit(Order(time="ts"), 1e6, None, "late"), State()
    parts = [through(unit, state, records.slice(first, 500)) for first in range(0, 6000, 500)]
    assert state.timeout_ms is not None
    assert 1000 <= state.timeout_ms < 2000, "silence is bounded by twice the hold, and by a second"
    parts.append(through(unit, state, None))
    out = pa.concat_tables([part for part in parts if part is not None])
    rows = out.sort_by("number")
    assert rows.drop_columns(["late"]).equals(records)
    late = out.column("late").to_numpy()
    times = out.column("ts").to_pandas()[~late]
    assert times.is_monotonic_increasing
    assert late.sum() < 12 + 300
    assert late[out.column("ts").is_null().to_numpy()].all()


def test_in_a_deployment_late_records_lie_aside_and_the_end_lets_all_go(tmp_path: Path) -> None:
    records = stream(3000)
    unit, state = Unit(Order(time="ts"), 1e6, None, None, str(tmp_path)), State()
    before = None
    parts = []
    for first in range(0, 3000, 500):
        before = state.value
        parts.append(through(unit, state, records.slice(first, 500)))
    # A batch that is run again from the state before it gives the same, and writes the same file.
    files = sorted(tmp_path.glob("*.parquet"))
    again = State()
    again.value = before
    assert through(unit, again, records.slice(2500, 500)).equals(parts[-1])  # type: ignore[union-attr]
    assert sorted(tmp_path.glob("*.parquet")) == files
    parts.append(through(unit, state, None))
    assert not state.exists
    out = pa.concat_tables([part for part in parts if part is not None])
    aside = pa.concat_tables([pq.read_table(file) for file in files])
    assert out.column_names == records.column_names
    assert sorted(out.column("number").to_pylist() + aside.column("number").to_pylist()) == list(range(3000))
    assert out.column("ts").to_pandas().is_monotonic_increasing
    measured = measured_order(tmp_path)
    assert measured is not None
    assert (measured["records"], measured["held"]) == (3000, 0)


def test_in_a_deployment_a_batch_without_records_lets_go_after_silence_and_at_the_end(tmp_path: Path) -> None:
    unit, state = Unit(Order(time="ts"), 1e6, None, None, str(tmp_path)), State()
    sign = [one.to_pandas() for one in pack_or_sign(iter([]))]
    state.now_ms = 10_000
    through(unit, state, stream(1000))
    held = measured_order(tmp_path)
    assert held is not None
    assert held["held"] > 0
    state.now_ms = 10_000 + held["idle_ms"] - 1
    assert list(unit((0,), iter(sign), state)) == []  # type: ignore[arg-type]
    state.now_ms += 1
    (given,) = unit((0,), iter(sign), state)  # type: ignore[arg-type]
    (out,) = unpack(iter([pa.RecordBatch.from_pandas(given[[BLOB]])]))
    assert out.num_rows == held["held"]
    assert state.exists, "after silence the hold is still known"
    state.watermark_ms = END_MS
    assert list(unit((0,), iter(sign), state)) == []  # type: ignore[arg-type]
    assert not state.exists


def test_ways_that_are_held_back_differently_are_expected_so(tmp_path: Path) -> None:
    """One way is 300 ms behind the other from the start, later 900: nobody is late for it."""
    slow, here, further = tmp_path / "slow", tmp_path / "here", tmp_path / "further"
    slow.mkdir()
    unit = Unit(Order(time="ts"), 1e6, None, None, str(here), (str(slow), None))
    alone = Unit(Order(time="ts"), 1e6, None, None, str(tmp_path / "alone"))
    state, lone_state = State(), State()
    late, lone_late = [], []
    start = 1_700_000_000_000_000
    for batch in range(40):
        lag_ms = 300 if batch < 10 else 900
        (slow / "measured.json").write_text(f'{{"lag_ms": {lag_ms}}}')
        now = start + batch * 50_000 + np.arange(50) * 1000
        stalls = batch < 6 or 10 <= batch < 22  # a hold that rises: nothing leaves there for a while
        times = now if stalls else np.concatenate([now, now - lag_ms * 1000])
        table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
        for one, kept, found in ((unit, state, late), (alone, lone_state, lone_late)):
            through(one, kept, table)
            measured = measured_order(Path(one.late_folder or ""))
            assert measured is not None
            found.append(measured["late"])
    assert late[-1] == 0 < lone_late[-1]
    measured = measured_order(here)
    assert measured is not None
    assert measured["hold_ms"] >= 900
    assert measured["lag_ms"] >= 1800, "those further on are told of all that lies before them"
    after = Unit(Order(time="ts"), 1e6, None, None, str(further), (str(here),))
    state = State()
    through(after, state, table)
    measured = measured_order(further)
    assert measured is not None
    assert measured["hold_ms"] < 1800, "a single way brings no disorder, however far it is behind"


def test_a_batch_that_is_run_again_leaves_no_late_records_of_its_first_run(tmp_path: Path) -> None:
    unit, state = Unit(Order(time="ts"), 1e6, None, None, str(tmp_path)), State()
    through(unit, state, stream(2000))
    calls = state.get[2]
    (tmp_path / f"{calls:010d}.parquet").write_bytes(b"of a run that did not end")
    last = int(stream(2000).column("ts").cast(pa.int64()).drop_null().to_numpy().max())
    through(
        unit,
        state,
        pa.table(
            {
                "ts": pa.array([last + 1], pa.timestamp("us", "UTC")),
                "n": pa.array([1], pa.int64()),
                "text": ["t"],
                "number": pa.array([2000], pa.int64()),
            }
        ),
    )
    assert not (tmp_path / f"{calls:010d}.parquet").exists()
