"""How does a fragment's run live? As one streaming query, from its start, maybe ahead of its turn, to its end."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from weft.model import sink_name
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Times
from weft.spark.channels.gate import Gate
from weft.spark.channels.ticks import END, tick
from weft.spark.checkpoints.ledger import ledger_of
from weft.spark.failures.causes import cause_of, keep
from weft.spark.fragments.batch_times import BatchTimes
from weft.spark.fragments.late import LateRecords
from weft.spark.fragments.outputs import Commit
from weft.spark.fragments.positions import Standing
from weft.spark.fragments.wiring import Entry, RunContext, Wiring, ordering_in
from weft.spark.fragments.writing import BatchWriter
from weft.spark.ordering.holds import silent_for_too_long
from weft.spark.sources import streams as sources
from weft.spark.sources.arrivals import Flow
from weft.spark.sources.kafka import UnreadRecords
from weft.spark.sources.taken import refuse_passed_over
from weft.spark.sources.waiting import UnreadFiles, files_in, flow_of, records_due

REPORT_S_MAX = 5.0

# What runs of several processes write aside must not get one name: each process counts from a place of its own.
_births = itertools.count((int(time.time()) % 100_000_000) * 1000)


def updates_a_sink(context: RunContext, fragment: Fragment) -> bool:
    """Whether a fragment feeds a sink in update mode."""
    if fragment.query is None:
        return False
    query = context.deployment.query(fragment.query)
    return any(sink.mode == "update" and sink_name(query, sink) in fragment.sinks for sink in query.sinks)


class FragmentRun:
    """A fragment under one epoch, from start to stop."""

    def __init__(
        self,
        session: SparkSession,
        context: RunContext,
        times: Times,
        fragment: Fragment,
        epoch: int | None,
        generation: int,
        on_commit: Callable[[Commit], None],
    ) -> None:
        self.session = session
        self.context = context
        self.fragment = fragment
        self.epoch = epoch or 0
        self.generation = generation
        self.born = next(_births)
        self.checkpoint = context.folders.checkpoint(fragment.id, generation)
        self.gate = Gate(context.folders.gate(fragment.id, generation), epoch is None, context.folders.disk)
        self.batch_times = BatchTimes(context, times, fragment, updates_a_sink(context, fragment))
        late = LateRecords(session, self.name)
        self.writer = BatchWriter(
            context, fragment, self.batch_times, self.checkpoint, self.gate, self.born, on_commit, self._explain, late
        )
        self.warm: tuple[Wiring, DataFrame] | None = None
        self.entries: list[Entry] = []
        self.has_ticks = False
        self.query: StreamingQuery | None = None
        self.clean = False
        self.over = False
        self._nudged_s = 0.0
        self._flows: dict[str, Flow | None] = {}
        self._unread: dict[str, UnreadFiles] = {}
        self._unread_records: dict[str, UnreadRecords] = {}
        if epoch is not None:
            self.adopt(epoch)

    def adopt(self, epoch: int) -> None:
        """Take the outputs over for an epoch, and take in where inputs go on; Fenced where a later one has them."""
        self.writer.adopt(epoch, f"{self.fragment.id}/{self.generation}")
        self.epoch = epoch

    @property
    def name(self) -> str:
        """What Spark calls its query."""
        return f"{self.fragment.id}#{self.generation}.{self.born}"

    def wire(self, tick: int) -> tuple[Wiring, DataFrame]:
        """The streaming plan, ready to start."""
        wiring = Wiring(self.session, self.context, self.fragment, tick, self.gate, self.batch_times.merged)
        return wiring, wiring.trunk()

    def start(self) -> None:
        """Start the streaming query in its site's pool, unless it runs behind its gate; its turn has come."""
        if self.query is None:
            self.launch()
        self.writer.begin_turn()

    def launch(self) -> None:
        """Let Spark have the query; returns when it has taken it."""
        wiring, frame = self.warm or self.wire(self.epoch)
        self.entries, self.has_ticks = wiring.entries, wiring.ticks
        self.writer.load_positions(self.entries, self.has_ticks)
        if not self.gate.waits:
            # Before Spark has it: a first batch may come before that call returns, and it is no rehearsal.
            self.writer.begin_turn()
        if self.has_ticks:
            self._tick(f"start-{self.epoch:06d}")
        self.session.sparkContext.setLocalProperty("spark.scheduler.pool", self.fragment.site)
        self.query = (
            frame.writeStream.queryName(self.name)
            .outputMode("update" if self.batch_times.updates else "append")
            .option("checkpointLocation", str(self.checkpoint))
            .foreachBatch(self.writer.write)
            .start()
        )
        if self.over:  # it was ended while Spark took it: then there was nothing to stop
            self.stop()

    def _explain(self) -> bool:
        """Leave the plan that Spark runs where `weft explain` finds it; False until Spark has named its query."""
        if self.query is None:
            return False
        plan = self.query._jsq.explainInternal(False)
        path = self.context.folders.fragment(self.fragment.id) / "plan.txt"
        self.context.folders.disk.replace(path, plan.encode(), sync=False)
        return True

    def stop(self, clean: bool = False) -> bool:
        """End the query, whether at a batch boundary; else what was under way is done again by the next epoch."""
        self.over = True
        if self.query is None:
            return False
        if clean:
            if self.writer.give_up():
                # Those that it has not begun yet, too.
                self.session.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(str(self.query.runId))
            self.clean = self.writer.close_cleanly()
        self.writer.close()
        self._wait_for_report()
        self.query.stop()
        if self.writer.ledger is not None:
            with suppress(OSError):  # it only helps to notice damage
                self.writer.ledger.close()
        return self.clean

    def _wait_for_report(self) -> None:
        """Wait until Spark has reported the last batch that it was left to commit: a stop would break that off."""
        assert self.query is not None
        deadline = time.monotonic() + REPORT_S_MAX
        while self.writer.concluded is not None and self.query.isActive and time.monotonic() < deadline:
            last = self.query._jsq.lastProgress()
            if last is not None and last.batchId() >= self.writer.concluded:
                return
            time.sleep(0.005)

    def discard(self) -> None:
        """As if it had never started ahead of its turn; Spark's own notes of it included."""
        self.stop_ahead()
        self.gate.forget()
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        ledger_of(self.checkpoint).unlink(missing_ok=True)

    def stop_ahead(self) -> None:
        """End it before its turn, and throw away what it has written aside; another goes on from its checkpoint."""
        self.stop()
        self.writer.forget_ahead()

    def standing(self, last: int | None = None) -> Standing:
        """What those need that go on from here; `last` where that batch is still under way."""
        return Standing(self.fragment, self.generation, tuple(self.entries), dict(self.batch_times.first), last)

    def file_entries(self) -> Iterator[tuple[Entry, str]]:
        """Its ways in from users' files, each with the folder or glob that Spark reads."""
        for entry in self.entries:
            if not entry.is_channel:
                source = self.context.deployment.source(entry.stream)
                if source.path is not None and source.facts.seen_by_name:
                    path = sources.path_of(self.context.deployment, source.path)
                    yield entry, os.path.dirname(path) if os.path.isfile(path) else path

    def topic_entries(self) -> list[Entry]:
        """Its ways in from brokers, in the order in which Spark has them."""
        return self.batch_times.topics(self.entries)

    def taken_sources(self) -> dict[str, int]:
        """Records taken so far from sources that Weft itself times."""
        counts = {entry.stream: self._count(entry) for entry in self.entries if not entry.is_channel}
        return {stream: count for stream, count in counts.items() if count}

    def _count(self, entry: Entry) -> int:
        """Records taken from a source that counts them."""
        reached = self.writer.reached(entry)
        return reached if isinstance(reached, int) else 0

    def taken_total(self) -> int:
        """Records taken so far from channels and timed sources; those from users' files Spark reports."""
        total = sum(self.taken_sources().values())
        for entry in self.entries:
            if entry.is_channel:
                total += self.context.folders.stream(entry.stream).rows_before(self.writer.reached(entry)) or 0
        return total

    def given(self) -> dict[str, int]:
        """Results by sink that no manifest tells of; none where all are committed in a log."""
        return {}

    def backlogs(self) -> Iterator[tuple[Entry, tuple[int, int]]]:
        """Segments and records of each channel it reads whose results it has not written yet."""
        for entry in self.entries:
            if entry.is_channel:
                yield entry, self.context.folders.stream(entry.stream).beyond(self.writer.reached(entry))

    def waiting_at_sources(self) -> Iterator[tuple[Entry, int]]:
        """Records that each source it reads has for it: due and not taken, or in files that were not read yet."""
        for entry in self.entries:
            if entry.is_channel:
                continue
            source = self.context.deployment.source(entry.stream)
            if source.facts.timed:
                if entry.name not in self._flows:
                    self._flows[entry.name] = flow_of(self.context.folders, source)
                due = records_due(self.context.folders, source, self._flows[entry.name])
                yield entry, max(0, due - self._count(entry))
            elif source.facts.has_topic:
                if entry.name not in self._unread_records:
                    self._unread_records[entry.name] = UnreadRecords(source)
                yield entry, self._unread_records[entry.name].records(self.writer.told(entry))
            elif source.path is not None:
                if entry.name not in self._unread:
                    path = sources.path_of(self.context.deployment, source.path)
                    self._unread[entry.name] = UnreadFiles(source, path, self.checkpoint / "sources" / entry.name)
                yield entry, self._unread[entry.name].records(self.writer.files_upto(entry))

    def has_begun(self) -> bool:
        """Whether its first batch, which is slow, is over; users' files and topics do not wait for that."""
        timed = (entry.is_channel or self.context.deployment.source(entry.stream).facts.timed for entry in self.entries)
        return self.over or self.writer.has_written or not all(timed)

    def drained(self) -> bool:
        """Whether all inputs have ended and everything is committed."""
        return self.writer.ended.is_set()

    def failure(self) -> tuple[str, bool] | None:
        """Why the query ended unasked and whether a restart would only repeat it; None while it runs."""
        if self.query is None or self.query.isActive:
            return None
        error = self.query.exception()
        if error is None:
            return "the query ended without an error", False
        return why_failed(error, self.context, self.fragment.id)

    def read_all(self, totals: dict[str, int], before_end: Callable[[], None]) -> None:
        """Wait until sources hold nothing new (of a recording: until all of it was given), then finish them.

        `before_end` is called when they are about to be finished: what comes after that is too late. What lies there
        then is read, all of it: a file may have come since Spark looked last.
        """
        assert self.query is not None
        timed = [entry for entry in self.entries if not entry.is_channel and entry.stream in totals]
        while self.query.isActive and any(self._count(entry) < totals[entry.stream] for entry in timed):
            time.sleep(0.1)
        self.query.processAllAvailable()
        # The wait is also over when the query is: then nothing has ended but this epoch.
        if not self.query.isActive:
            return
        before_end()
        there = self._files_there()
        self.query.processAllAvailable()
        if self.query.isActive:
            for entry, files in there:
                refuse_passed_over(files, self.checkpoint / "sources" / entry.name, self.writer.files_upto(entry))
            self.finish_sources()

    def _files_there(self) -> list[tuple[Entry, list[str]]]:
        """What lies in users' folders, where we find what Spark finds: a pattern may mean other files to it."""
        found = []
        for entry in self.entries:
            source = None if entry.is_channel else self.context.deployment.source(entry.stream)
            if source is None or source.path is None or not source.facts.seen_by_name:
                continue
            path = sources.path_of(self.context.deployment, source.path)
            if os.path.isdir(path) and not any(name.lower() == "pathglobfilter" for name in source.options):
                found.append((entry, files_in(path)))
        return found

    def finish_sources(self) -> None:
        """All that sources hold is read: let the fragment close its windows, or end its streams."""
        if self.has_ticks:
            assert self.query is not None
            self._tick(END)
            self.query.processAllAvailable()
            if not self.drained():
                # The end moves the watermark only for the batch after it, which an inner join does not ask for.
                self._tick("over")
            return
        self.writer.finish_sources()

    def _tick(self, name: str) -> None:
        tick(self.context.folders.ticks(self.fragment.id), name, self.context.folders.disk)

    def nudge_if_silent(self) -> None:
        """Let records go that are held back for others, where none has come for long."""
        query = self.context.deployment.query(self.fragment.query) if self.fragment.query else None
        for name in ordering_in(query, self.fragment):
            if silent_for_too_long(self.context.folders.late(f"{self.fragment.query}.{name}"), self._nudged_s):
                self._nudged_s = time.time()
                if self.has_ticks:
                    self._tick(f"idle-{time.time_ns()}")
                nudge = self.context.folders.nudge(self.fragment.id)
                self.context.folders.disk.replace(nudge, str(time.time_ns()).encode(), sync=False)


def why_failed(error: BaseException, context: RunContext, fragment: str) -> tuple[str, bool]:
    """Why a query failed in one sentence, and whether starting again would only repeat it; the rest is logged."""
    cause = cause_of(error, context.deployment.folder, context.deployment.sources, [str(context.folders.state)])
    keep(context.folders.logs, fragment, cause, error)
    return cause.text, cause.permanent
