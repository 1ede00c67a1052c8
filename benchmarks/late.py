"""What does it cost to tell late records? One windowed query with the telling on and off, in one session, by turns.

    python -m benchmarks.late [--short] [--json]

CPU seconds of this process and its children (Spark's among them) over a whole run, telling on over telling off; once
with no record behind the watermark, once with a tenth of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from benchmarks._bench import Found, Setting, go, line, ratios, spark, spread, turns
from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Operator, Query, Sink, Site, Source, Watermark
from weft.spark.fragments.late import LateRecords

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COLUMNS = (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE"))
HOURLY = "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM records GROUP BY 1, 2"


def make_data(folder: Path, records: int, files: int, late: bool) -> None:
    """An hour of records in every file; of the later files every tenth is of the first hour, if any is late."""
    folder.mkdir(parents=True)
    each = records // files
    for at in range(files):
        lines = []
        for n in range(each):
            hour = 0 if late and at > 2 and n % 10 == 0 else at
            second = n * 3600 // each
            lines.append(f"2024-01-01 {hour:02d}:{second // 60:02d}:{second % 60:02d},m{n % 50},{n % 7}\n")
        path = folder / f"{at:02d}.csv"
        path.write_text("".join(lines))
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


def deployment(folder: Path) -> Deployment:
    """One source, one window, one sink."""
    source = Source("records", "a", "csv", COLUMNS, "in", {"maxFilesPerTrigger": "1"}, event_time="ts")
    hourly = Operator("hourly", ("records",), sql=HOURLY, watermarks=(Watermark("10 minutes"),))
    query = Query("q", (hourly,), (Sink("hourly", "parquet", "out"),))
    return Deployment((Site("a"),), (source,), (query,), folder=str(folder))


def cpu_s() -> float:
    """CPU seconds of this process and all that it started and that still runs, and of those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(map(int, fields[11:15])) / TICKS_PER_S
    own = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in own} - own
        if not more:
            return sum(used.get(pid, 0.0) for pid in own)
        own |= more


def turn(data: Path, folder: Path, tells: bool) -> tuple[float, int]:
    """CPU seconds of a run, and the late records it told."""
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    as_is = LateRecords.dropped
    if not tells:
        LateRecords.dropped = lambda self: None  # type: ignore[method-assign]
    try:
        before_s = cpu_s()
        told = Run(deployment(folder), folder / ".weft", Options(until_done=True)).go()
        return cpu_s() - before_s, int(told["queries"]["q"]["late"])
    finally:
        LateRecords.dropped = as_is  # type: ignore[method-assign]


def measure(setting: Setting) -> Found:
    """Both ratios, turn by turn."""
    work = Path(tempfile.mkdtemp(prefix="weft-late-"))
    found: Found = {}
    try:
        with spark(work / "logs"):
            for name, late in (("none_late", False), ("a_tenth_late", True)):
                make_data(work / name, setting["records"], setting["files"], late)
                spent: dict[str, list[float]] = {"on": [], "off": []}
                told = 0
                for number, how, counts in turns(["off", "on"], setting["rounds"], setting["warm_rounds"]):
                    cost_s, count = turn(work / name, work / f"{name}-{number}-{how}", how == "on")
                    told = max(told, count)
                    if counts:
                        spent[how].append(cost_s)
                found[name] = {"late": told, "ratio": ratios(spent["on"], spent["off"])}
                found[name] |= {f"{how}_cpu_s": spread(held, 2) for how, held in spent.items()}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return found


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, held in found.items():
        print(line(f"{name.replace('_', ' ')}, on over off", held["ratio"]), setting.aim(f"{name}.ratio.median"))
        print(line(f"{name.replace('_', ' ')}, CPU with it", held["on_cpu_s"], "s"), f"{held['late']} late")


if __name__ == "__main__":
    go("late", __doc__, measure, show)
