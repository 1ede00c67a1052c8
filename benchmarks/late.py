"""What does it cost to tell late records? One windowed query with the telling on and off, in one session, by turns.

    python -m benchmarks.late [--records 240000] [--rounds 3] [--json]

CPU seconds of this process and its children (Spark's among them) over a whole run, telling on over telling off; once
with no record behind the watermark, once with a tenth of them. Medians over rounds, the first round left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Operator, Query, Sink, Site, Source, Watermark
from weft.spark.fragments.late import LateRecords

FILES = 12
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COLUMNS = (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE"))
HOURLY = "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM records GROUP BY 1, 2"


def make_data(folder: Path, records: int, late: bool) -> None:
    """An hour of records in every file; of the later files every tenth is of the first hour, if any is late."""
    folder.mkdir(parents=True)
    each = records // FILES
    for at in range(FILES):
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


def measure(records: int, rounds: int) -> dict[str, Any]:
    """Both ratios, turn by turn."""
    from weft.spark.session.starting import start_session

    work = Path(tempfile.mkdtemp(prefix="weft-late-"))
    session = start_session(work / "logs")
    found: dict[str, Any] = {"records": records, "rounds": rounds}
    try:
        for name, late in (("none_late", False), ("a_tenth_late", True)):
            make_data(work / name, records, late)
            spent: dict[bool, list[float]] = {True: [], False: []}
            told = 0
            for number in range(rounds + 1):
                for tells in (True, False) if number % 2 else (False, True):
                    cost_s, count = turn(work / name, work / f"{name}-{number}-{tells}", tells)
                    told = max(told, count)
                    if number:
                        spent[tells].append(round(cost_s, 2))
            ratio = statistics.median(spent[True]) / statistics.median(spent[False])
            found[name] = {"late": told, "on_s": spent[True], "off_s": spent[False], "ratio": round(ratio, 3)}
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=240_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.records, asked.rounds)
    if asked.json:
        print(json.dumps(found))
        return
    for name in ("none_late", "a_tenth_late"):
        one = found[name]
        print(f"{name.replace('_', ' ')}: {one['late']} late, CPU s on {one['on_s']}, off {one['off_s']}")
        print(f"  ratio {one['ratio']}")


if __name__ == "__main__":
    main()
