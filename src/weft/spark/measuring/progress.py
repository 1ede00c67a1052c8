"""What does Spark itself report? Batches of a query, and what their stages took."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from weft.spark.channels.folders import spark_name
from weft.spark.fragments.counts import BatchCounts
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.wiring import Entry

BATCHES_MAX = 4096
LOOK_EVERY_S = 4.0
STAGES_BACK = 64  # a stage this far back that is not known never ran, or is gone
_DESCRIBED = re.compile(r"(.+)\nid = .*\nrunId = .*\nbatch = (\d+)")


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One batch: how long, how many records from where, and what was counted on the way."""

    batch: int
    duration_ms: int
    sources: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    counts: BatchCounts | None = None
    state_bytes: int = 0


def new_reports(run: FragmentRun, after: int) -> Iterator[BatchReport]:
    """The reports of a fragment's batches later than `after`, oldest first."""
    if run.query is None:
        return
    fresh = []
    for raw in reversed(run.query._jsq.recentProgress()):
        if raw.batchId() <= after:
            break  # asking for a number is cheap, taking a whole report is not
        fresh.append(raw)
    for raw in reversed(fresh):
        progress = json.loads(raw.json())
        if progress["durationMs"].get("addBatch") is not None and progress["batchId"] != run.writer.rehearsed:
            yield _report(run, progress)


def _report(run: FragmentRun, progress: dict[str, Any]) -> BatchReport:
    by_name = {spark_name(source): source for source in run.fragment.sources}
    rows = {entry.stream: held["numInputRows"] for entry, held in _of_files(run, progress["sources"])}
    topics = [held for held in progress["sources"] if held["description"].startswith("KafkaV2[")]
    rows |= {entry.stream: held["numInputRows"] for entry, held in zip(run.topic_entries(), topics, strict=False)}
    bad: dict[str, int] = {}
    operators: dict[str, int] = {}
    for name, values in progress.get("observedMetrics", {}).items():
        kind, _, rest = name.partition("_")
        if kind == "bad" and rest in by_name:
            bad[by_name[rest]] = int(values["bad"])
        elif kind == "out":
            operators[rest] = int(values["rows"])
    batch = progress["batchId"]
    duration = progress["durationMs"].get("triggerExecution", 0) - round(run.writer.waited_ms.get(batch, 0.0))
    counts = next((one for one in tuple(run.writer.batches) if one.batch == batch), None)  # more may come meanwhile
    state_bytes = sum(int(held.get("memoryUsedBytes") or 0) for held in progress.get("stateOperators", []))
    return BatchReport(batch, duration, rows, bad, operators, counts, state_bytes)


def _of_files(run: FragmentRun, reported: list[dict[str, Any]]) -> Iterator[tuple[Entry, dict[str, Any]]]:
    """Reports of users' files, told apart by their folder and, within one, by their order."""
    waiting = list(run.file_entries())
    for held in reported:
        description = held["description"]
        if not description.startswith("FileStreamSource[") or description.endswith("/ticks]"):
            continue
        for entry, folder in waiting:
            if description == f"FileStreamSource[file:{folder}]":
                waiting.remove((entry, folder))
                yield entry, held
                break


@dataclass(frozen=True, slots=True)
class Work:
    """What the stages of a batch were: the time of all tasks together, and how many there were."""

    ms: float = 0.0
    tasks: int = 0


class StageTimes:
    """What finished stages took: CPU seconds by the pool (the site) they ran in, task time by query and batch.

    There is one for a session: all sites on it look at the same stages, and Spark is asked for each once.
    """

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext._jsc.sc()
        self._store = context.statusStore()
        self._scheduler = context.dagScheduler()
        self._seconds: dict[str, float] = {}
        self._work: dict[tuple[str, int], Work] = {}
        self._open: list[int] = []
        self._lock = threading.Lock()
        self.looks = 0
        self._due_s = 0.0
        self._next_stage = self._following()

    def _following(self) -> int:
        """The number that the next stage will get; Spark keeps only the latest ones, so counting them does not tell."""
        return int(str(self._scheduler.nextStageId()))

    def look(self, now: bool = False) -> None:
        """Add what has finished since the last look, where that was long ago, or `now`."""
        with self._lock:
            if now or time.monotonic() >= self._due_s:
                self._due_s = time.monotonic() + LOOK_EVERY_S
                self.looks += 1
                self._look()

    def _look(self) -> None:
        following = self._following()
        self._open.extend(range(self._next_stage, following))
        self._next_stage = following
        self._open = [number for number in self._open if not self._take(number)]

    def _take(self, number: int) -> bool:
        stage = self._stage(number)
        if stage is None:
            return number < self._next_stage - STAGES_BACK  # else it may still come
        if stage.status().toString() in ("ACTIVE", "PENDING"):
            return False
        pool = str(stage.schedulingPool())
        self._seconds[pool] = self._seconds.get(pool, 0.0) + stage.executorCpuTime() / 1e9
        batch = _batch_of(stage.description())
        if batch is not None:
            held = self._work.get(batch, Work())
            self._work[batch] = Work(held.ms + stage.executorRunTime(), held.tasks + stage.numTasks())
            while len(self._work) > BATCHES_MAX:
                del self._work[next(iter(self._work))]
        return True

    def _stage(self, number: int) -> Any:
        try:
            return self._store.lastStageAttempt(number)
        except Py4JJavaError:
            return None

    def seconds(self, pool: str) -> float:
        """CPU seconds that a site's tasks have taken so far."""
        return self._seconds.get(pool, 0.0)

    def work(self, query: str, batch: int) -> Work | None:
        """What the tasks of a batch took together, told once; None where no stage of it is known."""
        with self._lock:
            return self._work.pop((query, batch), None)


def _batch_of(description: Any) -> tuple[str, int] | None:
    """The query and batch that Spark names in a stage's description."""
    found = _DESCRIBED.match(description.get()) if description.isDefined() else None
    return (found[1], int(found[2])) if found else None
