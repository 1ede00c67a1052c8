"""How is a topic read? By Spark's own connector; a record's birth is the moment that Kafka keeps with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from weft.model import Source
from weft.spark.kafka import client
from weft.spark.kafka.client import KafkaTrouble
from weft.spark.kafka.connector import provide
from weft.spark.sources.bad import BAD
from weft.spec.kafka import COLUMNS, JSON

BORN = "born_"
LOOK_S = 1.0
REST_S = 10.0  # after a broker has not answered, it is left alone for so long
ASK_S_MAX = 2.0
DEFAULTS = {"startingOffsets": "earliest", "failOnDataLoss": "true", "kafka.isolation.level": "read_committed"}


def read_topic(
    session: SparkSession, source: Source, name: str, schema: StructType, observed: bool = True
) -> DataFrame:
    """A topic as a stream of the declared columns; how many records came and when they were born is observed."""
    provide(session)
    frame = with_options(session.readStream.name(name).format("kafka"), source).load()
    if not observed:
        return _columns(frame, source, schema)
    born = F.unix_millis(F.col("timestamp"))
    births = [F.min(born).alias("first"), F.max(born).alias("last"), F.count(F.lit(1)).alias("rows")]
    return _columns(frame.observe(f"{BORN}{name}", *births), source, schema)


def sample_topic(session: SparkSession, source: Source, schema: StructType) -> DataFrame:
    """What a topic holds now."""
    provide(session)
    return _columns(with_options(session.read.format("kafka"), source).load(), source, schema)


def with_options(reader: Any, source: Source) -> DataStreamReader | DataFrameReader:
    """Spark's reader with the user's options, and ours where the user has none."""
    given = {name: value for name, value in source.options.items() if not _is_of_json(name)}
    mine = {name: value for name, value in DEFAULTS.items() if name.lower() not in map(str.lower, given)}
    starts = [name for name in given if name.lower().startswith("starting")]
    if starts:
        mine.pop("startingOffsets", None)
    if any(column.name.lower() == "headers" for column in source.schema):
        mine["includeHeaders"] = "true"
    return reader.options(**mine, **given)  # type: ignore[no-any-return]


def _is_of_json(name: str) -> bool:
    return name.lower() in map(str.lower, JSON)


def _columns(frame: DataFrame, source: Source, schema: StructType) -> DataFrame:
    if source.value == "raw":
        names = {name.lower(): name for name in COLUMNS}
        held = {field.name: F.col(names[field.name.lower()]).cast(field.dataType) for field in schema}
        return frame.select(*(column.alias(name) for name, column in held.items()))
    options = {name: value for name, value in source.options.items() if _is_of_json(name)}
    options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
    whole = StructType([*schema.fields, StructField(BAD, StringType())])
    text = F.col("value").cast("string")
    parsed = frame.withColumn("_weft_record", F.from_json(text, whole, options))
    held_bad = F.col(f"_weft_record.{BAD}")
    # A record without a value, as Kafka marks what was removed, is no JSON object either.
    bad = F.when(text.isNull() | (F.trim(text) == ""), F.lit("")).otherwise(held_bad)
    if source.bad_records == "fail":
        parsed = parsed.filter(bad.isNull() | F.raise_error(_complaint(source, text)).isNull())
    columns = [F.col(f"_weft_record.`{field.name}`").alias(field.name) for field in schema]
    if source.bad_records != "skip":
        return parsed.select(*columns)
    return parsed.select(*columns, bad.alias(BAD))


def _complaint(source: Source, text: SparkColumn) -> SparkColumn:
    """What is said of a record that cannot be read: where it lies, and how it begins."""
    where = [F.lit(f"weft: source {source.name}: topic "), F.col("topic"), F.lit(", partition "), F.col("partition")]
    where += [F.lit(", offset "), F.col("offset"), F.lit(": no JSON object of its schema: ")]
    begins = F.substring(F.coalesce(text, F.lit("(no value)")), 1, 80)
    remedy = F.lit(f"; `bad_records: skip` on source {source.name} leaves such records out and counts them")
    return F.concat(*(one.cast("string") for one in (*where, begins, remedy)))


def reached(told: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    """Where Spark has come to in each partition, by its own offset of a source."""
    return {(topic, int(part)): int(at) for topic, parts in told.items() for part, at in parts.items()}


def rows_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> int | None:
    """Records between two of Spark's offsets, marks of transactions among them; None where the first is not known."""
    begins = reached(before)
    ends = reached(after)
    if not begins or any(place not in begins for place in ends):
        return None
    return sum(max(0, at - begins[place]) for place, at in ends.items())


class UnreadRecords:
    """What lies in a source's topics that a fragment has not read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conf = client.connection(source.options)
        self._ends: dict[tuple[str, int], int] = {}
        self._begins: dict[tuple[str, int], int] = {}
        self._due_s = 0.0

    def records(self, told: Mapping[str, Any]) -> int:
        """Records after the places that results were written up to; the last known ends where nobody answers."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + (LOOK_S if self._look() else REST_S)
        places = reached(told)
        return sum(max(0, end - places.get(place, self._begins.get(place, 0))) for place, end in self._ends.items())

    def _look(self) -> bool:
        try:
            if not self._ends:
                topics = client.subscribed(self.source.options, client.topics(self.conf, ASK_S_MAX))
                places = [(name, part) for name, count in topics.items() for part in range(count)]
                self._begins = client.beginnings(self.conf, places, ASK_S_MAX)
            self._ends = client.ends(self.conf, self._begins, ASK_S_MAX)
        except KafkaTrouble:
            return False
        return True
