"""How is a replay's file laid down? As a log in file order, once, before anything reads it."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from weft.model import Deployment, Source
from weft.spark.channels.folders import Folders
from weft.spark.channels.log import Log
from weft.spark.channels.log_writer import LogWriter
from weft.spark.channels.manifest import Manifest
from weft.spark.sources.bad import BAD
from weft.spark.sources.streams import NEVER_BAD, ending_of, path_of, reader_options, with_bad
from weft.spark.storage.disk import Damaged

RECORDS_PER_SEGMENT = 50_000


def record(session: SparkSession, deployment: Deployment, source: Source, folders: Folders) -> int:
    """Lay a replay's file down as a log, in file order, once; the number of records in it.

    What an earlier start did not live to finish is begun anew: nobody reads a recording before it has its end.
    """
    log = folders.recording(source.name)
    last = log.create().last()
    if last is not None and last.end:
        return last.rows_total
    begin_anew(log)
    assert source.path is not None
    path = path_of(deployment, source.path)
    ending = ending_of(path)
    as_file = Source(source.name, source.site, ending, source.schema, source.path, source.options, source.bad_records)
    frame = session.read.schema(with_bad(source, ending)).format(ending).options(**reader_options(as_file)).load(path)
    seen = Observation()
    if BAD in frame.columns:
        frame = frame.observe(seen, F.count(F.col(BAD)).alias("bad")).filter(F.col(BAD).isNull()).drop(BAD)
    writer = LogWriter(log, 1, "recording")
    in_order = (
        frame.select(
            "*",
            F.col("_metadata.file_path").alias("_weft_file"),
            F.col("_metadata.file_block_start").alias("_weft_block"),
            F.monotonically_increasing_id().alias("_weft_id"),
        )
        .coalesce(1)
        .sortWithinPartitions("_weft_file", "_weft_block", "_weft_id")
        .drop("_weft_file", "_weft_block", "_weft_id")
    )
    folder = log.folder / "unsplit"
    in_order.write.mode("overwrite").option("maxRecordsPerFile", RECORDS_PER_SEGMENT).parquet(str(folder))
    bad = int(seen.get["bad"]) if source.bad_records == "skip" and ending not in NEVER_BAD else 0
    if not folder.is_dir():  # else it would look like a recording without records
        raise Damaged(folder, "is gone while its recording was laid down", "the same command begins it anew")
    total = _as_segments(writer, in_order_of_writing(folder), bad)
    log.disk.remove_tree(folder)
    return total


def in_order_of_writing(folder: Path) -> list[Path]:
    """The files that one task has written: Spark numbers them, to ...-c999 and -c1000, which names do not sort by."""
    return sorted(folder.glob("*.parquet"), key=lambda path: (len(path.name), path.name))


def begin_anew(log: Log) -> None:
    """Forget a recording that was cut off."""
    if log.head is not None:
        log.disk.remove(log.head)
    for name in ("manifests", "data", "unsplit"):
        log.disk.remove_tree(log.folder / name)
    log.create()


def bad_in_recording(source: Source, folders: Folders) -> int:
    """How many records were left out when a replay's file was laid down."""
    last = folders.recording(source.name).last()
    return 0 if last is None else last.bad


def _as_segments(writer: LogWriter, files: list[Path], bad: int) -> int:
    import pyarrow.parquet as pq

    total = writer.last.rows_total if writer.last else 0
    for path in files:
        rows = pq.read_metadata(path).num_rows
        folder = writer.folder()
        folder.mkdir(parents=True, exist_ok=True)
        os.replace(path, folder / path.name)
        total += rows
        writer.commit(
            Manifest(writer.segment, 1, "recording", writer.segment, rows=rows, rows_total=total, files=(path.name,))
        )
    writer.commit(Manifest(writer.segment, 1, "recording", writer.segment, rows_total=total, end=True, bad=bad))
    return total
