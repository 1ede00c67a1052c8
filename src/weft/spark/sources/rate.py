"""Sources that Weft itself times: `rate` makes records up, `replay` takes them from a recorded log.

The offset is a count of records. Which record is born when follows from the arrivals alone; `flows.json` maps flow
seconds to the clock, one line per start of the run, so that a replayed batch gives the very same records. Until sources
begin to flow, every start of the run asks for one batch without records: the first one is slow, and delays nothing so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from weft.model import Arrivals
from weft.model.arrivals import ARRIVALS
from weft.spark.channels.gate import Gatekeeper
from weft.spark.channels.log import Log
from weft.spark.sources.arrivals import Flow
from weft.spark.storage.disk import checked, read_sealed

FORMAT = "weft_rate"
COUNT = "count"
STARTS = "starts"
RECORDS_MAX = 200_000


Recorded = tuple[str, int, int, int]
"""A recorded file: path, size, checksum, and the number of its first record."""


class Span(InputPartition):
    """Records `start` to `end`, with their births where they are timed, and the files that hold them."""

    def __init__(self, start: int, end: int, births_us: NDArray[np.int64] | None, files: list[Recorded]) -> None:
        super().__init__(None)
        self.start = start
        self.end = end
        self.births_us = births_us
        self.files = files


NOTHING = Span(0, 0, np.empty(0, np.int64), [])


class RateSource(DataSource):
    """`format("weft_rate")` with the options arrivals, seed, flows and, for replay, recording."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return RateReader(schema, dict(self.options))


def decode_arrivals(text: str) -> Arrivals:
    """The arrivals that `encode_arrivals` wrote."""
    fields = json.loads(text)
    return msgspec.convert(fields, ARRIVALS[fields["kind"]])


def encode_arrivals(arrivals: Arrivals) -> str:
    """Arrivals as an option's text."""
    return msgspec.json.encode(arrivals).decode()


class Clock:
    """Flow seconds to clock and back: `starts` holds (flow_s, clock_ms) of every start of the run."""

    def __init__(self, starts: list[tuple[float, float]]) -> None:
        self._flow_s = np.array([flow_s for flow_s, _ in starts])
        self._clock_ms = np.array([clock_ms for _, clock_ms in starts])

    def flow_s(self, clock_ms: float) -> float:
        """How long sources have flowed at a moment of this start."""
        return float(self._flow_s[-1] + max(0.0, clock_ms - self._clock_ms[-1]) / 1000)

    def clock_us(self, flow_s: NDArray[np.float64]) -> NDArray[np.int64]:
        """The moments that flow seconds fell on, each in the start it belongs to."""
        at = np.clip(np.searchsorted(self._flow_s, flow_s, side="right") - 1, 0, None)
        moments = (self._clock_ms[at] * 1000 + (flow_s - self._flow_s[at]) * 1e6).round().astype(np.int64)
        return np.asarray(moments)


