"""Small batches without end: time, disk and memory stay where they were."""

from __future__ import annotations

import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source

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


@pytest.mark.spark
@pytest.mark.long
def test_twenty_thousand_small_batches_leave_time_disk_and_memory_flat(spark: Any, tmp_path: Path) -> None:
    run = Run(two_sites(tmp_path), tmp_path / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()
    memory = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    durations: list[float] = []
    seen = 0
    marks: dict[str, list[float]] = {"disk": [], "heap": []}
    deadline = time.monotonic() + HOURS_MAX * 3600
    while seen < BATCHES and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(2)
        progress = run.progress
        if progress is None or "q.few" not in progress.history:
            continue
        numbers = progress.fragment("q.few")
        recent = [duration for _, duration in list(progress.history["q.few"])]
        fresh = min(numbers["batches"] - seen, len(recent))
        durations.extend(recent[len(recent) - fresh :])
        seen = numbers["batches"]
        spark._jvm.System.gc()
        marks["disk"].append(size_of(tmp_path / ".weft"))
        marks["heap"].append(memory.getHeapMemoryUsage().getUsed())
    run.stop()
    thread.join(120)
    assert len(durations) >= BATCHES * 0.95, f"only {len(durations)} batches were seen"
    warm = durations[SPAN // 2 :]
    first, last = statistics.median(warm[:SPAN]), statistics.median(warm[-SPAN:])
    share = max(3, len(marks["disk"]) // 20)
    disk = [statistics.median(marks["disk"][share : 2 * share]), statistics.median(marks["disk"][-share:])]
    heap = [statistics.median(marks["heap"][share : 2 * share]), statistics.median(marks["heap"][-share:])]
    print(f"batches {seen}: ms {first} -> {last}, state bytes {disk}, heap bytes {heap}")
    assert last <= 1.1 * first
    assert disk[1] <= 1.1 * disk[0]
    assert heap[1] <= 1.1 * heap[0]
