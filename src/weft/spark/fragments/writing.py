"""How is each batch of a fragment written? As one segment of every output that does not have it yet.

Before its turn has come a fragment owns no outputs: its first batch is written aside, and put in its place later.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from weft.plan.changing.fragments import Fragment
from weft.spark.channels.gate import Gate
from weft.spark.channels.manifest import Written
from weft.spark.channels.position import BEGINNING, Position, later
from weft.spark.checkpoints import offsets as batches
from weft.spark.checkpoints.checkpoint import last_committed, last_planned, wait_for_commit
from weft.spark.checkpoints.ledger import Ledger
from weft.spark.checkpoints.offsets import Offsets
from weft.spark.fragments.batch_input import BatchInput, BatchInputs
from weft.spark.fragments.batch_records import BatchRecords, shared
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.counts import BatchCounts
from weft.spark.fragments.durations import Durations
from weft.spark.fragments.last_batch import LastBatch
from weft.spark.fragments.late import LateRecords
from weft.spark.fragments.late_parts import late_of_parts
from weft.spark.fragments.outputs import Commit, ManifestFacts, Output, open_outputs, places
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.sources.taken import refuse_doubled, refuse_gone
from weft.spark.storage.disk import spent_s

BATCHES_KEPT = 64  # of counts, until somebody has looked
LEFT_OPEN_S_MAX = 30.0


class Closed(RuntimeError):
    """A batch that was planned after the end was asked for: it never runs."""


class BatchWriter:
    """Writes the batches of one run, and knows how far they have come; `explain` follows one of the first."""

    def __init__(
        self,
        context: RunContext,
        fragment: Fragment,
        batch_times: BatchTimes,
        checkpoint: Path,
        gate: Gate,
        born: int,
        on_commit: Callable[[Commit], None],
        explain: Callable[[], bool],
        late: LateRecords,
    ) -> None:
        self.context = context
        self.fragment = fragment
        self.batch_times = batch_times
        self.checkpoint = checkpoint
        self.gate = gate
        self.born = born
        self.on_commit = on_commit
        self.explain = explain
        self.late = late
        self.inputs = BatchInputs(context, fragment, batch_times, checkpoint, late)
        self.records = BatchRecords(context, fragment)
        self.outputs: list[Output] = []
        self.left_out: list[Output] = []
        self.batches: deque[BatchCounts] = deque(maxlen=BATCHES_KEPT)
        self.last = LastBatch()
        self.durations = Durations()
        self.rehearsed: int | None = None
        self.sync_ms: deque[tuple[int, float]] = deque(maxlen=BATCHES_KEPT)  # by batch, until somebody has looked
        self.ledger: Ledger | None = None
        self.waited_ms: dict[int, float] = {}  # by batch: how long one that was worked out ahead lay aside
        self.ended = threading.Event()
        self.concluded: int | None = None  # the last batch that Spark was left to commit and to report
        self._reached: dict[str, Position] = {}
        self._lock = threading.Lock()
        self._turn_came = threading.Event()
        self._closing = False
        self._broken_off = False
        self._given_up = self._gives = False
        self._concluding = threading.Lock()
        self._left_open = False
        self._was_closed = threading.Event()  # what an epoch before had left open
        self._settled: int | None = None
        self._beside = ThreadPoolExecutor(1, thread_name_prefix=f"ledger-{fragment.id}")
        self._begun: Future[None] | None = None
        self._waited_s = 0.0
        self._explained = False
        self._written: Offsets | None = None

    def adopt(self, epoch: int, writer: str) -> None:
        """Take the outputs over for an epoch, and take in where inputs go on; Fenced where a later one has them."""
        opened = open_outputs(self.context, self.fragment, epoch, writer)
        self.outputs = [output for output in opened if output.late is None]
        self.left_out = [output for output in opened if output.late is not None]
        self.batch_times.first = self.gate.positions()

    def load_positions(self, entries: list[Entry], has_ticks: bool) -> None:
        """Know from the start where the epochs before have come to; there may be no batch any more that tells."""
        self.inputs.entries, self.inputs.has_ticks = entries, has_ticks
        batch = last_committed(self.checkpoint)
        self._left_open = last_planned(self.checkpoint) != batch
        self.ledger = Ledger(self.checkpoint, self.context.folders.run, self.context.folders.disk)
        offsets = self._written = None if batch is None else batches.read_offsets(self.checkpoint, batch)
        for entry in self.inputs.entries:
            come_to = batches.position_of if entry.is_channel else batches.count_of
            self._reached[entry.name] = come_to(offsets, entry.name)

    def begin_turn(self) -> None:
        """The outputs are ours: from now on batches go there; said again, it changes nothing."""
        if self._turn_came.is_set():
            return
        for name, first in self.batch_times.first.items():
            self._reached[name] = later(first, self._reached.get(name, BEGINNING))
        self._turn_came.set()

    def reached(self, entry: Entry) -> Position:
        """The position of an input up to which results are written."""
        return self._reached.get(entry.name, BEGINNING)

    def files_upto(self, entry: Entry) -> int:
        """How far in Spark's list of a source's files results are written; -1 before the first."""
        return int(self.told(entry).get("logOffset", -1))

    def told(self, entry: Entry) -> dict[str, Any]:
        """The offset of an input, as Spark writes it, up to which results are written; empty before the first."""
        return self._written.ends.get(entry.name, {}) if self._written else {}

    def close(self) -> None:
        """Begin no further batch; the one under way is broken off, unless it was concluded."""
        with self._concluding:
            self._closing = self._broken_off = True
        self._beside.shutdown(wait=False)

    def give_up(self) -> bool:
        """Let a batch that has long to go be done by those who go on from here, unless some of it is committed."""
        with self._concluding:
            if self._gives or self.last.number is not None or not self.durations.has_long_to_go():
                return False
            self._closing = self._given_up = True
            return True

    def close_cleanly(self) -> bool:
        """Begin no batch after the one under way; whether all that was written, here or before, is committed."""
        if self._left_open:
            # What an epoch before has begun is part of what must be whole; Spark does it first.
            self._was_closed.wait(LEFT_OPEN_S_MAX)
        with self._lock:
            self._closing = True
            written = self.inputs.previous[0] if self.inputs.previous else None
        whole = not self._left_open if written is None else wait_for_commit(self.checkpoint, written)
        return whole and not self._holds_more()

    def _holds_more(self) -> bool:
        """Whether a batch that failed lies in some output: who goes on in another cut would give its records again."""
        committed = last_committed(self.checkpoint)
        following = 0 if committed is None else committed + 1
        return any(output.writer.written(following) for output in (*self.outputs, *self.left_out))

    def forget_ahead(self) -> None:
        """Throw away what lies aside."""
        for place in places(self.context, self.fragment):
            place.destination.forget_aside(self.born)

    def finish_sources(self) -> None:
        """No more comes from sources: end the streams as soon as no channel brings anything either."""
        with self._lock:
            if self._closing:
                return
            self.inputs.sources_done = True
            if all(self._channel_ended(entry) for entry in self.inputs.entries if entry.is_channel):
                for output in self.outputs:
                    self._end(output)
                self.ended.set()

    def _channel_ended(self, entry: Entry) -> bool:
        last = self.context.folders.stream(entry.stream).upto(self.reached(entry))
        return last is not None and last.end

    def _end(self, output: Output) -> None:
        last = output.writer.last
        if last is not None and last.end:
            return
        told = ManifestFacts(None, self.batch_times.ended_times(output), True, {})
        self._commit(output, last.batch if last else -1, Written(), told)

    def write(self, frame: DataFrame, batch: int) -> None:
        """Spark's call for every batch: one segment for each output that does not have it yet."""
        waited_s, self._waited_s = spent_s(), 0.0
        try:
            if self._closing:
                raise Closed(f"{self.fragment.id} ends before batch {batch}")
            assert self.ledger is not None, "batches come after the start"
            self._refuse_files(batch)
            self._settled = None
            channels = {entry.name: entry.stream for entry in self.inputs.entries if entry.is_channel}
            # Beside the work: what a batch rests on must be on disk before its results count, not before they are made.
            self._begun = self._beside.submit(self.ledger.begin, batch, channels)
            ahead = {} if self._turn_came.is_set() else self._write_ahead(frame, batch)
            if batch == self.rehearsed:
                self._wait_until_begun()
                return
            with self._place(), self._lock:
                if self._closing:
                    raise Closed(f"{self.fragment.id} ends before batch {batch}")
                self._gives = False
                self.last.begins(batch)
                self._write_batch(frame, batch, ahead)
                self._wait_until_begun()
                self._conclude(batch)
                self.durations.is_over()
                self._was_closed.set()
                self.sync_ms.append((batch, 1000 * (spent_s() - waited_s + self._waited_s)))
                if self.last.is_over(batch):
                    self._closing = True
        except Exception:
            if self._begun is not None:
                wait([self._begun])
            self.durations.is_off()
            # What a stop breaks off is no failure, and Spark chokes on the long story that would be told of it.
            if self._closing:
                raise Closed(f"{self.fragment.id} ends in batch {batch}") from None
            raise

    def _refuse_files(self, batch: int) -> None:
        """Refuse a batch in which Spark would read users' files twice or not at all, before it counts as begun."""
        by_name = [entry for entry in self.inputs.entries if not entry.is_channel and self._is_seen_by_name(entry)]
        offsets = batches.read_offsets(self.checkpoint, batch) if by_name else None
        for entry in by_name:
            if offsets is None:
                return
            upto = int((offsets.ends.get(entry.name) or {}).get("logOffset", -1))
            lists, after = self.checkpoint / "sources" / entry.name, self.files_upto(entry)
            refuse_doubled(lists, after, upto)
            if self._is_still_needed(batch):
                # What is there now was there when Spark looked; what goes from here on ends the batch.
                refuse_gone(lists, after, upto)

    def _is_still_needed(self, batch: int) -> bool:
        """Whether state, or an output that does not have it yet, rests on what a batch reads."""
        kept = self.fragment.stateful is not None or any(entry.column for entry in self.inputs.entries)
        return kept or not self.outputs or any(not output.writer.written(batch) for output in self.outputs)

    def _is_seen_by_name(self, entry: Entry) -> bool:
        return self.context.deployment.source(entry.stream).facts.seen_by_name

    def _place(self) -> AbstractContextManager[object]:
        """Where the site has a cap, a place to work in; one that is to end does not wait for it."""
        pace = self.context.pace
        if pace is None:
            return nullcontext()
        return pace.turn(lambda: self._closing, lambda: self.context.worked_s(self.late.name))

    def _conclude(self, batch: int) -> None:
        """Leave a batch to Spark, which commits and then reports it; one that an end overtook is done again instead.

        Else it could be committed and never reported: what Spark counted of it would be told nowhere.
        """
        with self._concluding:
            if self._broken_off or self._given_up:
                raise Closed(f"{self.fragment.id} ends in batch {batch}")
            self._gives, self.concluded = True, batch

    @property
    def has_written(self) -> bool:
        """Whether a batch of this run is over."""
        return self.inputs.previous is not None

    def _wait_until_begun(self) -> None:
        """Wait until what the batch rests on is on disk, and listed."""
        if self._begun is not None:
            since_s = time.monotonic()
            self._begun.result()
            self._waited_s += time.monotonic() - since_s

    def _write_ahead(self, frame: DataFrame, batch: int) -> dict[str, Written]:
        """The gate is open, the outputs are not ours yet: write aside, then wait for the turn."""
        ahead: dict[str, Written] = {}
        opened = not self.gate.waits or self.gate.is_open()
        if opened:
            # What lies before these places is somebody else's, and may have been removed by now.
            self.batch_times.first = self.gate.positions()
        waiting = [place for place in places(self.context, self.fragment) if place.late is None]
        if all(place.destination.can_write_aside for place in waiting):
            few = not opened or self.inputs.are_few(self.inputs.of(batch), None)
            with shared(frame, len(waiting)):
                for place in waiting:
                    records = self.records.carried(place, self.records.branch(frame, place.operator))
                    measured = self.batch_times.measured(place.stream)
                    ahead[place.stream] = place.destination.write_aside(records, self.born, measured, few)
        if not opened:  # when this batch was planned it was not either: nothing was read
            self.rehearsed = batch
            return {}
        since_s = time.monotonic()
        while not self._turn_came.wait(0.05) and not self._closing:
            continue
        self.waited_ms[batch] = (time.monotonic() - since_s) * 1000
        return ahead

    def _write_batch(self, frame: DataFrame, batch: int, ahead: Mapping[str, Written]) -> None:
        brought = self.inputs.of(batch)
        counts = [one.rows for one in brought.arrivals.values()]
        self.durations.begins(None if None in counts else sum(one or 0 for one in counts))
        waiting = [output for output in self.outputs if not output.writer.written(batch)]
        committed = {  # by an epoch before
            output.operator: output.writer.last.rows
            for output in self.outputs
            if output.operator is not None and output.writer.last is not None and output.writer.written(batch)
        }
        with shared(frame, 0 if ahead else len(waiting)):
            held = self.records.fetched(frame, brought.ended) if not ahead and len(waiting) > 1 else None
            for output in waiting:
                if output.stream in ahead:
                    written = output.writer.take(ahead[output.stream])
                else:
                    records = self.records.carried(output.place, self.records.of(frame, output.operator, held))
                    few = held is not None or self.inputs.are_few(brought, output.writer.last)
                    written = output.writer.write(records, self.batch_times.measured(output.stream), few)
                brought = self.inputs.with_births(brought, batch)
                self._finish(output, written, batch, brought)
                if output.operator is not None:
                    committed[output.operator] = written.rows
        if not waiting:
            self._work_out_again(frame)
        self._write_late(batch)
        self._explained = self._explained or self.explain()
        self.inputs.previous = (batch, brought.offsets)
        self._written = brought.offsets
        for entry in self.inputs.entries:
            self._reached[entry.name] = brought.arrivals[entry.name].position
        self.batches.append(BatchCounts(batch, self.inputs.entered(brought), committed))
        if brought.ended:
            self.ended.set()

    def _work_out_again(self, frame: DataFrame) -> None:
        """An epoch before has committed its results; state, watermark and counts are Spark's to have anew."""
        try:
            frame.write.format("noop").mode("overwrite").save()
        except Exception:
            # Files that were read may be gone by now: where only counts depend on them, those are too low.
            if self.fragment.stateful or any(entry.column for entry in self.inputs.entries):
                raise

    def _write_late(self, batch: int) -> None:
        """Put down what the watermark has left out of the batch just worked out, unless an epoch before has."""
        waiting = [output for output in self.left_out if not output.writer.written(batch)]
        dropped = self.late.dropped() if waiting else None
        if dropped is None:
            return
        told, found = ManifestFacts(None, {}, False, {}, dropped.watermark_ms), 0
        counted = late_of_parts(self.late, waiting, dropped)
        for output in waiting:
            assert output.late is not None
            if output.part is not None:
                written = Written(rows=counted[output.stream])
            else:
                records = self.late.records(output.late, dropped.watermark_ms)
                written = Written() if records is None else output.writer.write(records, [], few=True)
            if written.rows:
                found += written.rows
                self._commit(output, batch, written, told)
            else:
                output.writer.discard(written)
        if not found and len(waiting) == len(self.left_out):
            # Nobody can tell which they were: then Spark's own count is better than none.
            self._commit(waiting[0], batch, Written(rows=dropped.rows), told)

    def _finish(self, output: Output, written: Written, batch: int, brought: BatchInput) -> None:
        """Commit what was written, unless it says nothing new."""
        if brought.ended:
            times = self.batch_times.ended_times(output)
        else:
            times = self.batch_times.times_us(output, brought.arrivals, brought.offsets, written)
        last = output.writer.last
        news = last is None or times != last.times_us or brought.ended != last.end
        if written.rows or (news and output.sink is None and (times or brought.ended)):
            inputs = {entry.stream: brought.arrivals[entry.name].position for entry in self.inputs.entries}
            told = ManifestFacts(brought.births, times, brought.ended, inputs, brought.offsets.watermark_ms)
            self._commit(output, batch, written, told)
        else:
            output.writer.discard(written)

    def _commit(self, output: Output, batch: int, written: Written, told: ManifestFacts) -> None:
        with self._concluding:
            if self._given_up:
                raise Closed(f"{self.fragment.id} ends before batch {batch}")
            self._gives = True
        if self.ledger is not None and self._settled != batch:
            self._wait_until_begun()
            self.ledger.settle(batch)
            self._settled = batch
        manifest = output.commit(batch, written, told)
        is_late = output.late is not None
        is_sink = output.sink is not None and not is_late
        self.on_commit(Commit(self.fragment.id, output.stream, is_sink, manifest, is_late))
