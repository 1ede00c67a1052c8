"""Late records in order, on Spark: `order(df, time="ts")`, in any PySpark program or in front of an operator.

Grouped Python state costs per group and per row, so each partition is one group and a row is a whole Arrow batch:

    records -> pack: a batch of records in one binary -> shuffle of a few large rows -> the ordering unit of the
    partition, its state in the checkpoint -> unpack: records again
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
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
from weft.spark.ordering.packing import BLOB, PART, pack, pack_or_sign, unpack
from weft.spark.ordering.unit import REVISION, STATE, Unit

NEVER_LATE = "_weft_never_late"
DELAY_KEY = "spark.watermarkDelayMs"
REAL = (FloatType, DoubleType, DecimalType)
WHOLE = (ByteType, ShortType, IntegerType, LongType)


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
    ordered = packed.groupBy(PART).applyInPandasWithState(unit, f"{BLOB} BINARY", STATE, "append", timeout)
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
