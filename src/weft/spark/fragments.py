"""How does a fragment run? One streaming query, each batch of which becomes one segment of every output."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weft.plan.fragments import Fragment, source_of
from weft.plan.graph import sink_name
from weft.plan.times import Times
from weft.spark import batch as batches
from weft.spark import operators, sources
from weft.spark.ahead import LastBatch
from weft.spark.batch import Arrival, Offsets
from weft.spark.checkpoint import last_committed, last_planned, wait_for_commit
from weft.spark.counts import BatchCounts, records_out
from weft.spark.footers import Written
from weft.spark.gate import Gate
from weft.spark.log import write_atomically
from weft.spark.meaning import Births, Meaning
from weft.spark.ordering import silent_for_too_long
from weft.spark.outputs import Commit, Output, Told, open_outputs, places
from weft.spark.recut import Ended
from weft.spark.wiring import Entry, Plans, Wiring, ordering_in, tick

BATCHES_KEPT = 64  # of counts, until somebody has looked
_births = itertools.count()


def updates_a_sink(plans: Plans, fragment: Fragment) -> bool:
    """Whether a fragment feeds a sink in update mode."""
    if fragment.query is None:
        return False
    query = plans.deployment.query(fragment.query)
    return any(sink.mode == "update" and sink_name(query, sink) in fragment.sinks for sink in query.sinks)


class Closed(RuntimeError):
    """A batch that was planned after the end was asked for: it never runs."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a batch brings to every output."""

    offsets: Offsets
    arrivals: dict[str, Arrival]
    births: Births
    ended: bool


