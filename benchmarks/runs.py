"""What does a run cost that users begin with? Small batches at a small rate, and a whole short run over files.

    python -m benchmarks.runs [--old PATH] [--short] [--json]

Each is `weft run` in a process of its own. Small batches: three stateless operators in a chain, over three sites and on
one, latencies as the run tells them, its first batches among them. Whole: csv files through a filter, from the command
to its end; seconds, CPU seconds of all its processes, and the most memory that they had at a time, what they share
counted once. With --old another checkout takes turns with this one, and ratios are taken within a round.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._bench import ROOT, Found, Setting, asked_setting, finish, line, parser_of, ratios, spread, turns
from benchmarks.processes import memory_bytes

LOOK_S = 2.0  # each look has the kernel walk through all memory
FILES = 8
SMALL = """
weft: 1
sites: [{name: a}, {name: b}, {name: c}]
links: [{from: a, to: b}, {from: b, to: c}]
sources:
  - {name: s, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: q
    operators:
      - {name: valid, from: [s], site: a, sql: "SELECT ts, n FROM s WHERE n % 10 > 0"}
      - {name: more, from: [valid], site: B, sql: "SELECT ts, n, n * 2 m FROM valid"}
      - {name: some, from: [more], site: C, sql: "SELECT n, m FROM more WHERE m % 3 = 0"}
    sink: {from: some, format: parquet, path: out, site: C}
"""
WHOLE = """
weft: 1
sites: [{name: a}]
sources: [{name: s, site: a, format: csv, path: data, schema: "n BIGINT, k STRING, v DOUBLE"}]
queries:
  - name: q
    operators: [{name: some, from: [s], sql: "SELECT n, v FROM s WHERE n % 2 = 0"}]
    sink: {from: some, format: parquet, path: out}
"""
PARTS = {
    "three": (SMALL.replace("B,", "b,").replace("C,", "c,").replace("site: C}", "site: c}"), ("p50_ms", "p95_ms")),
    "one": (SMALL.replace("B,", "a,").replace("C,", "a,").replace("site: C}", "site: a}"), ("p50_ms", "p95_ms")),
    "whole": (WHOLE, ("seconds", "cpu_s")),
}
UNITS = {"p50_ms": "ms", "p95_ms": "ms", "seconds": "s", "cpu_s": "s", "memory_mib": "MiB"}


def make_data(folder: Path, records: int) -> None:
    """Equal csv files."""
    folder.mkdir()
    for file in range(FILES):
        with open(folder / f"{file}.csv", "w", encoding="utf-8") as out:
            for n in range(file * records // FILES, (file + 1) * records // FILES):
                out.write(f"{n},meter-{n % 100},{n % 1000 / 100}\n")


def run(part: str, checkout: Path, data: Path, setting: Setting) -> dict[str, float]:
    """One run of a checkout, started as a user would."""
    text, figures = PARTS[part]
    with tempfile.TemporaryDirectory(prefix="weft-runs-") as folder:
        (Path(folder) / "weft.yaml").write_text(text.replace("RATE", str(setting["rate_per_s"])))
        (Path(folder) / "data").symlink_to(data)
        words = [sys.executable, "-m", "weft", "run", f"{folder}/weft.yaml", "--json"]
        words += ["--until-done"] if part == "whole" else ["--seconds", str(setting["seconds"])]
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        before, begun_s, most = cpu_s(), time.monotonic(), 0
        with open(Path(folder) / "told", "w+b") as told, open(Path(folder) / "log", "w+b") as log:
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=told, stderr=log)
            while process.poll() is None:
                most = max(most, memory_bytes({process.pid}))
                time.sleep(LOOK_S)
            taken_s = time.monotonic() - begun_s
            if process.returncode:
                raise RuntimeError((Path(folder) / "log").read_text()[-2000:])
            told.seek(0)
            latency = json.loads(told.read())["queries"]["q"]["latency_ms"]
        found = {"seconds": taken_s, "cpu_s": cpu_s() - before, "memory_mib": most / 2**20}
        found |= {f"{name}_ms": value for name, value in (latency or {}).items() if value is not None}
        return {name: found[name] for name in (*figures, "memory_mib")}


def cpu_s() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(setting: Setting, old: Path | None = None) -> Found:
    """All figures of this checkout, and their ratios to another's."""
    sides = {"new": ROOT, **({"old": old.resolve()} if old is not None else {})}
    with tempfile.TemporaryDirectory(prefix="weft-runs-data-") as work:
        make_data(Path(work) / "data", setting["records"])
        found: Found = {}
        for part in setting["parts"]:
            held: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
            for _, side, _ in turns(list(sides), setting["rounds"], 0):
                held[side].append(run(part, sides[side], Path(work) / "data", setting))
            found[part] = told(held["new"])
            if old is not None:
                found[f"{part} before"] = told(held["old"])
                found[f"{part} over before"] = {
                    name: ratios([one[name] for one in held["new"]], [one[name] for one in held["old"]])
                    for name in held["new"][0]
                }
        return found


def told(rounds: list[dict[str, float]]) -> dict[str, Any]:
    """Each figure of all rounds."""
    return {name: spread([one[name] for one in rounds], 1) for name in rounds[0]}


def show(setting: Setting, found: Found) -> None:
    """The numbers for people."""
    for part, held in found.items():
        for name, values in held.items():
            unit = "" if part.endswith("over before") else UNITS[name]
            words = f"{part}, {name.rpartition('_')[0] or name}"
            print(line(words, values, unit), setting.aim(f"{part}.{name}.median"))


def main() -> None:
    """Measure as the file says, print, and keep it."""
    parser = parser_of(__doc__)
    parser.add_argument("--old", type=Path, help="a checkout of another version, which takes turns with this one")
    asked = parser.parse_args()
    finish(asked_setting("runs", asked), asked, lambda setting: measure(setting, asked.old), show)


if __name__ == "__main__":
    main()
