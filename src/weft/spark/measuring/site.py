"""What has a site measured of itself? Commits, batches and their work since it last looked, and how fragments stand."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

from weft.model import dataflow
from weft.protocol.reporting import (
    BatchDone,
    BatchWeighed,
    Committed,
    Event,
    FragmentNow,
    Measured,
    SiteNow,
    Waiting,
)
from weft.spark.fragments.counts import records_in, records_out
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.outputs import Commit
from weft.spark.fragments.pacing import Pace
from weft.spark.fragments.wiring import ordering_in
from weft.spark.measuring.progress import BatchReport, StageTimes, new_reports
from weft.spark.ordering.holds import measured_order

WAITING_MAX = 1024


class SiteMeasures:
    """Looks at the runs of one site; what it tells once it does not tell again."""

    def __init__(
        self, site: str, runs: Mapping[str, FragmentRun], stages: StageTimes, bad: Mapping[str, int],
        pace: Pace | None = None,
    ) -> None:  # fmt: skip
        self.site = site
        self._pace = pace
        self.stages = stages
        self.bad = dict(bad)
        self._runs = runs
        self._replaced: deque[FragmentRun] = deque()
        self._told: dict[int, int] = {}  # by the birth of a run: its last batch that was told
        self._events: deque[Event] = deque()  # until a look gives them out: one that fails has lost nothing
        self._unweighed: deque[tuple[FragmentRun, BatchReport]] = deque(maxlen=WAITING_MAX)
        self._ended: dict[int, FragmentNow] = {}
        self._looks = 0

    def committed(self, commit: Commit) -> None:
        """A run has committed something; called by whoever writes."""
        manifest = commit.manifest
        self._events.append(
            Committed(
                commit.fragment,
                commit.stream,
                commit.is_sink,
                manifest.batch,
                manifest.rows,
                manifest.rows_total,
                manifest.committed_ms,
                manifest.birth_ms,
                commit.late,
            )
        )

    def replaced(self, run: FragmentRun) -> None:
        """Another has taken a run's place; it may have reported more since it was looked at."""
        self._replaced.append(run)

    def look(self, finally_: bool = False) -> Measured:
        """What is new, and how all stands; `finally_`, also what stages took that Spark was not asked for yet."""
        while self._replaced:  # before those that go on from it
            self._take_batches(self._replaced[0])
            self._told.pop(self._replaced.popleft().born, None)
        runs = tuple(self._runs.values())
        for run in runs:
            self._take_batches(run)
        at_ms = time.time() * 1000
        fragments = tuple(map(self._now, runs))
        self._ended = {run.born: self._ended[run.born] for run in runs if run.born in self._ended}
        self.stages.look(now=finally_)
        if self.stages.looks > self._looks:
            self._looks = self.stages.looks
            self._weigh()
        cpu_s = self.stages.seconds(self.site)
        if self._pace is not None:  # batches that wait for something fill a site with a cap, too
            cpu_s = max(cpu_s, self._pace.used_s())
        events = tuple(self._events.popleft() for _ in range(len(self._events)))
        return Measured(events, SiteNow(fragments, cpu_s, self.bad, at_ms=at_ms))

    def _take_batches(self, run: FragmentRun) -> None:
        syncs = dict(run.writer.sync_ms)
        for report in new_reports(run, self._told.get(run.born, -1)):
            keeps = run.fragment.stateful is not None and run.fragment.query is not None
            state = {f"{run.fragment.query}.{run.fragment.stateful}": report.state_bytes / 1024} if keeps else {}
            synced = (syncs[report.batch],) if report.batch in syncs else ()
            self._events.append(
                BatchDone(
                    run.fragment.id,
                    run.generation,
                    report.batch,
                    report.duration_ms,
                    report.sources,
                    report.bad,
                    report.operators,
                    state,
                    synced,
                )
            )
            self._told[run.born] = report.batch
            self._unweighed.append((run, report))

    def _weigh(self) -> None:
        """Batches whose stages have been looked at tell what records cost."""
        while self._unweighed:
            run, report = self._unweighed.popleft()
            fragment, counts = run.fragment, report.counts
            if counts is None or fragment.query is None:
                continue
            query = run.context.deployment.query(fragment.query)
            entered = {
                key: report.sources.get(key[1], 0) if rows is None else rows for key, rows in counts.entered.items()
            }
            flow = dataflow(run.context.deployment)
            gave = records_out(flow, query, fragment, counts.committed, report.operators, sum(entered.values()))
            took = records_in(flow, fragment, entered, gave)
            work = self.stages.work(run.name, report.batch)
            self._events.append(
                BatchWeighed(
                    fragment.id,
                    fragment.query,
                    run.born,
                    fragment.operators,
                    tuple(took[name] for name in fragment.operators),
                    tuple(gave[name] for name in fragment.operators),
                    None if work is None else work.ms,
                    0 if work is None else work.tasks,
                )
            )

    def _now(self, run: FragmentRun) -> FragmentNow:
        """How a run stands; one that has ended stands still."""
        if run.born in self._ended:
            return self._ended[run.born]
        ended = run.over and (run.query is None or not run.query.isActive)
        found = FragmentNow(
            run.fragment.id,
            run.epoch,
            run.generation,
            run.drained(),
            run.taken_total(),
            run.taken_sources(),
            {
                one.operator: one.writer.last.rows_total
                for one in run.writer.outputs
                if one.operator and one.writer.last
            },
            {one.stream: one.writer.last.rows_total for one in run.writer.outputs if one.sink and one.writer.last}
            | run.given(),
            {one.stream: one.writer.last.rows_total for one in run.writer.left_out if one.writer.last},
            _waiting(run),
            _ordering(run),
            run.has_begun(),
        )
        if ended:
            self._ended[run.born] = found
        return found


def _waiting(run: FragmentRun) -> tuple[Waiting, ...]:
    channels = tuple(
        Waiting(entry.stream, entry.operator or "", records, segments) for entry, (segments, records) in run.backlogs()
    )
    return (*channels, *(Waiting(one.stream, one.operator or "", rows) for one, rows in run.waiting_at_sources()))


def _ordering(run: FragmentRun) -> dict[str, dict[str, float]]:
    """How ordering is doing, by the stream that it puts in order; one that has not run yet tells nothing."""
    fragment = run.fragment
    query = run.context.deployment.query(fragment.query) if fragment.query else None
    streams = [f"{fragment.query}.{name}" for name in ordering_in(query, fragment)]
    found = {stream: measured_order(run.context.folders.late(stream)) for stream in streams}
    return {stream: held for stream, held in found.items() if held}
