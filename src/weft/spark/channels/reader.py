"""Reads a channel into Spark: a streaming source whose offset is a segment number and a tick.

A reader that a watermark depends on gets two more columns: how far the stream's event time has come with the
segment, and whether the row is a ghost, which carries that time where a segment holds no records. A new tick, one
per start of the fragment, makes Spark run a batch without records: it sends what was due when the fragment stopped.
After the end one batch more is asked for in the same way: the end moves Spark's watermark only for the batch after
it, and an inner join would not run that one by itself. So is one when a stream falls silent on which records are held
back (a nudge).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from weft.spark.channels.gate import Gatekeeper
from weft.spark.channels.log import SEGMENT, TICK, Log, Manifest
from weft.spark.storage.disk import Disk, checked

TIME = "_weft_time"
GHOST = "_weft_ghost"
FORMAT = "weft_log"
END = "end"
NUDGE = "nudge"
SEGMENTS_MAX = 512  # a batch's limit, so that a long backlog is worked off in pieces


class Files(InputPartition):
    """Segment files that one task reads, with sizes and checksums, and the event time that they bring."""

    def __init__(self, files: list[tuple[str, int, int]], time_us: int | None, ghost: bool) -> None:
        super().__init__(None)
        self.files = files
        self.time_us = time_us
        self.ghost = ghost


class LogSource(DataSource):
    """Spark's way in: `format("weft_log")` with the options path, run, reader, tick, time, delay_ms, kbps and tasks."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogReader(schema, dict(self.options))


class LogReader(DataSourceStreamReader):
    """Plans batches by segment numbers and reads their files as Arrow."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self.columns = schema
        # Who is told of a place that was lost only keeps more than it needs to.
        self.log = Log(options["path"], options.get("run", ""), Disk(fsync=False))
        self.reader = options["reader"]
        self.tick = int(options.get(TICK, "0"))
        self.time = options.get("time")
        self.first = int(options.get("first", "0"))
        self.tasks = int(options.get("tasks", "2"))
        self.delay_ms = float(options.get("delay_ms", "0"))
        self.kbps = float(options.get("kbps", "0"))
        self.gate = Gatekeeper(options)
        self.nudges = options.get(NUDGE)
        self._last: Manifest | None = None
        self._committed: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {SEGMENT: self.first, TICK: 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        if self.gate.closed():
            return self.gate.rehearsal(start)
        reach = min(self.log.next_segment(), start[SEGMENT] + SEGMENTS_MAX)
        reach = max(reach, start[SEGMENT])
        if self.delay_ms or self.kbps:
            reach = self._arrived(start[SEGMENT], reach)
        if self.gate.nothing_beyond(reach) and not self._ended(reach):
            return start
        latest = {SEGMENT: reach, TICK: max(self.tick, start[TICK])}
        if END in start or (self.time is not None and reach == start[SEGMENT] and self._ended(reach)):
            latest[END] = 1
        nudge = self._nudge(start.get(NUDGE, 0))
        if nudge:
            latest[NUDGE] = nudge
        return latest

    def _nudge(self, before: int) -> int:
        """The number of the last nudge; 0 where nobody was ever nudged."""
        if self.nudges is None:
            return before
        try:
            with open(self.nudges, encoding="ascii") as file:
                return max(before, int(file.read() or 0))
        except (FileNotFoundError, ValueError):  # none yet, or garbled: the next one will do
            return before

    def _ended(self, reach: int) -> bool:
        """Whether the stream's end lies just before a segment number."""
        if reach and (self._last is None or self._last.segment != reach - 1):
            self._last = self.log.needed_manifest(reach - 1)
        return self._last is not None and self._last.end

    def _arrived(self, start: int, reach: int) -> int:
        """Emulated links: a segment is there when its delay is over and its bytes have passed, one after another."""
        now_ms = time.time() * 1000
        free_ms = 0.0
        for segment in range(start, reach):
            manifest = self.log.needed_manifest(segment)
            passing_ms = 8 * manifest.bytes / self.kbps if self.kbps else 0.0
            free_ms = max(free_ms, manifest.committed_ms) + passing_ms
            if free_ms + self.delay_ms > now_ms:
                return segment
        return reach

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self.gate.closed():
            return [Files([], None, False)]
        begin = max(start[SEGMENT], self.gate.first())
        manifests = [self.log.needed_manifest(segment) for segment in range(begin, end[SEGMENT])]
        ticked = end[TICK] > start[TICK] or (END in end and END not in start) or end.get(NUDGE) != start.get(NUDGE)
        if not manifests and not ticked:
            return []
        files = [path for manifest in manifests for path in self.log.files(manifest)]
        time_us = self._time_us(end[SEGMENT])
        share = max(1, -(-len(files) // self.tasks))
        parts = [Files(files[i : i + share], time_us, False) for i in range(0, len(files), share)]
        if self.time is not None and time_us is not None:
            # One ghost a batch is enough: the time of the last segment is the greatest.
            if parts:
                parts[0].ghost = True
            else:
                parts.append(Files([], time_us, True))
        return parts

    def _time_us(self, end: int) -> int | None:
        if self.time is None or end == 0:
            return None
        return self.log.needed_manifest(end - 1).times_us.get(self.time)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Files)
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.columns, timezone="UTC")
        names = [name for name in schema.names if name not in (TIME, GHOST)]
        for path, size, crc in partition.files:
            content = pa.BufferReader(checked(path, size, crc))
            table = pq.ParquetFile(content).read(columns=names)
            arrays = [table.column(name).cast(schema.field(name).type) for name in names]
            if self.time is not None:
                count = table.num_rows
                arrays.append(pa.repeat(pa.scalar(partition.time_us, schema.field(TIME).type), count))
                arrays.append(pa.repeat(pa.scalar(False), count))
            yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=16_384)
        if partition.ghost and self.time is not None:
            nulls = [pa.nulls(1, schema.field(name).type) for name in names]
            nulls.append(pa.array([partition.time_us], schema.field(TIME).type))
            nulls.append(pa.array([True]))
            yield pa.RecordBatch.from_arrays(nulls, schema=schema)

    def commit(self, end: dict[str, Any]) -> None:
        # One batch behind: the last one may have to be done again, after a power cut, say.
        if self._committed is not None:
            self.log.passed(self.reader, self._committed)
        self._committed = end[SEGMENT]
