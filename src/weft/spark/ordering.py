"""Late records in order, on Spark: `order(df, time="ts")`, in any PySpark program or in front of an operator.

Grouped Python state costs per group and per row, so each partition is one group and a row is a whole Arrow batch:

    records -> pack: a batch of records in one binary -> shuffle of a few large rows -> the ordering unit of the
    partition, its state in the checkpoint -> unpack: records again

The unit takes all that a micro-batch brings at once (`protocol/ordering/batch.py`), so nothing depends on the order in
which the shuffle delivers, and a batch that is run again after a crash gives the same records.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weft.model import Order
from weft.protocol.ordering import Left, Ordering

PART, BLOB, NEVER_LATE = "_weft_part", "_weft_blob", "_weft_never_late"
DELAY_KEY = "spark.watermarkDelayMs"
END_MS = 253_339_228_800_000  # 9998-01-01: only the end of a stream moves the watermark past it
REAL = (FloatType, DoubleType, DecimalType)
WHOLE = (ByteType, ShortType, IntegerType, LongType)
IDLE_MS_MIN = 1000
IDLE_SLACK_S = 0.2  # a batch's clock is read before it runs
ROWS_OUT = 16_384
BLOB_BYTES = 200_000
SQUEEZED = "zstd"  # Spark passes a state to Python and back byte by byte, and writes it in every batch
MEASURED = "measured.json"
REVISION = "revision"
LOADING_CALLS = 8
CALLS = itertools.count()
STATE = "unit BINARY, held BINARY, calls BIGINT, last_ms BIGINT"


class BadOrder(ValueError):
    """What cannot be ordered: the message says why."""


def order(
    df: DataFrame,
    time: str,
    *,
    lambda_: float = 0.5,
    late_max: float | None = None,
    by: str | list[str] | None = None,
    partitions: int = 1,
    held_max: int = 1_000_000,
    idle_s: float | None = None,
    speculate: float = 0.0,
    late: str = "late",
) -> DataFrame:
    """The records of a stream in order of `time`, with a column `late` that is true where one came too late for that.

    How long records are held back is learned while the stream runs: λ standard deviations above the delays seen
    lately, or with `late_max` so that no more than this share is late. Nothing is dropped: late records, those
    without a time, and those absurdly far ahead leave at once, flagged. Records that share the columns `by` meet in
    one of `partitions` parts, each of which is ordered by itself; without `by` there is one part.

    After `idle_s` seconds without records all that is held leaves, in order. Absent, it follows the hold: a record is
    never kept much longer than if the stream had gone on (at least a second; a minute where `time` is no timestamp).
    With `speculate` records leave before their hold is over by that part of it (1.0: at once); a record that then
    comes too late, though within the hold, leaves with a further column `revision` true: whoever used what left ahead
    of it should look again. A batch DataFrame is simply sorted, and nothing in it is late.

    Spark keeps as many states as `spark.sql.shuffle.partitions` says; its default of 200 costs more than the ordering
    itself, so set it to what the query needs.
    """
    columns = [by] if isinstance(by, str) else list(by or [])
    asked = Order(lambda_, late_max, time, held_max, speculate)
    _check(df, asked, columns, partitions, late)
    flags = [late, REVISION] if speculate else [late]
    result = StructType([*df.schema, *(StructField(flag, BooleanType(), False) for flag in flags)])
    if not df.isStreaming:
        flagged = df.withColumns({late: F.col(f"`{time}`").isNull(), REVISION: F.lit(False)}).select(result.names)
        return flagged.sort(F.col(f"`{time}`").asc_nulls_first())
    unit = Unit(asked, ticks_per_s(df.schema[time].dataType), None if idle_s is None else round(idle_s * 1000), late)
    part = F.lit(0) if not columns else F.pmod(F.xxhash64(*columns), F.lit(partitions)).cast("int")
    packed = df.withColumn(PART, part).mapInArrow(pack, f"{PART} INT, {BLOB} BINARY")
    return _through(packed, unit, result, GroupStateTimeout.ProcessingTimeTimeout)


def in_place(df: DataFrame, asked: Order, late_folder: str, before: Sequence[str | None] = ()) -> DataFrame:
    """As `order`, for an operator of a deployment: only records in their place go on, all others to a folder.

    The end of the stream, which Weft tells by its watermark, lets everything go; so does silence: a batch without
    records is a sign for the unit to look how long ago the last one came. `before` are the late folders of those that
    ordered records before, one for each way to here, None for a way without: where ways are held back differently,
    records will come that much out of order, and the unit need not learn it by being late.
    """
    assert asked.time is not None
    _check(df, asked, [], 1, "")
    schema = StructType([StructField(field.name, field.dataType, True) for field in df.schema])
    idle_ms = None if asked.idle_s is None else round(asked.idle_s * 1000)
    unit = Unit(asked, ticks_per_s(df.schema[asked.time].dataType), idle_ms, None, late_folder, tuple(before))
    if not df.isStreaming:
        return df.sort(asked.time)
    packed = df.withColumn(PART, F.lit(0)).mapInArrow(pack_or_sign, f"{PART} INT, {BLOB} BINARY")
    # A timeout by event time wants a column that carries it; no watermark takes this one for late.
    marked = F.lit(None).cast("timestamp").alias(NEVER_LATE, metadata={DELAY_KEY: 0})
    packed = packed.select(PART, BLOB, marked)
    return _through(packed, unit, schema, GroupStateTimeout.EventTimeTimeout)


def _through(packed: DataFrame, unit: Unit, result: StructType, timeout: str) -> DataFrame:
    ordered = packed.groupBy(PART).applyInPandasWithState(
        unit, f"{BLOB} BINARY", STATE, "append", timeout
    )
    return ordered.mapInArrow(unpack, result)


def _check(df: DataFrame, asked: Order, by: list[str], partitions: int, late: str) -> None:
    for column in [asked.time, *by]:
        if column not in df.columns:
            raise BadOrder(f"there is no column {column!r} to order by; there are {', '.join(df.columns)}")
    if late in df.columns:
        raise BadOrder(f"there is a column {late!r} already; give another name as `late`")
    if partitions < 1 or (partitions > 1 and not by):
        raise BadOrder("`partitions` is at least 1, and more than one need `by` to tell what belongs together")
    if not 0 <= asked.speculate <= 1:
        raise BadOrder("`speculate` is between 0 and 1")
    if asked.lambda_ < 0 or (asked.late_max is not None and not 0 <= asked.late_max <= 1) or asked.held_max < 1:
        raise BadOrder("`lambda_` is at least 0, `late_max` between 0 and 1, `held_max` at least 1")
    kind = df.schema[asked.time].dataType if asked.time else None
    if not isinstance(kind, (*REAL, *WHOLE, TimestampType, TimestampNTZType, DateType)):
        says = f"it is {kind and kind.simpleString()}, not a timestamp or a number"
        raise BadOrder(f"column {asked.time!r} is no time: {says}")


def ticks_per_s(kind: DataType) -> float | None:
    """How many units of a time column make a second, None where that is not known."""
    if isinstance(kind, TimestampType | TimestampNTZType):
        return 1e6
    return 1 / 86_400 if isinstance(kind, DateType) else None


def spare_the_collector() -> None:
    """Keep what this worker's first calls have loaded out of the garbage collection that Spark asks for after each.

    To look through pandas and compiled code takes 50 ms, more than the ordering of a hundred thousand records.
    """
    if next(CALLS) < LOADING_CALLS:
        gc.freeze()


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for every batch of records and part: the records as one binary."""
    spare_the_collector()
    for batch in batches:
        parts = batch.column(batch.schema.get_field_index(PART)).to_numpy()
        records = batch.drop_columns([PART])
        for part in np.unique(parts):
            mine = records if len(np.unique(parts)) == 1 else records.filter(pa.array(parts == part))
            blobs = pa.array(blobs_of(pa.Table.from_batches([mine])), pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([part] * len(blobs), pa.int32()), blobs], names=[PART, BLOB])


