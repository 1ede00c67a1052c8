"""What does Spark call for a part in every batch? The ordering machine, with the records that it holds and its state.

The unit takes all that a micro-batch brings at once (`protocol/ordering/batch.py`), so nothing depends on the order in
which the shuffle delivers, and a batch that is run again after a crash gives the same records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState

from weft.model import Order
from weft.protocol.ordering import Left, Ordering
from weft.spark.ordering.holds import MEASURED, measured_lag_ms
from weft.spark.ordering.packing import BLOB, blobs_of, from_bytes, spare_the_collector, to_bytes

END_MS = 253_339_228_800_000  # 9998-01-01: only the end of a stream moves the watermark past it
IDLE_MS_MIN = 1000
REVISION = "revision"
SQUEEZED = "zstd"  # Spark passes a state to Python and back byte by byte, and writes it in every batch
STATE = "unit BINARY, held BINARY, calls BIGINT, last_ms BIGINT"


@dataclass(frozen=True, slots=True)
class Unit:
    """What Spark calls for a part in every batch: the ordering machine with the records that it holds.

    `ticks_per_s` turns a hold into seconds; `late` names the flag column, or None and late ones go to `late_folder`.
    `before` are such folders of the units upstream.
    """

    asked: Order
    ticks_per_s: float | None
    idle_ms: int | None
    late: str | None
    late_folder: str | None = None
    before: tuple[str | None, ...] = ()

    def __call__(self, key: Any, frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        spare_the_collector()
        if state.hasTimedOut:
            given = self._let_go(state, ended=self.late is None)
        else:
            blobs = [blob for frame in frames for blob in frame[BLOB] if blob]
            given = self._take(pa.concat_tables(map(from_bytes, blobs)), state) if blobs else self._look(state)
        if given is not None and given.num_rows:
            import pandas as pd

            yield pd.DataFrame({BLOB: blobs_of(given)})

    def _take(self, new: pa.Table, state: GroupState) -> pa.Table | None:
        assert self.asked.time is not None
        times, known = moments(new.column(self.asked.time))
        restored = self._restored(state)
        machine, held, calls, _ = restored or (Ordering(self.asked, times.dtype == np.float64), None, 0, 0)
        numbers = np.concatenate([machine.holding(), np.arange(machine.taken, machine.taken + len(times))])
        table = new if held is None else pa.concat_tables([held.cast(new.schema), new])
        lags = [measured_lag_ms(folder) for folder in self.before]
        if self.ticks_per_s is not None and lags:
            machine.hear((max(lags) - min(lags)) / 1000 * self.ticks_per_s)
        left = machine.take(times, known, at_once=True)
        self._measure(machine, left)
        still = table.take(pa.array(np.searchsorted(numbers, machine.holding())))
        self._keep(state, machine, still, calls + 1)
        return self._given(table, left, np.searchsorted(numbers, left.numbers), calls)

    def _look(self, state: GroupState) -> pa.Table | None:
        """A batch without records: has the stream ended, or been silent for too long?"""
        if state.getCurrentWatermarkMs() >= END_MS:
            return self._let_go(state, ended=True)  # who gets a row, also an empty one, is not told of a timeout
        restored = self._restored(state)
        if restored is None or not restored[0].held:
            return None
        machine, _, _, last_ms = restored
        silent_ms = state.getCurrentProcessingTimeMs() - last_ms
        return self._let_go(state, ended=False) if silent_ms >= self.idle_after_ms(machine) else None

    def _let_go(self, state: GroupState, ended: bool) -> pa.Table | None:
        """The stream is silent, or has ended: then nothing is remembered."""
        restored = self._restored(state)
        if restored is None:
            return None
        machine, held, calls, _ = restored
        numbers = machine.holding()
        left = machine.end() if ended else machine.rest()
        self._measure(machine, left)
        if ended:
            state.remove()
        else:
            self._keep(state, machine, held.slice(0, 0), calls + 1)
        return self._given(held, left, np.searchsorted(numbers, left.numbers), calls)

    def _restored(self, state: GroupState) -> tuple[Ordering, pa.Table, int, int] | None:
        if not state.exists:
            return None
        unit, held, calls, last_ms = state.get
        snapshot = pa.CompressedInputStream(pa.BufferReader(bytes(unit)), SQUEEZED).read()
        return Ordering.restored(self.asked, snapshot), from_bytes(bytes(held)), int(calls), int(last_ms)

    def _keep(self, state: GroupState, machine: Ordering, held: pa.Table, calls: int) -> None:
        unit = pa.compress(machine.snapshot(), SQUEEZED, asbytes=True)
        state.update((unit, to_bytes(held, SQUEEZED), calls, state.getCurrentProcessingTimeMs()))
        if self.late is None:
            state.setTimeoutTimestamp(END_MS)
        elif machine.held:
            state.setTimeoutDuration(self.idle_after_ms(machine))

    def idle_after_ms(self, machine: Ordering) -> int:
        """After how much silence all that is held leaves."""
        if self.idle_ms is not None:
            return max(1, self.idle_ms)
        if self.ticks_per_s is None:
            return 60 * IDLE_MS_MIN
        return max(IDLE_MS_MIN, round(2000 * machine.hold / self.ticks_per_s))

    def _given(self, table: pa.Table, left: Left, places: Any, calls: int) -> pa.Table:
        if self.late is not None:
            given = table.take(pa.array(places)).append_column(self.late, pa.array(left.late))
            return given.append_column(REVISION, pa.array(left.revision)) if self.asked.speculate else given
        self._put_aside(table.take(pa.array(places[left.late])), calls)
        return table.take(pa.array(places[~left.late]))

    def _measure(self, machine: Ordering, left: Left) -> None:
        """Leave beside the late records how ordering is doing."""
        if self.late_folder is None or self.ticks_per_s is None:
            return
        os.makedirs(self.late_folder, exist_ok=True)
        in_place = left.wait[~left.late]
        found = {
            "records": machine.taken,
            "held": machine.held,
            "late": machine.late,
            "idle_ms": self.idle_after_ms(machine),
            "hold_ms": round(1000 * machine.hold / self.ticks_per_s, 3),
            "lag_ms": self._lag_ms(machine),
            "wait_ms": round(1000 * float(in_place.mean()) / self.ticks_per_s, 3) if len(in_place) else 0.0,
        }
        path = os.path.join(self.late_folder, MEASURED)
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{path}.part", path)

    def _lag_ms(self, machine: Ordering) -> float:
        """How far behind its stream's newest record this unit is, and those before it are: announced to those after."""
        assert self.ticks_per_s is not None
        before = max((measured_lag_ms(folder) for folder in self.before), default=0.0)
        return round(before + 1000 * machine.announced / self.ticks_per_s, 3)

    def _put_aside(self, late: pa.Table, calls: int) -> None:
        """Write late records to their folder, named by the call: a batch that is run again writes over its own."""
        assert self.late_folder is not None
        path = os.path.join(self.late_folder, f"{calls:010d}.parquet")
        if not late.num_rows:
            with suppress(FileNotFoundError):
                os.remove(path)
            return
        import pyarrow.parquet as pq

        os.makedirs(self.late_folder, exist_ok=True)
        pq.write_table(late, f"{path}.part")
        os.replace(f"{path}.part", path)


def moments(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """The times of a column as numbers, and which of them are known."""
    array = column.combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    known = np.asarray(array.is_valid())
    kind = array.type
    if pa.types.is_date32(kind):
        array = array.view(pa.int32()).cast(pa.int64())
    elif pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).view(pa.int64())
    elif pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return np.asarray(array.cast(pa.float64()).fill_null(0.0)), known
    return np.asarray(array.cast(pa.int64()).fill_null(0)), known