class FragmentRun:
    """A fragment under one epoch, from start to stop."""

    def __init__(
        self,
        session: SparkSession,
        plans: Plans,
        times: Times,
        fragment: Fragment,
        epoch: int | None,
        generation: int,
        told: Callable[[Commit], None],
    ) -> None:
        self.session = session
        self.plans = plans
        self.times = times
        self.fragment = fragment
        self.epoch = epoch or 0
        self.told = told
        self.generation = generation
        self.born = next(_births)
        self.writer = f"{fragment.id}/{generation}"
        self.checkpoint = plans.folders.checkpoint(fragment.id, generation)
        self.gate = Gate(plans.folders.gate(fragment.id, generation), waits=epoch is None)
        self.warm: tuple[Wiring, DataFrame] | None = None
        self.turn_came = threading.Event()
        self.closing = False
        self.clean = False
        self.ended = threading.Event()
        self.counts: dict[str, int] = {}
        self.batches: deque[BatchCounts] = deque(maxlen=BATCHES_KEPT)
        self._sources_done = False
        self._nudged_s = 0.0
        self._left_open = False
        self._turn = threading.Lock()
        self.last = LastBatch()
        self.rehearsed: int | None = None
        self.waited_ms: dict[int, float] = {}  # by batch: how long one that was worked out ahead lay aside
        self.outputs: list[Output] = []
        self.meaning = Meaning(plans, times, fragment, updates_a_sink(plans, fragment))
        if epoch is not None:
            self.adopt(epoch)
        self.entries: list[Entry] = []
        self.has_ticks = False
        self.query: StreamingQuery | None = None
        self._previous: tuple[int, Offsets] | None = None

    def adopt(self, epoch: int) -> None:
        """Take the outputs over for an epoch, and take in where inputs go on; Fenced where a later one has them."""
        self.outputs = open_outputs(self.plans, self.fragment, epoch, self.writer)
        self.epoch = epoch
        self.meaning.first = self.gate.positions()

    @property
    def name(self) -> str:
        """What Spark calls its query."""
        return f"{self.fragment.id}#{self.generation}.{self.born}"

    def wire(self, tick: int) -> tuple[Wiring, DataFrame]:
        """The streaming plan, ready to start."""
        wiring = Wiring(self.session, self.plans, self.fragment, tick, self.gate, self.meaning.merged)
        return wiring, wiring.trunk()

    def start(self) -> None:
        """Start the streaming query in its site's pool, unless it runs behind its gate; its turn has come."""
        if self.query is None:
            self.launch()
        for name, first in self.meaning.first.items():
            self.counts[name] = max(first, self.counts.get(name, 0))
        self.turn_came.set()

    def launch(self) -> None:
        """Let Spark have the query; returns when it has taken it."""
        wiring, frame = self.warm or self.wire(self.epoch)
        self.entries, self.has_ticks = wiring.entries, wiring.ticks
        self._take_up()
        if self.has_ticks:
            tick(self.plans.folders.ticks(self.fragment.id), f"start-{self.epoch:06d}", end=False)
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.fragment.site)
        self.query = (
            frame.writeStream.queryName(self.name)
            .outputMode("update" if self.meaning.updates else "append")
            .option("checkpointLocation", str(self.checkpoint))
            .foreachBatch(self._write)
            .start()
        )

    def _take_up(self) -> None:
        """Know from the start where the epochs before have come to; there may be no batch any more that tells."""
        batch = last_committed(self.checkpoint)
        self._left_open = last_planned(self.checkpoint) != batch
        offsets = None if batch is None else batches.read_offsets(self.checkpoint, batch)
        for entry in self.entries:
            come_to = batches.segment_of if entry.is_channel else batches.count_of
            self.counts[entry.name] = come_to(offsets, entry.name)

    def stop(self, clean: bool = False) -> bool:
        """End the query, whether at a batch boundary; else what was under way is done again by the next epoch."""
        if self.query is None:
            return False
        if clean:
            with self._turn:
                self.closing = True
                written = self._previous[0] if self._previous else None
            self.clean = self._settled(written)
        self.closing = True
        self.query.stop()
        return self.clean

    def discard(self) -> None:
        """As if it had never started ahead of its turn; Spark's own notes of it included."""
        self.stop_ahead()
        self.gate.forget()
        shutil.rmtree(self.checkpoint, ignore_errors=True)

    def stop_ahead(self) -> None:
        """End it before its turn, and throw away what it has written aside; another goes on from its checkpoint."""
        self.stop()
        for place in places(self.plans, self.fragment):
            shutil.rmtree(place.ahead(self.born), ignore_errors=True)

    def _settled(self, written: int | None) -> bool:
        """Whether all that was written is committed: the last batch here or, if none ran yet, what was found."""
        return not self._left_open if written is None else wait_for_commit(self.checkpoint, written)

    def as_ended(self, last: int | None = None) -> Ended:
        """What those need that go on from here; `last` where that batch is still under way."""
        return Ended(self.fragment, self.checkpoint, tuple(self.entries), self.meaning.first, last)

    def file_entries(self) -> Iterator[tuple[Entry, str]]:
        """Its ways in from users' files, each with the folder or glob that Spark reads."""
        for entry in self.entries:
            if not entry.is_channel:
                source = self.plans.deployment.source(entry.stream)
                if source.path is not None and source.format != "replay":
                    path = sources.path_of(self.plans.deployment, source.path)
                    yield entry, os.path.dirname(path) if os.path.isfile(path) else path

    def taken_sources(self) -> dict[str, int]:
        """Records taken so far from sources that Weft itself times."""
        timed = [entry for entry in self.entries if not entry.is_channel]
        return {entry.stream: self.counts.get(entry.name, 0) for entry in timed if self.counts.get(entry.name)}

    def taken_total(self) -> int:
        """Records taken so far from channels and timed sources; those from users' files Spark reports."""
        total = sum(self.taken_sources().values())
        for entry in self.entries:
            segment = self.counts.get(entry.name, 0)
            if entry.is_channel and segment:
                try:
                    total += self.plans.folders.stream(entry.stream).manifest(segment - 1).rows_total
                except FileNotFoundError:  # retention was quicker; the next look will tell
                    continue
        return total

    def backlogs(self) -> Iterator[tuple[Entry, tuple[int, int]]]:
        """Segments and records of each channel it reads whose results it has not written yet."""
        for entry in self.entries:
            if entry.is_channel:
                yield entry, self.plans.folders.stream(entry.stream).beyond(self.counts.get(entry.name, 0))

    def backlog(self) -> int:
        """Records that wait in the channels it reads."""
        return sum(records for _, (_, records) in self.backlogs())

    def records(self, counted: dict[str, int], records_in: int) -> dict[str, int | None]:
        """Records out of each operator so far; None where nothing tells."""
        if self.fragment.query is None:
            return {}
        committed = {o.operator: o.writer.last.rows_total for o in self.outputs if o.operator and o.writer.last}
        query = self.plans.deployment.query(self.fragment.query)
        return records_out(query, self.fragment, committed, counted, records_in)

    def drained(self) -> bool:
        """Whether all inputs have ended and everything is committed."""
        return self.ended.is_set()

    def failure(self) -> tuple[str, bool] | None:
        """Why the query ended unasked and whether a restart would only repeat it; None while it runs."""
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        return why_failed(error) if error else ("the query ended without an error", False)

    def read_all(self, totals: dict[str, int]) -> None:
        """Wait until sources hold nothing new (of a recording: until all of it was given), then finish them."""
        assert self.query is not None
        timed = [entry for entry in self.entries if not entry.is_channel and entry.stream in totals]
        while self.query.isActive and any(self.counts.get(e.name, 0) < totals[e.stream] for e in timed):
            time.sleep(0.1)
        self.query.processAllAvailable()
        # The wait is also over when the query is: then nothing has ended but this epoch.
        if self.query.isActive:
            self.finish_sources()

    def finish_sources(self) -> None:
        """All that sources hold is read: let the fragment close its windows, or end its streams."""
        if self.has_ticks:
            assert self.query is not None
            tick(self.plans.folders.ticks(self.fragment.id), "end", end=True)
            self.query.processAllAvailable()
            if not self.ended.is_set():
                # The end moves the watermark only for the batch after it, which an inner join does not ask for.
                tick(self.plans.folders.ticks(self.fragment.id), "over", end=False)
            return
        with self._turn:
            if self.closing:
                return
            self._sources_done = True
            if all(self._channel_ended(entry) for entry in self.entries if entry.is_channel):
                for output in self.outputs:
                    self._end(output)
                self.ended.set()

    def nudge_if_silent(self) -> None:
        """Let records go that are held back for others, where none has come for long."""
        query = self.plans.deployment.query(self.fragment.query) if self.fragment.query else None
        for name in ordering_in(query, self.fragment):
            if silent_for_too_long(self.plans.folders.late(f"{self.fragment.query}.{name}"), self._nudged_s):
                self._nudged_s = time.time()
                if self.has_ticks:
                    tick(self.plans.folders.ticks(self.fragment.id), f"idle-{time.time_ns()}", end=False)
                write_atomically(self.plans.folders.nudge(self.fragment.id), str(time.time_ns()).encode())

    def _channel_ended(self, entry: Entry) -> bool:
        segment = self.counts.get(entry.name, 0)
        return segment > 0 and self.plans.folders.stream(entry.stream).manifest(segment - 1).end

    def _end(self, output: Output) -> None:
        last = output.writer.last
        if last is not None and last.end:
            return
        told = Told(None, self.meaning.ended_times(output), True, {})
        self._commit(output, last.batch if last else -1, Written(), told)

    def _write(self, frame: DataFrame, batch: int) -> None:
        """Spark's call for every batch: one segment for each output that does not have it yet."""
        try:
            ahead = {} if self.turn_came.is_set() else self._write_ahead(frame, batch)
            if batch == self.rehearsed:
                return
            with self._turn:
                if self.closing:
                    raise Closed(f"{self.fragment.id} ends before batch {batch}")
                self.last.begins(batch)
                self._write_batch(frame, batch, ahead)
                self.closing = self.last.is_over(batch) or self.closing
        except Exception:
            # What a stop breaks off is no failure, and Spark chokes on the long story that would be told of it.
            if self.closing:
                raise Closed(f"{self.fragment.id} ends in batch {batch}") from None
            raise

    def _write_ahead(self, frame: DataFrame, batch: int) -> dict[Path, Written]:
        """The gate is open, the outputs are not ours yet: write aside, then wait for the turn."""
        ahead: dict[Path, Written] = {}
        waiting = places(self.plans, self.fragment)
        if not any(place.sink is not None and place.sink.format == "console" for place in waiting):
            with _shared(frame, len(waiting)):
                for place in waiting:
                    records = self._branch(frame, place.operator)
                    folder = place.ahead(self.born)
                    ahead[place.folder] = place.write(records, folder, self.meaning.measured(place.stream))
        if not self.gate.path.exists():  # then nothing was read
            self.rehearsed = batch
            return {}
        since_s = time.monotonic()
        while not self.turn_came.wait(0.05) and not self.closing:
            continue
        self.waited_ms[batch] = (time.monotonic() - since_s) * 1000
        return ahead

    def _write_batch(self, frame: DataFrame, batch: int, ahead: Mapping[Path, Written]) -> None:
        offsets = batches.read_offsets(self.checkpoint, batch)
        assert offsets is not None, f"batch {batch} runs without offsets"
        before = self._offsets_before(batch)
        arrivals = {entry.name: self.meaning.arrival(entry, before, offsets) for entry in self.entries}
        births = self.meaning.births(arrivals, before, offsets)
        ended = self._has_ended(arrivals, offsets)
        brought = Brought(offsets, arrivals, births, ended)
        committed: dict[str, int] = {}
        waiting = [output for output in self.outputs if not output.writer.written(batch)]
        with _shared(frame, 0 if ahead else len(waiting)):
            for output in waiting:
                if output.place.folder in ahead:
                    written = output.take(ahead[output.place.folder])
                else:
                    written = output.write(self._branch(frame, output.operator), self.meaning.measured(output.stream))
                self._finish(output, written, batch, brought)
                if output.operator is not None:
                    committed[output.operator] = written.rows
        if self._previous is None:
            self._explain()
        self._previous = (batch, offsets)
        for entry in self.entries:
            self.counts[entry.name] = arrivals[entry.name].segment
        if len(waiting) == len(self.outputs):  # else part of it was done by an epoch before
            entered = {
                (entry.operator, self._name_of(entry)): arrivals[entry.name].rows
                for entry in self.entries
                if entry.operator is not None
            }
            self.batches.append(BatchCounts(batch, entered, committed))
        if ended:
            self.ended.set()

    def _name_of(self, entry: Entry) -> str:
        """What an entry's operator calls the stream it reads."""
        return source_of(entry.stream).removeprefix(f"{self.fragment.query}.")

    def _has_ended(self, arrivals: dict[str, Arrival], offsets: Offsets) -> bool:
        if not self.meaning.windows_closed(self.entries, offsets):
            return False
        return all(self._entry_ended(entry, arrivals[entry.name]) for entry in self.entries)

    def _entry_ended(self, entry: Entry, arrival: Arrival) -> bool:
        if entry.is_channel:
            return arrival.end
        if not self.has_ticks:
            return self._sources_done
        return (self.plans.folders.ticks(self.fragment.id) / "end.json").exists()

    def _explain(self) -> None:
        """Leave the plan that Spark runs where `weft explain` finds it."""
        if self.query is not None:
            plan = self.query._jsq.explainInternal(False)
            write_atomically(self.plans.folders.fragment(self.fragment.id) / "plan.txt", plan.encode())

    def _offsets_before(self, batch: int) -> Offsets | None:
        if self._previous is not None and self._previous[0] == batch - 1:
            return self._previous[1]
        return batches.read_offsets(self.checkpoint, batch - 1)

    def _finish(self, output: Output, written: Written, batch: int, brought: Brought) -> None:
        """Commit what was written, unless it says nothing new."""
        if brought.ended:
            times = self.meaning.ended_times(output)
        else:
            times = self.meaning.times_us(output, brought.arrivals, brought.offsets, written)
        last = output.writer.last
        news = last is None or times != last.times_us or brought.ended != last.end
        if written.rows or (news and output.sink is None and (times or brought.ended)):
            inputs = {entry.stream: brought.arrivals[entry.name].segment for entry in self.entries}
            told = Told(brought.births, times, brought.ended, inputs, brought.offsets.watermark_ms)
            self._commit(output, batch, written, told)
        elif written.folder is not None:
            shutil.rmtree(written.folder, ignore_errors=True)

    def _commit(self, output: Output, batch: int, written: Written, told: Told) -> None:
        manifest = output.commit(batch, written, told)
        self.told(Commit(self.fragment.id, output.stream, output.sink is not None, manifest))

    def _branch(self, frame: DataFrame, name: str | None) -> DataFrame:
        """The records of an operator: the trunk's own, or a branch applied to them."""
        if name is None or name == self.fragment.trunk[-1]:
            return frame
        assert self.fragment.query is not None
        operator = self.plans.deployment.query(self.fragment.query).operator(name)
        upstream = operator.from_[0]
        return operators.apply(operator, {upstream: self._branch(frame, upstream)}, self.plans.deployment.folder)


@contextmanager
def _shared(frame: DataFrame, readers: int) -> Iterator[None]:
    """Work a batch out once, where several want it."""
    if readers > 1:
        frame.persist()
    try:
        yield
    finally:
        if readers > 1:
            frame.unpersist()


PERMANENT = (
    "MALFORMED_RECORD", "MALFORMED_CSV", "FAILFAST", "CANNOT_PARSE", "CAST_INVALID_INPUT", "ANALYSIS", "UNRESOLVED",
)  # fmt: skip


def why_failed(error: Any) -> tuple[str, bool]:
    """The message of a failed query on one line, and whether starting again would only repeat it."""
    text = str(error)
    return operators.one_line(error), any(word in text for word in PERMANENT)
