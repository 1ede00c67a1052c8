"""How does a stream enter Spark? Files and topics by Spark's own readers, made-up and recorded records by ours."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weft.model import Column, Deployment, Source
from weft.model.formats import SOURCES
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.channels.gate import Gate
from weft.spark.sources import rate
from weft.spark.sources.bad import BAD
from weft.spark.sources.kafka import read_topic
from weft.spark.storage.disk import Disk, read_sealed

MODES = {"fail": "FAILFAST", "skip": "PERMISSIVE", "keep": "PERMISSIVE"}
NEVER_BAD = ("parquet",)  # a file of these can be read or not, one record of it cannot be bad
ALL_COLUMNS = {"csv": {"columnPruning": "false"}}  # else only columns that are used could be bad


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


def ending_of(path: str) -> str:
    """The format of a recording, by its name."""
    for candidate in [path, *sorted(glob.glob(path)), *sorted(glob.glob(os.path.join(path, "*")))]:
        for ending in (name for name, facts in SOURCES.items() if facts.seen_by_name):
            if candidate.endswith(f".{ending}"):
                return ending
    raise ValueError(f"{path}: a recording ends in .csv, .json or .parquet")


@dataclass(frozen=True, slots=True)
class Reading:
    """A source that a fragment is about to read, and the name that Spark is to know it under."""

    session: SparkSession
    deployment: Deployment
    source: Source
    folders: Folders
    name: str
    gate: Gate


def read_source(reading: Reading) -> DataFrame:
    """A source as a stream of its declared columns."""
    return READERS[reading.source.format](reading)


def _timed(reading: Reading) -> DataFrame:
    """What Weft itself times: made up, or recorded before."""
    source, folders = reading.source, reading.folders
    reader = reading.session.readStream.schema(struct(source.schema)).name(reading.name)
    reader = reader.format(rate.FORMAT).option("flows", str(folders.flows)).option("source", source.name)
    reader = reader.option("seed", seed_of(source)).option("starts_min", read_flows(folders.flows)["launches"])
    reader = reader.options(**reading.gate.options(reading.name))
    if source.arrivals is not None:
        reader = reader.option("arrivals", rate.encode_arrivals(source.arrivals))
    if source.facts.recorded:
        reader = reader.option("recording", str(folders.recording(source.name).folder)).option("run", folders.run)
    return reader.load()


def _files(reading: Reading) -> DataFrame:
    """Users' files, by Spark's own reader of their format."""
    source = reading.source
    assert source.path is not None
    # Spark would pass over a file that comes late with a time of change a week older than the newest.
    path, options = path_of(reading.deployment, source.path), {"maxFileAge": "36500d", **reader_options(source)}
    if os.path.isfile(path):
        # Spark streams folders: one file is its folder, narrowed to that name.
        path, name_only = os.path.split(path)
        options["pathGlobFilter"] = re.sub(r"([\\\[\]{}*?])", r"\\\1", name_only)
    frame = (
        reading.session.readStream.schema(with_bad(source, source.format))
        .name(reading.name)
        .format(source.format)
        .options(**options)
        .load(path)
    )
    return without_bad(frame, source)


def _topic(reading: Reading) -> DataFrame:
    """Records that a broker keeps."""
    source = reading.source
    return without_bad(read_topic(reading.session, source, reading.name, struct(source.schema)), source)


READERS: dict[str, Callable[[Reading], DataFrame]] = {
    "csv": _files,
    "json": _files,
    "parquet": _files,
    "kafka": _topic,
    "rate": _timed,
    "replay": _timed,
}


def with_bad(source: Source, format_: str) -> StructType:
    """The declared columns and, where bad records are left out, the one that tells them apart."""
    schema = struct(source.schema)
    if source.bad_records != "skip" or format_ in NEVER_BAD:
        return schema
    return StructType([*schema.fields, StructField(BAD, StringType())])


def reader_options(source: Source) -> dict[str, str]:
    """The user's options, with what the policy for bad records needs; a record is bad whichever columns are used."""
    options = {} if source.format in NEVER_BAD else {"mode": MODES[source.bad_records]}
    options |= ALL_COLUMNS.get(source.format, {})
    if source.bad_records == "skip":
        options["columnNameOfCorruptRecord"] = BAD
    return {**options, **source.options}


def without_bad(frame: DataFrame, source: Source) -> DataFrame:
    """Bad records counted and left out, where the policy says so."""
    if source.bad_records != "skip" or source.format in NEVER_BAD:
        return frame
    counted = frame.observe(f"bad_{spark_name(source.name)}", F.count(F.col(BAD)).alias("bad"))
    return counted.filter(F.col(BAD).isNull()).drop(BAD)


def seed_of(source: Source) -> int:
    """A seed that belongs to the source's name, the same in every process."""
    return int.from_bytes(source.name.encode()[-6:], "big")
