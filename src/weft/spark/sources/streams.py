"""How does a stream enter Spark? Users' files by Spark's own readers, made-up and recorded records by ours."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weft.model import Column, Deployment, Source
from weft.model.queries import Format
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.channels.gate import Gate
from weft.spark.channels.log import Log, LogWriter, Manifest
from weft.spark.sources import rate
from weft.spark.storage.disk import Disk, read_sealed

BAD = "_weft_bad"
MODES = {"fail": "FAILFAST", "skip": "PERMISSIVE", "keep": "PERMISSIVE"}
ENDINGS: tuple[Format, ...] = ("csv", "json", "parquet")
RECORDS_PER_SEGMENT = 50_000


def struct(columns: tuple[Column, ...]) -> StructType:
    """Declared columns as Spark's type, every field nullable."""
    ddl = ", ".join(f"`{column.name}` {column.type}" for column in columns)
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return nullable(schema)


def nullable(schema: StructType) -> StructType:
    """The same columns, each of which may be null: a channel also carries rows without values."""
    return StructType([StructField(field.name, field.dataType, True, field.metadata) for field in schema])


def read_flows(path: Path) -> dict[str, Any]:
    """When timed sources began to flow, at every start; how long they have; what changes their rates."""
    try:
        return read_sealed(path)  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {"starts": [], "flowed_s": 0.0, "factors": {}, "launches": 1}


def write_flows(path: Path, flows: dict[str, Any], disk: Disk) -> None:
    """Replace the flows."""
    disk.seal(path, flows)


def path_of(deployment: Deployment, path: str) -> str:
    """A path of the deployment file; relative ones start at its folder."""
    return os.path.join(os.path.abspath(deployment.folder), os.path.expanduser(path))


def ending_of(path: str) -> Format:
    """The format of a recording, by its name."""
    for candidate in [path, *sorted(glob.glob(path)), *sorted(glob.glob(os.path.join(path, "*")))]:
        for ending in ENDINGS:
            if candidate.endswith(f".{ending}"):
                return ending
    raise ValueError(f"{path}: a recording ends in .csv, .json or .parquet")


def read_source(
    session: SparkSession, deployment: Deployment, source: Source, folders: Folders, name: str, gate: Gate
) -> DataFrame:
    """A source as a stream of its declared columns, known to Spark under `name`."""
    reader = session.readStream.schema(struct(source.schema)).name(name)
    if source.format in ("rate", "replay"):
        reader = reader.format(rate.FORMAT).option("flows", str(folders.flows)).option("source", source.name)
        reader = reader.option("seed", seed_of(source)).option("starts_min", read_flows(folders.flows)["launches"])
        reader = reader.options(**gate.options(name))
        if source.arrivals is not None:
            reader = reader.option("arrivals", rate.encode_arrivals(source.arrivals))
        if source.format == "replay":
            reader = reader.option("recording", str(folders.recording(source.name).folder)).option("run", folders.run)
        return reader.load()
    assert source.path is not None
    # Spark would pass over a file that comes late with a time of change a week older than the newest.
    path, options = path_of(deployment, source.path), {"maxFileAge": "36500d", **reader_options(source)}
    if os.path.isfile(path):
        # Spark streams folders: one file is its folder, narrowed to that name.
        path, name_only = os.path.split(path)
        options["pathGlobFilter"] = re.sub(r"([\\\[\]{}*?])", r"\\\1", name_only)
    frame = (
        session.readStream.schema(with_bad(source, source.format))
        .name(name)
        .format(source.format)
        .options(**options)
        .load(path)
    )
    return without_bad(frame, source)


def with_bad(source: Source, format_: str) -> StructType:
    """The declared columns and, where bad records are left out, the one that tells them apart."""
    schema = struct(source.schema)
    if source.bad_records != "skip" or format_ == "parquet":
        return schema
    return StructType([*schema.fields, StructField(BAD, StringType())])


def reader_options(source: Source) -> dict[str, str]:
    """The user's options, with what the policy for bad records needs; a record is bad whichever columns are used."""
    options = {"mode": MODES[source.bad_records]} if source.format != "parquet" else {}
    if source.format == "csv":
        options["columnPruning"] = "false"
    if source.bad_records == "skip":
        options["columnNameOfCorruptRecord"] = BAD
    return {**options, **source.options}


def without_bad(frame: DataFrame, source: Source) -> DataFrame:
    """Bad records counted and left out, where the policy says so."""
    if source.bad_records != "skip" or source.format == "parquet":
        return frame
    counted = frame.observe(f"bad_{spark_name(source.name)}", F.count(F.col(BAD)).alias("bad"))
    return counted.filter(F.col(BAD).isNull()).drop(BAD)


def seed_of(source: Source) -> int:
    """A seed that belongs to the source's name, the same in every process."""
    return int.from_bytes(source.name.encode()[-6:], "big")


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
    bad = int(seen.get["bad"]) if source.bad_records == "skip" and ending != "parquet" else 0
    total = _as_segments(writer, sorted(folder.glob("*.parquet")), bad)
    log.disk.remove_tree(folder)
    return total


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
