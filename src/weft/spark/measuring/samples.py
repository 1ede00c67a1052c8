"""What would an operator be given? Its inputs, worked out in batch from a sample of the sources, made long enough."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from weft.model import Deployment, Node, Query, Source, dataflow
from weft.spark.fragments import operators
from weft.spark.sources import streams as sources
from weft.spark.sources.kafka import sample_topic
from weft.spark.sources.rate import made_up

SAMPLE = 20_000
RATE_PER_S_ASSUMED = 100.0
COPY = "_weft_copy"


def inputs_of(session: SparkSession, deployment: Deployment, query: Query, operator: str) -> dict[str, DataFrame]:
    """What an operator reads, by name: sources as sampled, operators before it applied to them in batch."""
    flow = dataflow(deployment)
    wanted = flow.node(f"{query.name}.{operator}")
    frames: dict[str, DataFrame] = {}

    def given(node: Node) -> dict[str, DataFrame]:
        streams = zip(node.operator.from_, node.inputs, strict=True)
        return {name: _frame(session, deployment, stream, frames) for name, stream in streams}

    for node in flow.behind(query.name):
        if node is wanted:
            break
        frames[node.stream] = operators.apply(node.operator, given(node), deployment.folder)
    return given(wanted)


def _frame(session: SparkSession, deployment: Deployment, name: str, frames: dict[str, DataFrame]) -> DataFrame:
    if name not in frames:
        frames[name] = sample(session, deployment, deployment.source(name))
    return frames[name]


def sample(session: SparkSession, deployment: Deployment, source: Source) -> DataFrame:
    """The first records of a source."""
    if source.facts.made_up:
        return _made_up(session, source)
    if source.facts.has_topic:
        return sources.without_bad(sample_topic(session, source, sources.struct(source.schema)), source).limit(SAMPLE)
    assert source.path is not None
    path = sources.path_of(deployment, source.path)
    format_ = sources.ending_of(path) if source.facts.recorded else source.format
    as_file = Source(source.name, source.site, format_, source.schema, source.path, source.options, source.bad_records)
    frame = session.read.schema(sources.with_bad(source, format_)).format(format_)
    return sources.without_bad(frame.options(**sources.reader_options(as_file)).load(path), as_file).limit(SAMPLE)


def _made_up(session: SparkSession, source: Source) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(sources.struct(source.schema), timezone="UTC")
    numbers = np.arange(SAMPLE, dtype=np.int64)
    births_us = (numbers * 1e6 / RATE_PER_S_ASSUMED).astype(np.int64)
    return session.createDataFrame(pa.Table.from_arrays(made_up(schema, numbers, births_us), schema=schema))


def lay_down(frame: DataFrame, folder: Path, records: int, time: str | None) -> int:
    """Write a recording of at least so many records, copies one after another in event time; how many it holds."""
    held = frame.cache()
    try:
        count = held.count()
        if count == 0:
            return 0
        copies = -(-records // count)
        shift_s = _span_s(held, time) if time else 0.0
        longer = held.crossJoin(held.sparkSession.range(copies).select(F.col("id").alias(COPY)))
        shifted = [_shifted(field, shift_s).alias(field.name) for field in held.schema]
        order = [COPY] if time is None else [COPY, time]
        longer.orderBy(*order).select(*shifted).coalesce(1).write.parquet(str(folder))
        return count * copies
    finally:
        held.unpersist()


def _span_s(frame: DataFrame, time: str) -> float:
    """How far event times reach, so that copies follow one another."""
    at = F.col(time).cast("double")
    found = frame.agg(F.min(at).alias("first"), F.max(at).alias("last")).collect()[0]
    return 0.0 if found["first"] is None else float(found["last"]) - float(found["first"]) + 1.0


def _shifted(field: object, shift_s: float) -> Column:
    """A column of a copy: moments, and windows of them, that much later each time."""
    name, kind = field.name, field.dataType  # type: ignore[attr-defined]
    column = F.col(f"`{name}`")
    if isinstance(kind, TimestampType):
        return _later(column, shift_s)
    if isinstance(kind, StructType) and all(isinstance(part.dataType, TimestampType) for part in kind):
        parts = [_later(column.getField(part.name), shift_s).alias(part.name) for part in kind]
        return F.when(column.isNotNull(), F.struct(*parts))
    return column


def _later(moment: Column, shift_s: float) -> Column:
    return F.timestamp_micros(F.unix_micros(moment) + F.col(COPY) * F.lit(int(shift_s * 1e6)))