class RateReader(DataSourceStreamReader):
    """Counts what is born by now, and gives it."""

    def __init__(self, schema: StructType, options: dict[str, str]) -> None:
        self.columns = schema
        self.source = options["source"]
        self.recording = options.get("recording")
        self.run = options.get("run", "")
        self.arrivals = options.get("arrivals")
        self.seed = int(options.get("seed", "0"))
        self.flows = options.get("flows", "")
        self.starts_min = int(options.get("starts_min", "1"))
        self.gate = Gatekeeper(options)
        self._flow: Flow | None = None
        self._clock: Clock | None = None
        self._total: int | None = None
        self._starts = 0

    def initialOffset(self) -> dict[str, Any]:
        return {COUNT: 0}

    def _timing(self, starts_min: int) -> tuple[Flow, Clock] | None:
        """The arrivals and their clock; None until sources have begun to flow so many times."""
        if self._flow is None or self._clock is None or self._starts < starts_min:
            flows = read_sealed(self.flows)
            self._starts = len(flows["starts"])
            if self._starts < starts_min:
                return None
            assert self.arrivals is not None
            factors = [tuple(pair) for pair in flows["factors"].get(self.source, [])]
            self._flow = self._flow or Flow(decode_arrivals(self.arrivals), self.seed, factors)
            self._clock = Clock([tuple(pair) for pair in flows["starts"]])
        return self._flow, self._clock

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        if self.gate.closed():
            return self.gate.rehearsal(start)
        reach = max(start[COUNT], self._first()) + RECORDS_MAX
        if self.arrivals is not None:
            timing = self._timing(self.starts_min)
            if timing is None:
                return start if start.get(STARTS) == self.starts_min else {**start, STARTS: self.starts_min}
            flow, clock = timing
            reach = min(reach, flow.count(clock.flow_s(time.time() * 1000)))
        if self.recording is not None:
            reach = min(reach, self._recorded())
        if self.gate.nothing_beyond(reach):
            return start
        return {**start, COUNT: max(start[COUNT], reach)}

    def _first(self) -> int:
        """The record before which everything is somebody else's."""
        first = self.gate.first()
        assert isinstance(first, int), "a timed source counts records"
        return first

    def _recorded(self) -> int:
        if self._total is None:
            assert self.recording is not None
            last = Log(self.recording, self.run).last()
            self._total = last.rows_total if last else 0
        return self._total

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self.gate.closed():
            return [NOTHING]
        first, last = max(start[COUNT], self._first()), end[COUNT]
        if first >= last:
            return [] if end.get(STARTS) == start.get(STARTS) else [NOTHING]
        births_us = None
        if self.arrivals is not None:
            # What a start before this one has planned was born then: any clock that knows it will do.
            timing = self._timing(1)
            assert timing is not None, "records are planned only once sources flow"
            flow, clock = timing
            births_us = clock.clock_us(flow.births(first, last))
        return [Span(first, last, births_us, self._files(first, last))]

    def _files(self, first: int, last: int) -> list[Recorded]:
        """The recorded files that hold a span, with size, checksum and the number of its first record each."""
        if self.recording is None:
            return []
        log = Log(self.recording, self.run)
        found = []
        for segment in range(log.next_segment()):
            manifest = log.needed_manifest(segment)
            begins = manifest.rows_total - manifest.rows
            if begins < last and manifest.rows_total > first:
                found.append((*log.files(manifest)[0], begins))
        return found

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Span)
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.columns, timezone="UTC")
        if self.recording is not None:
            for path, size, crc, begins in partition.files:
                offset = max(0, partition.start - begins)
                length = partition.end - begins - offset
                table = pq.ParquetFile(pa.BufferReader(checked(path, size, crc))).read().slice(offset, length)
                yield from table.select(schema.names).cast(schema).to_batches(max_chunksize=16_384)
            return
        assert partition.births_us is not None
        numbers = np.arange(partition.start, partition.end, dtype=np.int64)
        arrays = made_up(schema, numbers, partition.births_us)
        yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=16_384)


def made_up(schema: Any, numbers: NDArray[np.int64], births_us: NDArray[np.int64]) -> list[Any]:
    """A rate source's columns: the first timestamp is the birth, the first integer the counter, the rest from it."""
    import pyarrow as pa

    arrays: list[Any] = []
    born = counted = False
    for field in schema:
        kind = field.type
        if pa.types.is_timestamp(kind):
            shift_us = 0 if not born else len(arrays) * 1_000_000
            born = True
            arrays.append(pa.array(births_us + shift_us, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")).cast(kind))
        elif pa.types.is_integer(kind):
            bound = 2 ** (kind.bit_width - 1) - 1
            values = numbers % bound if not counted else numbers * 31 % min(bound, 1000)
            counted = True
            arrays.append(pa.array(values).cast(kind))
        elif pa.types.is_floating(kind):
            arrays.append(pa.array(numbers * 0.618033988749895 % 1.0 * 100).cast(kind))
        elif pa.types.is_boolean(kind):
            arrays.append(pa.array(numbers % 2 == 0))
        elif pa.types.is_date(kind):
            arrays.append(pa.array(births_us, pa.timestamp("us")).cast(kind))
        elif pa.types.is_decimal(kind):
            arrays.append(pa.array([Decimal(int(n)) % 100 for n in numbers]).cast(kind))
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            arrays.append(pa.array([f"{field.name}-{n % 10}" for n in numbers.tolist()], kind))
        else:
            arrays.append(pa.nulls(len(numbers), kind))
    return arrays
