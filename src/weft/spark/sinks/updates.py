"""What is left of a sink in update mode at the end? Of every key the last value.

While it runs, each batch appends the rows that changed. The same rows are kept aside as parquet, which loses no
type, and from there the end is written: one batch that takes the place of all before it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from weft.model import Query, Sink
from weft.spark.channels.manifest import Manifest
from weft.spark.sinks.changed_rows import changes_of
from weft.spark.sinks.delivery import SinkLog
from weft.spark.storage.disk import checked
from weft.spec import keys_of

SEGMENT = "_weft_segment"
WRITER = "settle"


def key_of(query: Query, sink: Sink) -> tuple[str, ...]:
    """The columns that tell one result from another: as declared, else what the operator groups by."""
    return sink.key or keys_of(query.operator(sink.from_))


def last_values(changes: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Of every key the row of the latest batch."""
    groups = [F.col(f"`{name}`") for name in key] or [F.lit(0)]
    latest = Window.partitionBy(*groups).orderBy(F.col(SEGMENT).desc())
    ranked = changes.withColumn("_weft_rank", F.row_number().over(latest))
    return ranked.filter("_weft_rank = 1").drop("_weft_rank", SEGMENT)


def settle(session: SparkSession, log: SinkLog, query: Query) -> None:
    """Replace all that a sink holds by the last value of every key; after a crash the next call does it again."""
    sink = log.sink
    key = key_of(query, sink)
    writer = log.open_writer(log.epoch(), WRITER)
    last = writer.last
    whole = query.operator(sink.from_).sql is not None  # SQL without a key gives one row over all
    if not (key or whole) or last is None or last.writer == WRITER:
        return
    changes = []
    settled = [number for number in range(last.segment + 1) if log.manifest(number).replaces]
    for segment_before in range(max(settled, default=0), last.segment + 1):
        folder = changes_of(log, segment_before)
        for name, (size, crc) in log.manifest(segment_before).aside.items():
            checked(folder / name, size, crc)
            changes.append(str(folder / name))
    if not changes:
        return
    segment = F.regexp_extract(F.input_file_name(), r"/(\d{10})/[^/]*$", 1).cast("bigint")
    read = session.read.parquet(*changes)
    rows = last_values(read.withColumn(SEGMENT, segment), key)
    # Kept like any change: more may come after all, if this run does not live to say that it is finished.
    written = writer.write(rows.coalesce(1), [])
    writer.commit(
        Manifest(
            writer.segment,
            writer.epoch,
            WRITER,
            last.batch,
            rows=written.rows,
            bytes=written.bytes,
            rows_total=last.rows_total,
            files=written.files,
            end=True,
            replaces=True,
        )
    )
    for number in range(last.segment + 1):
        log.disk.remove_tree(changes_of(log, number))
