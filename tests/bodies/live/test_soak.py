"""Small batches without end: time, disk and memory stay where they were.

The machine may be busier at the end than at the start, so the time of batches is taken over the time of a small job
that is always the same, done now and then beside them.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source

FRAGMENTS = ("q.some", "q.few")
# Of both sites together: 10,000 each, one after another through the channel between them.
BATCHES = int(os.environ.get("WEFT_SOAK_BATCHES", "20000"))
SPAN = BATCHES // 20  # the first and the last 1,000 of 20,000
MARKS = 5  # in each of them
JOBS = 5
HOURS_MAX = 4.0
MEASUREMENTS = "measurements.jsonl"


def two_sites(folder: Path) -> Deployment:
    columns = (Column("ts", "TIMESTAMP"), Column("n", "BIGINT"), Column("k", "STRING"))
    source = Source("made", "a", "rate", columns, arrivals=Constant(50.0), event_time="ts")
    operators = (
        Operator("some", ("made",), sql="SELECT * FROM made WHERE n % 3 = 0", site="a"),
        Operator("few", ("some",), sql="SELECT k, n FROM some WHERE n % 1000 = 0", site="b"),
    )
    query = Query("q", operators, (Sink("few", "parquet", "out"),))
    return Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b"),), folder=str(folder))


def size_of(folder: Path) -> int:
    """Bytes below a folder, but for the history of measurements, which is bounded by itself."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            if name.startswith(MEASUREMENTS):
                continue
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except FileNotFoundError:  # deleted meanwhile, as it should be
                continue
    return total


@dataclass
class Marks:
    """What is read off now and then: bytes below the state's folder, of the JVM's live heap, and of this process; what
    the last batches took, in milliseconds and in times of the small job."""

    spark: Any
    ms: list[float] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    heap: list[float] = field(default_factory=list)
    process: list[float] = field(default_factory=list)

    def take(self, folder: Path, last: list[float]) -> None:
        jobs = []
        for _ in range(JOBS):
            begun = time.monotonic()
            self.spark.range(0, 20, 1, 1).write.mode("overwrite").parquet(str(folder.parent / "job"))
            jobs.append(1000 * (time.monotonic() - begun))
        self.ms.append(statistics.median(last))
        self.time.append(statistics.median(last) / statistics.median(jobs))
        jvm = self.spark._jvm
        jvm.System.gc()
        bean = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        self.heap.append(bean.getHeapMemoryUsage().getUsed())
        self.disk.append(size_of(folder))
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.process.append(pages * os.sysconf("SC_PAGE_SIZE"))


def ends(values: list[float], share: int) -> tuple[float, float]:
    """The median at the start, past the warm-up, and at the end."""
    return statistics.median(values[share // 2 : share // 2 + share]), statistics.median(values[-share:])


@pytest.mark.spark
@pytest.mark.long
def test_twenty_thousand_small_batches_leave_time_disk_and_memory_flat(spark: Any, tmp_path: Path) -> None:
    run = Run(two_sites(tmp_path), tmp_path / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()
    durations: list[float] = []
    seen = dict.fromkeys(FRAGMENTS, 0)
    marks = Marks(spark)
    deadline = time.monotonic() + HOURS_MAX * 3600
    while len(durations) < BATCHES and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(2)
        progress = run.progress
        if progress is None:
            continue
        for name in FRAGMENTS:
            total = progress.fragment(name)["batches"]
            recent = [duration for _, duration in list(progress.history.get(name, ()))]
            durations.extend(recent[max(0, len(recent) - (total - seen[name])) :])
            seen[name] = total
        if len(durations) >= SPAN / MARKS * (len(marks.disk) + 1):
            marks.take(tmp_path / ".weft", durations[-SPAN // MARKS :])
            told = f"{marks.ms[-1]:.0f} ms, {marks.time[-1]:.2f} jobs, heap {marks.heap[-1] / 1e6:.0f} MB"
            print(f"batches {len(durations)}: {told}", flush=True)
    run.stop()
    thread.join(120)
    assert len(durations) >= BATCHES, f"only {len(durations)} batches were seen"
    found = {name: ends(getattr(marks, name), MARKS) for name in ("ms", "time", "disk", "heap", "process")}
    told = ", ".join(f"{name} {first:,.4g} -> {last:,.4g}" for name, (first, last) in found.items())
    print(f"batches {len(durations)}: {told}")
    del found["ms"]
    for name, (first, last) in found.items():
        assert last <= 1.1 * first, f"{name} grew from {first:,.4g} to {last:,.4g}"
