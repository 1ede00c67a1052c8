"""Small batches without end: time, disk and memory stay where they were."""

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
HOURS_MAX = 4.0


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
    """Bytes below a folder."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except FileNotFoundError:  # deleted meanwhile, as it should be
                continue
    return total


@dataclass
class Marks:
    """What is read off now and then: bytes below the state's folder, of the JVM's live heap, and of this process."""

    heap_bean: Any
    gc: Any
    disk: list[float] = field(default_factory=list)
    heap: list[float] = field(default_factory=list)
    process: list[float] = field(default_factory=list)

    def take(self, folder: Path) -> None:
        self.gc()
        self.heap.append(self.heap_bean.getHeapMemoryUsage().getUsed())
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
    jvm = spark._jvm
    marks = Marks(jvm.java.lang.management.ManagementFactory.getMemoryMXBean(), jvm.System.gc)
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
        if len(durations) >= SPAN / 5 * (len(marks.disk) + 1):
            marks.take(tmp_path / ".weft")
            print(f"batches {len(durations)}, {durations[-1]:.0f} ms, heap {marks.heap[-1] / 1e6:.0f} MB", flush=True)
    run.stop()
    thread.join(120)
    assert len(durations) >= BATCHES, f"only {len(durations)} batches were seen"
    found = {"batch time (ms)": ends(durations, SPAN)}
    for name in ("disk", "heap", "process"):
        found[f"{name} (bytes)"] = ends(getattr(marks, name), 5)
    told = ", ".join(f"{name} {first:,.0f} -> {last:,.0f}" for name, (first, last) in found.items())
    print(f"batches {len(durations)}: {told}")
    for name, (first, last) in found.items():
        assert last <= 1.1 * first, f"{name} grew from {first:,.0f} to {last:,.0f}"
