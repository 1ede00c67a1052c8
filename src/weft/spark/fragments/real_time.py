"""How does a query run record by record? As one streaming query from topic to topic in Spark's real-time mode.

Nothing of ours lies on the way of a record: no channel, no manifest, no batch that is written aside. Spark's own sink
hands results to the broker, at least once; a checkpoint at the end of every batch says where a restart goes on. So
what is known of it is what Spark reports of each batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.model import dataflow
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import watermark_of
from weft.plan.dataflow.real_time import real_time
from weft.spark.channels.folders import spark_name
from weft.spark.fragments import operators
from weft.spark.fragments.draining import DrainingRun
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.sinks.kafka import as_messages, topic_of
from weft.spark.sources import streams as sources
from weft.spark.sources.kafka import UnreadRecords, read_topic

BATCH = "30 seconds"
"""How often it is written down where a restart goes on: what a crash doubles, against a pause at every end."""


def runs_in_real_time(context: RunContext, fragment: Fragment) -> bool:
    """True if a fragment is a whole query that runs record by record."""
    return fragment.query is not None and fragment.query in real_time(context.deployment)


# State must bear that a batch is done again: in this mode Spark wants a store that names its files by batch and try,
# and that store wants Hadoop's usual way to local files. Both are for such a query alone.
WITH_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


def session_for_state(session: SparkSession) -> SparkSession:
    """A session for one query that keeps state, set as that of all but for its store."""
    own = session.newSession()
    # What Spark is told as a whole, when it starts, cannot be told again.
    alike = {key: value for key, value in session.conf.getAll.items() if own.conf.isModifiable(key)}
    for key, value in {**alike, **WITH_STATE}.items():
        own.conf.set(key, value)
    return own


class RealTimeRun(DrainingRun):
    """A query in Spark's real-time mode, under one epoch."""

    def given(self) -> dict[str, int]:
        """Results that its sink was given by the batches that Spark has reported of this run."""
        for progress in self.query.recentProgress if self.query is not None else ():
            told = json.loads(progress.json)
            self._given[told["batchId"]] = max(0, told["sink"].get("numOutputRows") or 0)
        return {self.fragment.sinks[0]: sum(self._given.values())} if self._given else {}

    def launch(self) -> None:
        """Let Spark have the query; returns when it has taken it."""
        assert self.fragment.query is not None
        query = self.context.deployment.query(self.fragment.query)
        sink = query.sinks[0]
        self._given: dict[int, int] = {}
        self._reads_with = self.session if self.fragment.stateful is None else session_for_state(self.session)
        frame = self._frame(sink.from_)
        options = {name: value for name, value in sink.options.items() if name.lower().startswith("kafka.")}
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.fragment.site)
        writer = (
            as_messages(frame, sink)
            .writeStream.queryName(self.name)
            .outputMode("update")
            .format("kafka")
            .options(**options)
            .option("topic", topic_of(sink))
            .option("checkpointLocation", str(self.checkpoint))
        )
        self.query = writer.trigger(realTime=BATCH).start()  # type: ignore[call-overload]  # not in the types yet

    def _frame(self, name: str) -> DataFrame:
        """What an operator gives, down from the topics."""
        context = self.context
        assert self.fragment.query is not None
        query = context.deployment.query(self.fragment.query)
        operator = query.operator(name)
        inputs = {}
        for upstream in operator.from_:
            stream = dataflow(context.deployment).stream(query.name, upstream)
            frame = self._frame(upstream) if stream.startswith(f"{query.name}.") else self._topic(stream, name)
            watermark = watermark_of(context.deployment, query, operator, upstream)
            if watermark is not None and watermark.column is not None:
                frame = frame.withWatermark(watermark.column, watermark.delay)
            inputs[upstream] = frame
        return operators.apply(operator, inputs, context.deployment.folder, query=query.name)

    def _topic(self, stream: str, operator: str) -> DataFrame:
        source = self.context.deployment.source(stream)
        entry = Entry(stream, operator, f"source_{spark_name(f'{stream}_{operator}')}", False, None, 0)
        self.entries.append(entry)
        return read_topic(self._reads_with, source, entry.name, sources.struct(source.schema), observed=False)

    def _told(self) -> dict[str, Any]:
        """Where the last batch that Spark reports has come to; empty before the first."""
        progress = None if self.query is None else self.query.lastProgress
        found: dict[str, Any] = {}
        for held in json.loads(progress.json)["sources"] if progress else ():
            ends = held.get("endOffset") or {}
            found |= json.loads(ends) if isinstance(ends, str) else ends
        return found

    def waiting_at_sources(self) -> Iterator[tuple[Entry, int]]:
        """Records of each topic after those of the last batch that Spark reports."""
        told = self._told()
        for entry in self.entries:
            if entry.name not in self._unread_records:
                self._unread_records[entry.name] = UnreadRecords(self.context.deployment.source(entry.stream))
            yield entry, self._unread_records[entry.name].records(told)

    def drained(self) -> bool:
        """It never ends by itself."""
        return False
