"""What is kept of each batch of a sink in update mode? The rows that changed, as parquet, which keeps types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.spark.channels.log import Log
from weft.spark.channels.segments import number_of
from weft.spark.storage.disk import size_and_sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def changes_of(log: Log, segment: int) -> Path:
    """Where the changes of a batch of a sink in update mode are kept."""
    return log.folder / "changes" / number_of(segment)


def write_changes(records: DataFrame, log: Log, segment: int) -> DataFrame:
    """Keep a batch's changed rows aside, and give them back to be written as the sink wants them."""
    folder = str(changes_of(log, segment))
    records.write.mode("overwrite").parquet(folder)
    return records.sparkSession.read.schema(records.schema).parquet(folder)


def kept_aside(log: Log, segment: int) -> dict[str, tuple[int, int]]:
    """What is kept of a batch for the end, on disk before the batch counts: names, sizes and checksums."""
    folder = changes_of(log, segment)
    files = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    log.disk.sync(files, [folder, folder.parent, folder.parent.parent])
    return {path.name: size_and_sum(path) for path in files}