def pack_or_sign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As `pack`; where nothing comes an empty row tells that a batch was run."""
    silent = True
    for packed in pack(batches):
        silent = False
        yield packed
    if silent:
        yield pa.RecordBatch.from_arrays([pa.array([0], pa.int32()), pa.array([b""], pa.binary())], names=[PART, BLOB])


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The records of every binary."""
    spare_the_collector()
    for batch in batches:
        for blob in batch.column(0):
            yield from from_bytes(blob.as_py()).to_batches(max_chunksize=ROWS_OUT)


def blobs_of(table: pa.Table) -> list[bytes]:
    """A table as binaries of a size that Java's heap takes easily."""
    rows = max(1, table.num_rows * BLOB_BYTES // max(1, table.nbytes))
    return [to_bytes(table.slice(first, rows)) for first in range(0, table.num_rows, rows)]


def to_bytes(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as one binary."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def from_bytes(blob: bytes) -> pa.Table:
    """The table in a binary."""
    return pa.ipc.open_stream(blob).read_all()


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


def silent_for_too_long(folder: Path, nudged_s: float) -> bool:
    """Whether records have been held for longer than silence may last, since the unit ran and since it was nudged."""
    found = measured_order(folder)
    if found is None or not found["held"]:
        return False
    try:
        ran_s = (folder / MEASURED).stat().st_mtime
    except FileNotFoundError:
        return False
    return bool(time.time() - max(ran_s, nudged_s) > found["idle_ms"] / 1000 + IDLE_SLACK_S)


def measured_lag_ms(folder: str | None) -> float:
    """By how much records are held back on their way to and through an ordering operator, 0 before its first batch."""
    found = measured_order(Path(folder)) if folder else None
    return float(found["lag_ms"]) if found else 0.0


def measured_order(folder: Path) -> dict[str, Any] | None:
    """How ordering is doing, None before its first batch."""
    try:
        found: dict[str, Any] = json.loads((folder / MEASURED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found
