"""How far is each fragment? Spark's own progress reports, looked at twice a second."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from weft.bodies.live.costs import OperatorCosts
from weft.bodies.live.measure import Meter
from weft.model import Deployment
from weft.plan.fragments import Fragment
from weft.spark.engine import SparkEngine
from weft.spark.progress import BatchReport, new_reports

HISTORY_MAX = 1000
STAGES_EVERY_S = 4.0
WAITING_MAX = 1024
NOTHING_YET: dict[str, Any] = {"batches": 0, "batch_ms": None, "busy_ms": 0}


class Progress:
    """Gathers batch reports of all fragments for the meter."""

    def __init__(self, meter: Meter, engine: SparkEngine) -> None:
        self.meter = meter
        self.engine = engine
        self._seen: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._fragments: dict[str, dict[str, Any]] = {}
        self._backlog_max: dict[str, int] = {}
        self._stages_due_s = 0.0
        self.costs = OperatorCosts()
        self._waiting: deque[tuple[Fragment, str, BatchReport]] = deque(maxlen=WAITING_MAX)
        self.history: dict[str, deque[tuple[int, float]]] = {}

    def look(self, finally_: bool = False) -> None:
        """Take in what has been reported since the last look."""
        for name, run in list(self.engine.runs.items()):
            if self._names.get(name) != run.name:
                self._names[name] = run.name
                self.costs.started(name)
            for source, rows in run.taken_sources().items():
                self.meter.timed[name, source] = rows
            for report in new_reports(run, self._seen.get(name, -1)):
                self._seen[name] = report.batch
                self._take(name, report)
                self._waiting.append((run.fragment, run.name, report))
            site = run.fragment.site  # the plan may have changed since this look began
            self._backlog_max[site] = max(self._backlog_max.get(site, 0), self.backlog(name))
        if time.monotonic() >= self._stages_due_s or finally_:
            self._stages_due_s = time.monotonic() + STAGES_EVERY_S
            self.engine.stages.look()
            self._weigh()

    def _weigh(self) -> None:
        """Batches whose stages have been looked at tell what records cost."""
        while self._waiting:
            fragment, name, report = self._waiting.popleft()
            if report.counts is None or fragment.query is None:
                continue
            query = self.engine.plans.deployment.query(fragment.query)
            work = self.engine.stages.work(name, report.batch)
            self.costs.add(query, fragment, report.counts, report.operators, report.sources, work)
        self.costs.weigh()

    def operators(self) -> dict[str, dict[str, Any]]:
        """Records, selectivity and cost per record of every operator, by `query.operator`."""
        return {f"{query}.{name}": values for (query, name), values in self.costs.operators().items()}

    def channels(self) -> dict[str, dict[str, int]]:
        """Segments and records that wait in every channel, by stream and reader."""
        waiting = {}
        for name, run in list(self.engine.runs.items()):
            for entry, (segments, records) in run.backlogs():
                waiting[f"{entry.stream} -> {name}"] = {"segments": segments, "records": records}
        return waiting

    def _take(self, name: str, report: BatchReport) -> None:
        numbers = self._fragments.setdefault(name, dict(NOTHING_YET))
        numbers["batches"] += 1
        numbers["batch_ms"] = report.duration_ms
        numbers["busy_ms"] += report.duration_ms
        recent = self.history.setdefault(name, deque(maxlen=HISTORY_MAX))
        recent.append((sum(report.sources.values()), report.duration_ms))
        for source, rows in report.sources.items():
            key = (name, source)
            self.meter.offered[key] = self.meter.offered.get(key, 0) + rows
        for source, bad in report.bad.items():
            key = (name, source)
            self.meter.bad[key] = self.meter.bad.get(key, 0) + bad
        for operator, rows in report.operators.items():
            counts = numbers.setdefault("operators_out", {})
            counts[operator] = counts.get(operator, 0) + rows

    def backlog(self, fragment: str) -> int:
        """Records that wait in the channels a fragment reads."""
        run = self.engine.runs.get(fragment)
        return 0 if run is None else run.backlog()

    def backlog_of_query(self, query: str) -> int:
        """Records that wait anywhere in a query."""
        return sum(self.backlog(name) for name, held in self.engine.fragments.items() if held.query == query)

    def fragment(self, name: str) -> dict[str, Any]:
        """A fragment's numbers, the records of its operators included."""
        numbers = dict(self._fragments.get(name, NOTHING_YET))
        counted = numbers.pop("operators_out", {})
        run = self.engine.runs.get(name)
        if run is not None:
            numbers["records_in"] = run.taken_total() + sum(
                rows for (fragment, _), rows in self.meter.offered.items() if fragment == name
            )
            numbers["records_out"] = run.records(counted, numbers["records_in"])
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
