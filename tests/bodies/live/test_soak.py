"""Small batches without end: time, disk and memory stay where they were, and what must grow grows evenly.

Batches are counted at each site. Disk is counted in parts: everything in the state's folder by its name, the sink's
files, and the sink's log of them. Only the last two grow for good, by as much for every file of results.
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

from weft.bodies.live.measurements import BYTES_MAX
from weft.bodies.live.run import Options, Run
from weft.model import Column, Constant, Deployment, Link, Operator, Query, Sink, Site, Source

FRAGMENTS = {"a": "q.some", "b": "q.few"}  # the one of each site, with a channel between them
BATCHES = int(os.environ.get("WEFT_SOAK_BATCHES", "10000"))  # at each site
MARKS = 5  # in the first and in the last twentieth of them
JOBS = 5
HOURS_MAX = 4.0
GROWS = ("sink", "sink's log")
# What is full at some size and stays so, in bytes: a part that is below that may still grow.
FULL = {"measurements.jsonl": 2 * BYTES_MAX, "logs": 3 * 4_000_000 + 200_000, "rates.json": 1_000_000}
FLAT = 1.1


def two_sites(folder: Path) -> Deployment:
    columns = (Column("ts", "TIMESTAMP"), Column("n", "BIGINT"), Column("k", "STRING"))
    source = Source("made", "a", "rate", columns, arrivals=Constant(50.0), event_time="ts")
    operators = (
        Operator("some", ("made",), sql="SELECT * FROM made WHERE n % 3 = 0", site="a"),
        Operator("few", ("some",), sql="SELECT k, n FROM some WHERE n % 1000 = 0", site="b"),
    )
    query = Query("q", operators, (Sink("few", "parquet", "out"),))
    return Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b"),), folder=str(folder))


def size_of(path: Path) -> int:
    """Bytes of a file, or below a folder."""
    if path.is_file():
        return path.stat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # deleted meanwhile, as it should be
                continue
    return total


def disk_of(folder: Path) -> dict[str, int]:
    """Bytes of every part that a run has on disk, by its name."""
    parts: dict[str, int] = {}
    for path in sorted((folder / ".weft").iterdir()):
        name = path.name.split(".jsonl")[0] + ".jsonl" if ".jsonl" in path.name else path.name
        try:
            parts[name] = parts.get(name, 0) + size_of(path)
        except FileNotFoundError:
            continue
    return {**parts, "sink": size_of(folder / "out"), "sink's log": size_of(folder / ".out.weft")}


@dataclass
class Marks:
    """What is read off now and then: bytes of each part on disk, of the JVM's live heap, and of this process; what the
    last batches of each site took, in milliseconds and in times of the small job."""

    spark: Any
    batches: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)  # files in the sink
    disk: list[dict[str, int]] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)

    def take(self, folder: Path, seen: int, last: dict[str, list[float]]) -> None:
        jobs = []
        for _ in range(JOBS):
            begun = time.monotonic()
            self.spark.range(0, 20, 1, 1).write.mode("overwrite").parquet(str(folder / "job"))
            jobs.append(1000 * (time.monotonic() - begun))
        jvm = self.spark._jvm
        jvm.System.gc()
        bean = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.batches.append(seen)
        self.results.append(len(list((folder / "out").glob("part-*"))))
        self.disk.append(disk_of(folder))
        now = {"heap": bean.getHeapMemoryUsage().getUsed(), "process": pages * os.sysconf("SC_PAGE_SIZE")}
        now |= {f"jobs a batch at {site}": statistics.median(ms) / statistics.median(jobs) for site, ms in last.items()}
        for name, value in now.items():
            self.figures.setdefault(name, []).append(value)

    def told(self) -> str:
        disk = sum(self.disk[-1].values())
        figures = ", ".join(f"{name} {held[-1]:,.4g}" for name, held in self.figures.items())
        return f"{self.batches[-1]} batches a site: {figures}, disk {disk:,} bytes"

    def grown(self) -> list[str]:
        """What has grown that must not, or faster than it did."""
        wrong = []
        for name, held in self.figures.items():
            first, last = ends(held, MARKS)
            if last > FLAT * first:
                wrong.append(f"{name} grew from {first:,.4g} to {last:,.4g}")
        for name in self.disk[-1]:
            held = [float(one.get(name, 0)) for one in self.disk]
            first, last = ends(held, MARKS)
            if name in GROWS:
                half = len(held) // 2
                early, late = self._per_result(held, slice(0, half)), self._per_result(held, slice(half, None))
                if late > FLAT * early:
                    wrong.append(f"{name} grew by {early:,.4g} bytes a result, then by {late:,.4g}")
            elif last > max(FLAT * first, FULL.get(name, 0)):
                wrong.append(f"{name} grew from {first:,.0f} to {last:,.0f} bytes")
        return wrong

    def _per_result(self, held: list[float], part: slice) -> float:
        results, values = self.results[part], held[part]
        return (values[-1] - values[0]) / max(1, results[-1] - results[0])


def ends(values: list[float], share: int) -> tuple[float, float]:
    """The median at the start, past the warm-up, and at the end."""
    return statistics.median(values[share // 2 : share // 2 + share]), statistics.median(values[-share:])


def soaked(spark: Any, folder: Path, batches: int) -> Marks:
    """Run until every site has had so many batches, and read marks off on the way."""
    run = Run(two_sites(folder), folder / ".weft", Options())
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()
    durations: dict[str, list[float]] = {site: [] for site in FRAGMENTS}
    seen = dict.fromkeys(FRAGMENTS, 0)
    marks = Marks(spark)
    every = max(2, batches // 20 // MARKS)
    deadline = time.monotonic() + HOURS_MAX * 3600
    while min(seen.values()) < batches and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.5)
        progress = run.progress
        if progress is None:
            continue
        for site, name in FRAGMENTS.items():
            total = progress.fragment(name)["batches"]
            recent = [duration for _, duration in list(progress.history.get(name, ()))]
            durations[site].extend(recent[max(0, len(recent) - (total - seen[site])) :])
            seen[site] = total
        least = min(seen.values())
        if least >= every * (len(marks.batches) + 1):
            marks.take(folder, least, {site: held[-every:] for site, held in durations.items()})
            print(marks.told(), flush=True)
    run.stop()
    thread.join(120)
    assert min(seen.values()) >= batches, f"only {seen} batches were seen"
    return marks


@pytest.mark.spark
@pytest.mark.long
def test_ten_thousand_small_batches_a_site_leave_time_disk_and_memory_flat(spark: Any, tmp_path: Path) -> None:
    marks = soaked(spark, tmp_path, BATCHES)
    for name in marks.disk[-1]:
        first, last = ends([float(one.get(name, 0)) for one in marks.disk], MARKS)
        print(f"{name}: {first:,.0f} -> {last:,.0f} bytes")
    assert marks.grown() == []


def test_growth_is_noticed_part_by_part() -> None:
    marks = Marks(None, batches=[500 * k for k in range(1, 21)], results=list(range(20)))
    marks.figures = {"heap": [100.0] * 20, "jobs a batch at a": [1.0] * 20}
    marks.disk = [{"streams": 1000, "measurements.jsonl": 10 * k, "sink": 5 * k, "sink's log": k} for k in range(20)]
    assert marks.grown() == []
    for k, one in enumerate(marks.disk):
        one["streams"], one["sink"] = 1000 + 100 * k, 5 * k * k
    marks.figures["heap"][-MARKS:] = [120.0] * MARKS
    assert [text.split(" grew")[0] for text in marks.grown()] == ["heap", "streams", "sink"]
