"""What is left of a sink in update mode at the end? Of every key the last value.

While it runs, each batch appends the rows that changed. The same rows are kept aside as parquet, which loses no
type, and from there the end is written: one batch that takes the place of all before it.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from weft.model import Query, Sink
from weft.spark.log import Manifest
from weft.spark.sinks import SinkWriter, aside_of
from weft.spec import keys_of

SEGMENT = "_weft_segment"


def changes_of(path: Path) -> Path:
    """Where the changes of a sink in update mode are kept."""
    return aside_of(path) / "changes"


def key_of(query: Query, sink: Sink) -> tuple[str, ...]:
    """The columns that tell one result from another: as declared, else what the operator groups by."""
    return sink.key or keys_of(query.operator(sink.from_))


def last_values(changes: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Of every key the row of the latest batch."""
    latest = Window.partitionBy(*[F.col(f"`{name}`") for name in key]).orderBy(F.col(SEGMENT).desc())
    ranked = changes.withColumn("_weft_rank", F.row_number().over(latest))
    return ranked.filter("_weft_rank = 1").drop("_weft_rank", SEGMENT)


def settle(session: SparkSession, path: Path, query: Query, sink: Sink) -> None:
    """Replace all that a sink holds by the last value of every key; a crash in between is mended by the next call."""
    changes = changes_of(path)
    key = key_of(query, sink)
    if not key or not changes.is_dir() or not any(changes.iterdir()):
        return
    writer = SinkWriter(path, sink, _epoch(path), "settle")
    last = writer.last
    assert last is not None
    segment = F.regexp_extract(F.input_file_name(), r"/(\d{10})/[^/]*$", 1).cast("bigint")
    rows = last_values(session.read.parquet(str(changes / "*")).withColumn(SEGMENT, segment), key)
    writer.replace(rows, Manifest(writer.segment, writer.epoch, "settle", last.batch, end=True))


def _epoch(path: Path) -> int:
    from weft.spark.log import epoch_of

    return epoch_of(aside_of(path))
