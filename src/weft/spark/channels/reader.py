"""Reads a channel of any kind into Spark: a streaming source whose offset is a position and a tick.

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
from weft.spark.channels.kinds import open_channel
from weft.spark.channels.manifest import Manifest
from weft.spark.channels.position import BEGINNING, POSITION, TICK, Position, as_position, later

TIME = "_weft_time"
GHOST = "_weft_ghost"
FORMAT = "weft_log"
END = "end"
NUDGE = "nudge"
COMMITS_MAX = 512  # a batch's limit, so that a long backlog is worked off in pieces


class Pieces(InputPartition):
    """Pieces of a channel that one task reads, and the event time that they bring."""

    def __init__(self, pieces: list[Any], time_us: int | None, ghost: bool) -> None:
        super().__init__(None)
        self.pieces = pieces
        self.time_us = time_us
        self.ghost = ghost


class ChannelSource(DataSource):
    """Spark's way in: `format("weft_log")` with the channel's own options and those that `ChannelReader` takes."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ChannelReader(schema, dict(self.options))


class ChannelReader(DataSourceStreamReader):
    """Plans batches by positions and reads them as Arrow; `partitions` names some by number, as "0,2"."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self.columns = schema
        self.channel = open_channel(options)
        self.reader = options["reader"]
        self.tick = int(options.get(TICK, "0"))
        self.time = options.get("time")
        taken = options.get("partitions")
        self.taken = None if taken is None else frozenset(int(one) for one in taken.split(","))
        self.tasks = int(options.get("tasks", "2"))
        self.delay_ms = float(options.get("delay_ms", "0"))
        self.kbps = float(options.get("kbps", "0"))
        self.gate = Gatekeeper(options)
        self.nudges = options.get(NUDGE)
        self._last: tuple[Position, Manifest | None] = (BEGINNING, None)
        self._committed: Position | None = None

    def initialOffset(self) -> dict[str, Any]:
        return {POSITION: BEGINNING, TICK: 0}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        if self.gate.closed():
            return self.gate.rehearsal(start)
        begin = later(as_position(start[POSITION]), self.gate.first())  # before that, records may be gone
        reach = self.channel.reach(begin, COMMITS_MAX)
        if self.delay_ms or self.kbps:
            reach = self.channel.arrived(begin, reach, time.time() * 1000, self.delay_ms, self.kbps)
        if self.gate.nothing_beyond(reach) and not self._ended(reach):
            return start
        latest: dict[str, Any] = {POSITION: reach, TICK: max(self.tick, start[TICK])}
        if END in start or (self.time is not None and reach == begin and self._ended(reach)):
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

    def _ended(self, reach: Position) -> bool:
        """Whether the stream's end lies just before a position."""
        if self._last[0] != reach:
            self._last = (reach, self.channel.upto(reach))
        return self._last[1] is not None and self._last[1].end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self.gate.closed():
            return [Pieces([], None, False)]
        begin, finish = later(as_position(start[POSITION]), self.gate.first()), as_position(end[POSITION])
        manifests = [manifest for _, manifest in self.channel.commits(begin, finish)]
        ticked = end[TICK] > start[TICK] or (END in end and END not in start) or end.get(NUDGE) != start.get(NUDGE)
        if not manifests and not ticked:
            return []
        pieces = self.channel.pieces(manifests, self.taken)
        time_us = self._time_us(finish)
        share = max(1, -(-len(pieces) // self.tasks))
        parts = [Pieces(pieces[i : i + share], time_us, False) for i in range(0, len(pieces), share)]
        if self.time is not None and time_us is not None:
            # One ghost a batch is enough: the time of the last segment is the greatest.
            if parts:
                parts[0].ghost = True
            else:
                parts.append(Pieces([], time_us, True))
        return parts

    def _time_us(self, end: Position) -> int | None:
        last = None if self.time is None else self.channel.upto(end)
        return None if last is None or self.time is None else last.times_us.get(self.time)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Pieces)
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.columns, timezone="UTC")
        names = [name for name in schema.names if name not in (TIME, GHOST)]
        for piece in partition.pieces:
            table = self.channel.read(piece, names)
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
            self.channel.passed(self.reader, self._committed)
        self._committed = as_position(end[POSITION])
