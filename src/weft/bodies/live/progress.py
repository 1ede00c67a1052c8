"""How far is each fragment? Spark's own progress reports, looked at twice a second."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from weft.bodies.live.measure import Meter
from weft.model import Deployment
from weft.spark.engine import SparkEngine
from weft.spark.progress import BatchReport, new_reports

HISTORY_MAX = 1000
CPU_EVERY_S = 4.0
NOTHING_YET: dict[str, Any] = {"batches": 0, "batch_ms": None, "busy_ms": 0}


class Progress:
    """Gathers batch reports of all fragments for the meter."""

    def __init__(self, meter: Meter, engine: SparkEngine) -> None:
        self.meter = meter
        self.engine = engine
        self._seen: dict[str, int] = {}
        self._fragments: dict[str, dict[str, Any]] = {}
        self._backlog_max: dict[str, int] = {}
        self._cpu_due = 0.0
        self.history: dict[str, deque[tuple[int, float]]] = {}

    def look(self, finally_: bool = False) -> None:
        """Take in what has been reported since the last look."""
        for name, run in list(self.engine.runs.items()):
            for source, rows in run.taken_sources().items():
                self.meter.timed[name, source] = rows
            for report in new_reports(run, self._seen.get(name, -1)):
                self._seen[name] = report.batch
                self._take(name, report)
            site = self.engine.fragments[name].site
            self._backlog_max[site] = max(self._backlog_max.get(site, 0), self.backlog(name))
        if time.monotonic() >= self._cpu_due or finally_:
            self._cpu_due = time.monotonic() + CPU_EVERY_S
            self.engine.cpu.look()

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
        """Utilisation (CPU time of a site's tasks over elapsed time and capacity) and the longest backlog."""
        elapsed_s = max(1e-9, time.monotonic() - flowing_s) if flowing_s else 0.0
        return {
            site.name: {
                "utilisation": round(self.engine.cpu.seconds(site.name) / (elapsed_s * site.capacity), 4)
                if elapsed_s
                else 0.0,
                "queue_max": self._backlog_max.get(site.name, 0),
            }
            for site in deployment.sites
        }
