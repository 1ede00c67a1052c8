"""What does safety on disk cost? Another checkout of Weft against this one, by turns in one run.

    python -m benchmarks.durability [--old PATH] [--folder DIR] [--short] [--json]

Each turn is a process of its own, with PYTHONPATH at one of the two. Bulk: files of records through a filter and a
projection, on one site and over two, after a run that warms up. Hop: a small file dropped until its records lie in the
sink, over two sites. Pause: of an operator that moves, without state and with it. Each turn gives one value (a median
where it has several); what is printed is the median over turns, their range, and the median over rounds of the ratio
within a round, whose two turns are close in time. On a machine that other work keeps busy (`load`) rounds differ by
half or more; the CPU seconds of the bulk runs, Spark and Python together, by a tenth.

Without --old this checkout is compared with itself, syncing every commit (`store.fsync`) against not syncing. Where a
version tells what syncing a batch took (`sync_ms`), that is shown. It works in a folder on a disk: in memory there is
nothing to wait for, so such a folder is told of.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks._bench import ROOT, Found, Setting, asked_setting, finish, parser_of

IN_MEMORY = ("tmpfs", "ramfs")
FILES = 12
PARTS = ("bulk", "hop", "pause")
UNITS = {"bulk": "records/s", "cpu": "s", "hop": "ms", "pause": "ms"}
BETTER = {"bulk": "more", "cpu": "less", "hop": "less", "pause": "less"}
TURN_S_MAX = 1800


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that are compared: a checkout, and whether commits are synced where that can be chosen."""

    name: str
    checkout: Path
    fsync: bool | None = None

    @property
    def src(self) -> Path:
        """What PYTHONPATH is set to."""
        return self.checkout / "src"

    def version(self) -> str:
        """The commit that is checked out, where that is known."""
        command = ["git", "-C", str(self.checkout), "describe", "--always", "--dirty"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        return told.stdout.strip() or "unknown"


def sides(old: Path | None) -> tuple[Side, Side] | None:
    """What is compared, the base first; None where there is nothing to compare with."""
    if old is not None:
        return Side("old", old.resolve()), Side("new", ROOT)
    from weft import model

    if not hasattr(model, "Store"):
        return None
    return Side("fsync off", ROOT, False), Side("fsync on", ROOT, True)


def file_system(folder: Path) -> str:
    """The kind of file system that a folder lies on."""
    found = ("", "unknown")
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return found[1]
    for line in lines:
        _, where, kind, *_ = line.split()
        if folder.resolve().is_relative_to(where) and len(where) >= len(found[0]):
            found = (where, kind)
    return found[1]


def work_folder(given: Path | None) -> Path:
    """A new folder to work in: where it is asked for, else the usual place, unless that is in memory."""
    if given is None and file_system(Path(tempfile.gettempdir())) in IN_MEMORY:
        given = ROOT
    return Path(tempfile.mkdtemp(prefix="weft-durability-", dir=given))


def make_data(folder: Path, records: int) -> None:
    """Equal csv files, as benchmarks.overhead has them."""
    folder.mkdir()
    first = datetime(2024, 1, 1, tzinfo=UTC)
    for file in range(FILES):
        with open(folder / f"{file:02d}.csv", "w", encoding="utf-8") as out:
            for n in range(file * records // FILES, (file + 1) * records // FILES):
                ts = (first + timedelta(milliseconds=n)).isoformat(timespec="milliseconds")
                out.write(f"{ts},meter-{n % 100},{n % 1000 / 100},{n}\n")


def turn(side: Side, work: Path, data: Path, setting: Setting) -> dict[str, Any]:
    """Let one side measure itself in a process of its own; what earlier turns wrote is on the disk by then."""
    work.mkdir()
    wanted = {
        "work": str(work), "data": str(data), "src": str(side.src), "fsync": side.fsync,
        "parts": setting["parts"], "drops": setting["drops"], "moves": setting["moves"],
        "result": str(work / "result.json"),
    }  # fmt: skip
    os.sync()
    if side.checkout == ROOT and not setting["own_process"]:
        from benchmarks._durability_turn import measure as measured

        return measured(wanted)
    command = [sys.executable, "-m", "benchmarks._durability_turn", json.dumps(wanted)]
    environment = {**os.environ, "PYTHONPATH": str(side.src)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=TURN_S_MAX,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{side.name} ({side.checkout}) failed:\n{done.stdout[-4000:]}")
    found: dict[str, Any] = json.loads((work / "result.json").read_text())
    shutil.rmtree(work, ignore_errors=True)
    return found


def measure(pair: tuple[Side, Side], folder: Path | None, setting: Setting) -> Found:
    """All rounds; whoever was first in one is second in the next."""
    begun_s = time.monotonic()
    work = work_folder(folder)
    kind = file_system(work)
    if kind in IN_MEMORY:
        print(f"{work} lies in memory ({kind}): syncing costs nothing there; give --folder", file=sys.stderr)
    turns: dict[str, list[dict[str, Any]]] = {side.name: [] for side in pair}
    try:
        make_data(work / "data", setting["records"])
        for number in range(setting["rounds"]):
            for side in pair if number % 2 == 0 else reversed(pair):
                print(f"round {number + 1} of {setting['rounds']}: {side.name}", file=sys.stderr, flush=True)
                room = work / f"{number}-{side.name.replace(' ', '-')}"
                turns[side.name].append(turn(side, room, work / "data", setting))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    base, other = (turns[side.name] for side in pair)
    return {
        "file_system": kind,
        "folder": str(work.parent),
        "rounds": setting["rounds"],
        "sides": {side.name: {"checkout": side.checkout.name, "version": side.version()} for side in pair},
        "measured": {name: compared(pair, base, other, name) for name in base[0]["values"]},
        "sync_ms": {name: _synced(held) for name, held in turns.items() if _synced(held)},
        "load": _short(statistics.median(one["load"] for held in turns.values() for one in held)),
        "took_s": round(time.monotonic() - begun_s),
    }


def compared(
    pair: tuple[Side, Side], base: list[dict[str, Any]], other: list[dict[str, Any]], name: str
) -> dict[str, Any]:
    """One thing measured: each side's median and range, and the ratio of the second to the first."""
    values = [[one["values"][name] for one in held] for held in (base, other)]
    ratios = [after / before for before, after in zip(*values, strict=True)]
    kind = name.partition(",")[0]
    return {
        "unit": UNITS[kind],
        "better": BETTER[kind],
        **{
            side.name: {
                "median": _short(statistics.median(held)),
                "range": [_short(min(held)), _short(max(held))],
                "rounds": [_short(value) for value in held],
            }
            for side, held in zip(pair, values, strict=True)
        },
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def _short(value: float) -> float:
    return round(value, 1) if value < 1000 else round(value)


def _synced(turns: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What syncing a batch took, by what was run, where the version tells it: medians over turns."""
    found: dict[str, dict[str, float]] = {}
    for name in turns[0]["sync_ms"]:
        told = [one["sync_ms"][name] for one in turns if one["sync_ms"].get(name)]
        keys = [key for key in ("per_batch_p50", "per_batch_p95") if told and all(key in one for one in told)]
        if keys:
            found[name] = {key: round(statistics.median(one[key] for one in told), 2) for key in keys}
    return found


def show(setting: Setting, found: Found) -> None:
    """The numbers for people."""
    del setting
    base, other = found["sides"]
    for name, side in found["sides"].items():
        print(f"{name:<10} {side['version']:<16} {side['checkout']}")
    where = f"on {found['file_system']} in {found['folder']}"
    print(f"{found['rounds']} rounds {where}, {found['took_s']} s in all, load {found['load']}")
    for name, one in found["measured"].items():
        shown = "  ".join(
            f"{side} {one[side]['median']:>9,} ({' '.join(f'{value:,}' for value in one[side]['rounds'])})"
            for side in (base, other)
        )
        print(f"{name:<16} {one['unit']:<9} {shown}  ratio {one['ratio']} ({one['better']} is better: {one['ratios']})")
    for name, held in found["sync_ms"].items():
        for what, told in held.items():
            print(f"{name}: syncing a batch, {what}: {', '.join(f'{key} {ms} ms' for key, ms in told.items())}")


def main(words: list[str] | None = None) -> int:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--old", type=Path, help="another checkout of Weft: a folder with src/weft")
    parser.add_argument("--folder", type=Path, help="where to work; on the disk that matters")
    asked = parser.parse_args(words)
    setting = asked_setting("durability", asked)
    if asked.old is not None and not (asked.old / "src" / "weft").is_dir():
        parser.error(f"{asked.old} holds no src/weft")
    if set(setting["parts"]) - set(PARTS):
        parser.error(f"parts are some of {', '.join(PARTS)}")
    pair = sides(asked.old)
    if pair is None:
        why = "there is no store.fsync in this version to turn off: give another checkout with --old"
        print(json.dumps({"skipped": why}) if asked.json else why)
        return 0
    finish(setting, asked, lambda chosen: measure(pair, asked.folder, chosen), show)
    return 0


if __name__ == "__main__":
    sys.exit(main())
