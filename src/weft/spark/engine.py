"""What runs the fragments of all sites in this process: one Spark session, and the plans they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from weft.plan.fragments import Fragment
from weft.plan.graph import sink_name
from weft.plan.times import Times
from weft.spark import sources
from weft.spark.fragments import Commit, FragmentRun
from weft.spark.log import fence
from weft.spark.progress import CpuTime
from weft.spark.sinks import aside_of
from weft.spark.wiring import Plans


# Every channel that a fragment reads starts a Python process, and Spark waits ten seconds for each: started all at
# once, those of a wide deployment would not answer in time.
STARTS_AT_ONCE = 2
START_S_MAX = 60.0
_starts = threading.BoundedSemaphore(STARTS_AT_ONCE)


class SparkEngine:
    """Fences, prepares and drains fragments on a shared session."""

    def __init__(
        self,
        session: SparkSession,
        plans: Plans,
        times: Times,
        fragments: tuple[Fragment, ...],
        told: Callable[[Commit], None],
    ) -> None:
        self.session = session
        self.plans = plans
        self.times = times
        self.fragments = {fragment.id: fragment for fragment in fragments}
        self.told = told
        self.totals: dict[str, int] = {}
        self.until_done = False
        self.runs: dict[str, FragmentRun] = {}
        self.cpu = CpuTime(session)

    def fence(self, fragment: str, epoch: int) -> None:
        """From now on no writer with a lower epoch commits anything for the fragment."""
        for folder in self._written_by(self.fragments[fragment]):
            fence(folder, epoch)

    def _written_by(self, fragment: Fragment) -> list[Path]:
        folders = [self.plans.folders.stream(stream).folder for stream in fragment.outputs]
        if fragment.query is not None:
            query = self.plans.deployment.query(fragment.query)
            for sink in query.sinks:
                if sink_name(query, sink) in fragment.sinks and sink.path is not None:
                    folders.append(aside_of(Path(sources.path_of(self.plans.deployment, sink.path))))
        return folders

    def prepare(self, fragment: str, epoch: int) -> FragmentRun:
        """A fragment ready to start; Fenced where a later epoch has taken over."""
        run = _DrainingRun(self, self.fragments[fragment], epoch)
        self.runs[fragment] = run
        return run


class _DrainingRun(FragmentRun):
    """A run that, where the whole is to end by itself, finishes its sources when they are read."""

    def __init__(self, engine: SparkEngine, fragment: Fragment, epoch: int) -> None:
        super().__init__(engine.session, engine.plans, engine.times, fragment, epoch, engine.told)
        self.engine = engine
        self.trouble: str | None = None

    def start(self) -> None:
        """Start, and where all is to end by itself, watch for the end of the sources."""
        with _starts:
            super().start()
            self._wait_for_sources()
        if self.engine.until_done and self.fragment.sources:
            threading.Thread(target=self._drain, name=f"drain-{self.fragment.id}", daemon=True).start()

    def _wait_for_sources(self) -> None:
        assert self.query is not None
        latest = time.monotonic() + START_S_MAX
        while self.query.isActive and self.query.status["message"] == "Initializing sources":
            if time.monotonic() > latest:
                return
            time.sleep(0.02)

    def _drain(self) -> None:
        try:
            self.read_all(self.engine.totals)
        except Exception as error:
            # A query that was stopped or has failed ends the wait; `failure` tells why.
            if self.query is not None and self.query.isActive:
                self.trouble = str(error)

    def failure(self) -> tuple[str, bool] | None:
        """Also where the end could not be written."""
        return (self.trouble, False) if self.trouble else super().failure()
