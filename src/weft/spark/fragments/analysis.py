"""What will the streams look like? Every operator tried on empty streams before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from weft.model import Deployment, Sink, dataflow, late_outlets
from weft.plan.dataflow.event_times import watermark_of
from weft.plan.dataflow.intervals import interval_ms
from weft.spark.channels.folders import spark_name
from weft.spark.fragments import operators
from weft.spark.sources import streams as sources


@dataclass(frozen=True, slots=True)
class Analysis:
    """The columns of every stream, and which operators keep state (`query.operator`)."""

    schemas: dict[str, StructType]
    stateful: frozenset[str]


def analyse(session: SparkSession, deployment: Deployment) -> Analysis:
    """Resolve all operators in order; BadOperator names the first that Spark refuses."""
    schemas = {source.name: sources.struct(source.schema) for source in deployment.sources}
    stateful: set[str] = set()
    for node in dataflow(deployment).nodes:
        operator, query = node.operator, deployment.query(node.queries[0])
        inputs = {}
        for upstream, stream in zip(operator.from_, node.inputs, strict=True):
            frame = empty_stream(session, upstream, schemas[stream])
            watermark = watermark_of(deployment, query, operator, upstream)
            if watermark is not None and watermark.column is not None:
                if watermark.column.split(".")[0] not in frame.columns:
                    raise operators.BadOperator(
                        f"operator {node.stream}: its watermark is on {watermark.column}, but "
                        f"{upstream} has only {', '.join(frame.columns)}"
                    )
                frame = operators.tagged(frame, watermark.column, interval_ms(watermark.delay))
            inputs[upstream] = frame
        result = operators.apply(operator, inputs, deployment.folder, query=query.name)
        schemas[node.stream] = sources.nullable(result.schema)
        if operators.keeps_state(operator, result):
            stateful.add(node.stream)
    refuse_what_a_flat_sink_cannot_hold(deployment, schemas)
    return Analysis(schemas, frozenset(stateful))


def refuse_what_a_flat_sink_cannot_hold(deployment: Deployment, schemas: dict[str, StructType]) -> None:
    """A sink of flat files takes no structs, arrays or maps; found before anything runs."""
    flow = dataflow(deployment)
    for outlet in flow.outlets:
        nested = _nested(outlet.sink, schemas[outlet.stream])
        if nested:
            what = f"{outlet.sink.format} cannot hold column {nested} of {outlet.sink.from_}"
            raise operators.BadOperator(
                f"sink of {outlet.query}: {what}, which is nested; "
                f"select its parts (as {nested}.start for a window), or write parquet or json"
            )
    for node in flow.nodes:
        query = deployment.query(node.queries[0])
        for late in late_outlets(query, node.operator):
            nested = None if late.sink is None else _nested(late.sink, schemas[flow.stream(query.name, late.input)])
            if late.sink is not None and nested:
                what = f"{late.sink.format} cannot hold column {nested} of {late.input}"
                raise operators.BadOperator(f"late of {node.stream}: {what}, which is nested; write parquet or json")


def _nested(sink: Sink, schema: StructType) -> str | None:
    """A column that a sink of flat files cannot hold; None where there is none."""
    nested = [field.name for field in schema if isinstance(field.dataType, StructType | ArrayType | MapType)]
    return nested[0] if sink.facts.flat and nested else None


def empty_stream(session: SparkSession, name: str, schema: StructType) -> DataFrame:
    """A stream of the given columns that never holds a record; Spark resolves operators on it as on any other."""
    clock = session.readStream.format("rate").name(spark_name(name)).load()
    # One column that holds them all: column by column it would be twenty calls to Java for each.
    return clock.select(F.lit(None).cast(schema).alias("record")).select("record.*")
