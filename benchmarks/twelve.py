"""What do twelve queries over one source cost? In Weft, as twelve streams by hand, and as one query by hand.

    python -m benchmarks.twelve [--short] [--json]

CPU seconds of all processes per million records, over whole runs (the start of Spark included), each in a process of
its own, by turns; and their memory. `same`: filters of their own, equal windows and keys, as people write them; by hand
also as one query with shared scan and state, which writes each batch to twelve folders (`one`), or to one for all
(`one_sink`: nobody has results of his own). `source`: windows of their own, nothing is alike but the source. `prefix`:
ten queries of which eight have a filter in common, against two. All sides must give the same rows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._bench import ROOT, Found, Setting, go, line, ratios, spread, turns
from benchmarks._twelve_turn import SAME, WINDOW
from benchmarks._twelve_turn import measure as run_turn
from benchmarks.late import make_data

Part = dict[str, tuple[str, list[tuple[str, str]], list[str]]]
"""By name: who runs them, the queries, and their windows."""


def _same(queries: int) -> Part:
    return {side: (side, SAME[:queries], [WINDOW] * queries) for side in ("weft", "streams", "one", "one_sink")}


def _source(queries: int) -> Part:
    windows = [f"{10 + at} minutes" for at in range(queries)]
    return {side: (side, SAME[:queries], windows) for side in ("weft", "streams")}


def _prefix(queries: int) -> Part:
    asked = [("kwh >= 1 AND meter <> 'm7'" if at < 8 else f"kwh = {at - 5}", "sum(kwh)") for at in range(10)]
    windows = [f"{10 + 5 * at} minutes" for at in range(10)]
    return {"ten": ("weft", asked, windows), "two": ("weft", asked[:2], windows[:2])}


PARTS = {"same": _same, "source": _source, "prefix": _prefix}
RATIOS = {
    "same": [("weft", "one"), ("weft", "one_sink"), ("weft", "streams"), ("streams", "one")],
    "source": [("weft", "streams")],
    "prefix": [("ten", "two")],
}


def turn(work: Path, data: Path, who: tuple[str, list[tuple[str, str]], list[str]], own: bool) -> dict[str, Any]:
    """What one run cost, in a process of its own or in this one."""
    side, asked, windows = who
    folder = Path(tempfile.mkdtemp(prefix=f"{side}-", dir=work))
    (folder / "in").symlink_to(data)
    wanted = {
        "folder": str(folder), "side": side, "asked": asked, "windows": windows, "result": str(folder / "found.json")
    }  # fmt: skip
    if not own:
        return run_turn(wanted)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    subprocess.run(
        [sys.executable, "-m", "benchmarks._twelve_turn", json.dumps(wanted)],
        check=True, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    return found


def measure(setting: Setting) -> Found:
    """All parts, turn by turn."""
    work = Path(tempfile.mkdtemp(prefix="weft-twelve-"))
    try:
        make_data(work / "data", setting["records"], setting["files"], late=False)
        return {name: _measured(setting, work, name) for name in setting["parts"]}
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _measured(setting: Setting, work: Path, name: str) -> Found:
    millions = setting["records"] / 1e6
    part = {side: held for side, held in PARTS[name](setting["queries"]).items() if side in setting["sides"]}
    told: dict[str, list[dict[str, Any]]] = {side: [] for side in part}
    for _, side, counts in turns(list(part), setting["rounds"], 0):
        one = turn(work, work / "data", part[side], setting["own_process"])
        print(f"{name}, {side}: {one['cpu_s'] / millions:.1f} CPU s/M, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        _same_rows(one["rows"], next((held[0]["rows"] for held in told.values() if held and held[0]["rows"]), None))
        if counts:
            told[side].append(one)
    cost = {side: [one["cpu_s"] / millions for one in held] for side, held in told.items()}
    return {
        "cpu_s": {side: spread(held, 1) for side, held in cost.items()},
        "start_cpu_s": {side: spread([one["start_cpu_s"] for one in held], 1) for side, held in told.items()},
        "memory_mb": {side: spread([one["memory_mb"] for one in held], 0) for side, held in told.items()},
        "wall_s": {side: spread([one["wall_s"] for one in held], 1) for side, held in told.items()},
        "ratio": {
            f"{one} over {other}": ratios(cost[one], cost[other])
            for one, other in RATIOS[name]
            if {one, other} <= set(cost)
        },
    }


def _same_rows(rows: list[list[str]], others: list[list[str]] | None) -> None:
    """Every query gives results, and who lets the last windows open has no row that the other has not."""
    assert all(rows), "every query gives results"
    for own, other in zip(rows, others or [], strict=False):
        few, many = sorted((own, other), key=len)
        assert set(few) <= set(many), "all sides give the same rows"
        assert len(set(many)) == len(many), "each row once"


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, held in found.items():
        for what, one in held["ratio"].items():
            print(line(f"{name}, CPU of {what}", one), setting.aim(f"{name}.ratio.{what}.median"))
        for side in held["cpu_s"]:
            print(line(f"{name}, {side}", held["cpu_s"][side], "CPU s/M"))
            print(line("  of which Spark's start", held["start_cpu_s"][side], "CPU s"))
            print(line("  memory", held["memory_mb"][side], "MB"))


if __name__ == "__main__":
    go("twelve", __doc__, measure, show)
