"""How far is each fragment? Spark's own progress reports, looked at twice a second."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from weft.bodies.live.costs import OperatorCosts, Taken
from weft.bodies.live.counts import FILE, Counted, as_plain, taken_up
from weft.bodies.live.measure import Meter
from weft.bodies.live.running import Running
from weft.bodies.live.state import State
from weft.bodies.live.uptime import serves
from weft.model import Deployment
from weft.plan.changing.fragments import Fragment
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.measuring.progress import BatchReport, new_reports
from weft.spec import only_filters

HISTORY_MAX = 1000
STAGES_EVERY_S = 4.0
WAITING_MAX = 1024


class Progress:
    """Gathers batch reports of all fragments for the meter, and keeps in the state what only they tell."""

    def __init__(self, meter: Meter, engine: Running, state: State | None = None) -> None:
        self.meter = meter
        self.engine = engine
        self.state = state
        self.costs = OperatorCosts()
        self.history: dict[str, deque[tuple[int, float]]] = {}
        self._runs: dict[str, FragmentRun] = {}
        self._batch_ms: dict[str, int] = {}
        self._backlog_max: dict[str, int] = {}
        self._state_kb: dict[str, float] = {}
        self._stages_due_s = 0.0
        self._waiting: deque[tuple[Fragment, str, BatchReport]] = deque(maxlen=WAITING_MAX)
        self._kept: Any = None
        if state is not None:
            self._take_up(state)

    def _take_up(self, state: State) -> None:
        try:
            self.meter.counts = taken_up(state.noted(FILE))
        except ValueError:  # garbled: then nothing is known of earlier runs
            return
        for name, (records_in, records_out) in self.meter.counts.operators.items():
            query, _, operator = name.rpartition(".")
            self.costs.taken[query, operator] = Taken(records_in, records_out)

    def look(self, finally_: bool = False) -> None:
        """Take in what has been reported since the last look."""
        for name, run in list(self._runs.items()):
            self._take_reports(name, run)  # one that another has replaced may have reported more since
        runs = dict(self.engine.runs)
        self._follow()
        for name, run in runs.items():
            if self._runs.get(name) is not run:
                self.costs.started(name)
                self._take_reports(name, run)
            self._take_totals(name, run)
            site = run.fragment.site  # the plan may have changed since this look began
            self._backlog_max[site] = max(self._backlog_max.get(site, 0), self.backlog(name))
        self._runs = runs
        if time.monotonic() >= self._stages_due_s or finally_:
            self._stages_due_s = time.monotonic() + STAGES_EVERY_S
            self.engine.stages.look()
            self._weigh()
        self._keep()

    def _take_totals(self, name: str, run: FragmentRun) -> None:
        """What offsets and manifests tell, those of earlier runs included."""
        for source, rows in run.taken_sources().items():
            self.meter.timed[name, source] = rows
        for output in run.writer.outputs:
            if output.sink is not None and output.writer.last is not None:
                self.meter.holds(output.stream, output.writer.last.rows_total)
        for sink, given in run.given().items():
            self.meter.holds(sink, given)
        for output in run.writer.left_out:
            if output.writer.last is not None:
                self.meter.left_out(output.stream, output.writer.last.rows_total)

    def _take_reports(self, name: str, run: FragmentRun) -> None:
        counts = self.meter.counts
        for report in new_reports(run, counts.last(name, run.generation)):
            counts.take(name, run.generation, report)
            self._batch_ms[name] = report.duration_ms
            if run.fragment.stateful is not None and run.fragment.query is not None:
                self._state_kb[f"{run.fragment.query}.{run.fragment.stateful}"] = report.state_bytes / 1024
            recent = self.history.setdefault(name, deque(maxlen=HISTORY_MAX))
            recent.append((sum(report.sources.values()), report.duration_ms))
            self._waiting.append((run.fragment, run.name, report))

    def _follow(self) -> None:
        of_files = {one.name for one in self.meter.deployment.sources if not one.facts.timed}
        fragments = list(self.engine.fragments.values())
        self.meter.counts.follow({one.id: of_files.intersection(one.sources) for one in fragments})

    def _keep(self) -> None:
        if self.state is None:
            return
        for (query, operator), taken in self.costs.taken.items():
            self.meter.counts.operators[f"{query}.{operator}"] = (taken.records_in, taken.records_out)
        plain = as_plain(self.meter.counts)
        if plain != self._kept:
            self.state.note(FILE, plain)
            self._kept = plain

    def _weigh(self) -> None:
        """Batches whose stages have been looked at tell what records cost."""
        while self._waiting:
            fragment, name, report = self._waiting.popleft()
            if report.counts is None or fragment.query is None:
                continue
            query = self.engine.deployment.query(fragment.query)
            work = self.engine.stages.work(name, report.batch)
            self.costs.add(query, fragment, report.counts, report.operators, report.sources, work)
        self.costs.weigh()

    def operators(self) -> dict[str, dict[str, Any]]:
        """Records of every operator (`query.operator`), late and filtered ones too, its selectivity and its cost."""
        deployment = self.meter.deployment
        found = {}
        for (query, name), values in self.costs.operators().items():
            stream = f"{query}.{name}"
            late = self.meter.late_of(stream)
            filtered = None
            if any(one.name == query for one in deployment.queries):  # else it was removed since
                known = only_filters(deployment.query(query).operator(name))
                filtered = max(0, values["records_in"] - values["records_out"] - late) if known else None
            found[stream] = {**values, "late": late, "filtered": filtered}
        return found

    def channels(self) -> dict[str, dict[str, int]]:
        """Segments and records that wait in every channel, by stream and reader."""
        waiting = {}
        for name, run in list(self.engine.runs.items()):
            for entry, (segments, records) in run.backlogs():
                waiting[f"{entry.stream} -> {name}"] = {"segments": segments, "records": records}
        return waiting

    def waiting(self) -> dict[str, int]:
        """Records that wait in channels and at sources, by the operator (`query.operator`) that will take them."""
        found: dict[str, int] = {}
        for run in list(self.engine.runs.values()):
            for entry, records in run.waiting():
                if entry.operator is not None and run.fragment.query is not None:
                    stream = f"{run.fragment.query}.{entry.operator}"
                    found[stream] = found.get(stream, 0) + records
        return found

    def state_kb(self) -> dict[str, float]:
        """The size of their state as Spark last told it, by operator (`query.operator`)."""
        return dict(self._state_kb)

    def used_s(self, site: str) -> float:
        """CPU seconds that a site's tasks have taken so far."""
        return self.engine.stages.seconds(site)

    def backlog(self, fragment: str) -> int:
        """Records that wait in the channels and at the sources a fragment reads."""
        run = self.engine.runs.get(fragment)
        return 0 if run is None else run.backlog()

    def backlog_of_query(self, query: str) -> int:
        """Records that wait anywhere on the way to a query's results, at its sources too."""
        deployment = self.meter.deployment
        return sum(self.backlog(name) for name, one in self.engine.fragments.items() if serves(deployment, one, query))

    def fragment(self, name: str) -> dict[str, Any]:
        """A fragment's numbers, the records of its operators included; all but `batch_ms` are of all runs."""
        counted = self.meter.counts.fragments.get(name, Counted())
        numbers: dict[str, Any] = {
            "batches": counted.batches,
            "batch_ms": self._batch_ms.get(name),
            "busy_ms": counted.busy_ms,
        }
        run = self.engine.runs.get(name)
        if run is not None:
            numbers["records_in"] = run.taken_total() + self.meter.counts.records_into(name)
            numbers["records_out"] = run.records(counted.operators, numbers["records_in"])
        return numbers

    def sites(self, deployment: Deployment, flowing_s: float | None) -> dict[str, dict[str, Any]]:
        """Utilisation (CPU time of tasks over elapsed time and capacity), also of the quota; the longest backlog."""
        elapsed_s = max(1e-9, time.monotonic() - flowing_s) if flowing_s else 0.0
        found = {}
        for site in deployment.sites:
            used = self.engine.stages.seconds(site.name) / (elapsed_s * site.capacity) if elapsed_s else 0.0
            found[site.name] = {
                "utilisation": round(used, 4),
                "of_quota": round(used / site.quota, 4) if site.quota else None,
                "queue_max": self._backlog_max.get(site.name, 0),
            }
        return found
