"""How do a fragment's inputs reach its operators? The streaming plan of a fragment, as one DataFrame.

An input that a watermark depends on carries two columns more, the event time its stream has come to and whether the
row is a ghost. Spark measures its watermark there, before any of the user's operators, so that filters and unions
cannot bend it: of several inputs the least counts. The user's own column is only marked as the event time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from weft.model import Deployment, Operator, Query, dataflow
from weft.plan.changing.fragments import Fragment, source_of
from weft.plan.dataflow.event_times import watermark_of
from weft.plan.dataflow.intervals import interval_ms
from weft.plan.dataflow.ordering import is_ordering, orders_before
from weft.plan.network.paths import Path as Way
from weft.spark.channels import reader
from weft.spark.channels.channel import reader_name
from weft.spark.channels.folders import Folders, spark_name
from weft.spark.channels.gate import Gate
from weft.spark.channels.reader import GHOST, TIME
from weft.spark.channels.ticks import TICKS_SUFFIX
from weft.spark.fragments import operators
from weft.spark.fragments.late import as_input
from weft.spark.fragments.pacing import Pace
from weft.spark.sources import streams as sources
from weft.spec import changes_count, sole_filter
from weft.spec.sql import with_own_reads

# Nothing random is meant: a condition that Spark must take for random is one it will not push below the watermark.
BARRIER = f"NOT {GHOST} OR uuid() = ''"


@dataclass(frozen=True, slots=True)
class RunContext:
    """What all fragments of a run share; `pace` is that of the site, where it has a cap.

    `worked_s` tells what a query's tasks took since it was last asked of it; None where that is not known.
    """

    deployment: Deployment
    folders: Folders
    schemas: dict[str, StructType]
    ways: Callable[[str, str], Way | None] = lambda _stream, _site: None
    measured: bool = True
    pace: Pace | None = None
    worked_s: Callable[[str], float | None] = lambda _query: None


@dataclass(frozen=True, slots=True)
class Entry:
    """One way into a fragment: a stream, who reads it, its name in Spark, and the event time asked of it."""

    stream: str
    operator: str | None
    name: str
    is_channel: bool
    column: str | None
    delay_ms: int


class Wiring:
    """Builds the streaming DataFrame of a fragment and remembers its entries."""

    def __init__(
        self,
        session: SparkSession,
        context: RunContext,
        fragment: Fragment,
        tick: int,
        gate: Gate,
        merged: str | None = None,
    ) -> None:
        self.session = session
        self.context = context
        self.fragment = fragment
        self.tick = tick
        self.gate = gate
        self.merged = merged
        self.entries: list[Entry] = []
        self.ticks = False
        self.query: Query | None = context.deployment.query(fragment.query) if fragment.query else None

    @property
    def fragment_orders(self) -> bool:
        """Whether records are held back here until they are in order."""
        return bool(ordering_in(self.query, self.fragment))

    def trunk(self) -> DataFrame:
        """What the fragment's streaming query computes, before its branches."""
        if not self.fragment.trunk:
            return self._enter(self.fragment.inputs[0], None, None, 0)
        return self._operator(self.fragment.trunk[-1], self.merged, 0)

    def _operator(self, name: str, column: str | None, delay_ms: int, copy: str = "") -> DataFrame:
        """An operator of the trunk; `column` is the event time that is asked for further down.

        A stream that one statement reads several times enters as often, since Spark wants a name for each source.
        """
        assert self.query is not None
        operator = self.query.operator(name)
        stateful = name == self.fragment.stateful
        inputs = {}
        own: dict[str, tuple[str, ...]] = {upstream: (upstream,) for upstream in operator.from_}
        if operator.sql is not None:
            sql, own = with_own_reads(operator.sql, operator.from_)
            operator = replace(operator, sql=sql)
        for upstream, read_as in [(one, read_as) for one in operator.from_ for read_as in own[one]]:
            watermark = watermark_of(self.context.deployment, self.query, operator, upstream) if stateful else None
            asked: str | None
            if watermark is not None and watermark.column is not None:
                asked, wait_ms = watermark.column, interval_ms(watermark.delay)
            else:
                asked, wait_ms = column, delay_ms
            again = copy if read_as == upstream else f"{copy}_{own[upstream].index(read_as) + 1}"
            frame = self._input(name, upstream, asked, wait_ms, again)
            if watermark is not None and asked is not None:
                frame = as_input(operators.tagged(frame, asked, wait_ms), operator.from_.index(upstream))
            inputs[read_as] = frame
        # Inside a fragment nothing else tells how many records an operator gave.
        counts = changes_count(operator) and not count_is_kept(self.query, self.fragment, name)
        counts = counts and self.context.measured and not copy
        if counts and not stateful and len(inputs) == 1:
            inputs, counts = self._counted_before(operator, inputs)
        flow = dataflow(self.context.deployment)
        ordered = orders_before(flow, flow.stream(self.query.name, name))
        before = [one and str(self.context.folders.late(one)) for one in ordered]
        result = operators.apply(operator, inputs, self.context.deployment.folder, self._late_folder(name), before)
        return result.observe(f"out_{name}", F.count(F.lit(1)).alias("rows")) if counts else result

    def _late_folder(self, name: str) -> str:
        assert self.query is not None
        return str(self.context.folders.late(f"{self.query.name}.{name}"))

    def _counted_before(self, operator: Operator, inputs: dict[str, DataFrame]) -> tuple[dict[str, DataFrame], bool]:
        """What a mere filter will let through, counted where its records come in; whether they are still to be counted.

        Spark moves nothing past a count: behind the filter it would keep this one and those that follow apart.
        """
        condition = sole_filter(operator)
        if condition is None:
            return inputs, True
        ((name, frame),) = inputs.items()
        try:
            return {name: frame.observe(f"out_{operator.name}", F.count_if(F.expr(condition)).alias("rows"))}, False
        except AnalysisException:  # said in a way that does not survive being taken out of its statement
            return inputs, True

    def _input(self, name: str, upstream: str, column: str | None, delay_ms: int, copy: str) -> DataFrame:
        assert self.query is not None
        if upstream in self.fragment.trunk:
            return self._operator(upstream, column, delay_ms, copy)
        through = [stream for reader, stream in self.fragment.relayed if reader == name]
        relay = next((stream for stream in through if source_of(stream) == upstream), None)
        stream = relay or dataflow(self.context.deployment).stream(self.query.name, upstream)
        return self._enter(stream, name, column, delay_ms, copy)

    def _enter(self, stream: str, operator: str | None, column: str | None, delay_ms: int, copy: str = "") -> DataFrame:
        # One stream that two operators of the trunk read enters twice, each time with the watermark asked for there.
        is_channel = stream in self.fragment.channels and (
            stream not in self.fragment.sources or (operator, stream) in self.fragment.relayed
        )
        kind = "channel" if is_channel else "source"
        name = f"{kind}_{spark_name(f'{stream}_{operator}{copy}' if operator else stream)}"
        self.entries.append(Entry(stream, operator, name, is_channel, column, delay_ms))
        enter = self._channel if is_channel else self._source
        frame = enter(stream, name, column)
        if column is None:
            return frame
        watched = frame.withWatermark(TIME, f"{delay_ms} milliseconds")
        return watched.filter(BARRIER).drop(TIME, GHOST)

    def _channel(self, stream: str, name: str, column: str | None) -> DataFrame:
        schema = self.context.schemas[source_of(stream)]
        wanted = sources.nullable(StructType([StructField(f.name, f.dataType) for f in schema]))
        way = self.context.ways(stream, self.fragment.site)
        channel = self.context.folders.stream(stream).create()
        own_name = reader_name(self.fragment.id, name)
        channel.register(own_name)
        source = (
            self.session.readStream.format(reader.FORMAT)
            .name(name)
            .options(**self.context.folders.reader_options(channel))
            .option("reader", own_name)
            .option("tick", str(self.tick))
            .option("tasks", str(self.session.sparkContext.defaultParallelism))
            .options(**self.gate.options(name))
        )
        if way is not None and way.emulate:
            source = source.option("delay_ms", str(way.delay_ms)).option("kbps", str(way.bandwidth_kbps or 0))
        if column is not None:
            source = source.option("time", column)
            if self.fragment_orders:
                source = source.option(reader.NUDGE, str(self.context.folders.nudge(self.fragment.id)))
            wanted = StructType([*wanted, StructField(TIME, TimestampType()), StructField(GHOST, BooleanType())])
        return operators.with_metadata(source.schema(wanted).load(), schema)

    def _source(self, stream: str, name: str, column: str | None) -> DataFrame:
        source = self.context.deployment.source(stream)
        context = self.context
        frame = sources.read_source(
            sources.Reading(self.session, context.deployment, source, context.folders, name, self.gate)
        )
        if column is None:
            return frame
        self.ticks = True
        folder = self.context.folders.ticks(self.fragment.id)
        self.context.folders.disk.make(folder)
        # A ghost's columns must be read, not written as null: in a batch of ghosts alone Spark would conclude that a
        # join's key is null, and drop the records of the other side.
        columns = [StructField(field.name, field.dataType) for field in frame.schema]
        ticks = (
            self.session.readStream.schema(StructType([*columns, StructField(TIME, TimestampType())]))
            .name(f"{name}{TICKS_SUFFIX}")
            .json(str(folder))
        )
        ghosts = ticks.select("*", F.lit(True).alias(GHOST))
        records = frame.select("*", F.col(column).cast("timestamp").alias(TIME), F.lit(False).alias(GHOST))
        return records.unionAll(ghosts)


def ordering_in(query: Query | None, fragment: Fragment) -> tuple[str, ...]:
    """The operators of a fragment that put records in order."""
    return tuple(name for name in fragment.trunk if query is not None and is_ordering(query.operator(name)))


def count_is_kept(query: Query, fragment: Fragment, name: str) -> bool:
    """Whether all operators from here to the end of the trunk, which is counted anyway, keep the number of records."""
    while name != fragment.trunk[-1]:
        reader = next(one for one in query.consumers(name) if one.name in fragment.trunk)
        if changes_count(reader):
            return False
        name = reader.name
    return True
