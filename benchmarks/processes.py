"""What do sites in processes of their own cost on Spark? Hops, moves with state, start and memory, beside one process.

    python -m benchmarks.processes [--short] [--json]

Each form (all sites in one process; processes over folders, mirrors, Kafka) runs the same two files, by turns. Hop:
one query's results at site a, and those of another at site b that reads its stream; the median time from the commit of
a batch of the one to the commit of what the other made of it. What is asked is a hop between warm processes: while
Java compiles what runs often (`warm_s`), nothing counts. Move: a windowed operator goes to and fro between the two
sites; its pause is from the last commit before to the first after. Start: five sites of one operator each, in
processes, from the command to the moment that all run; memory is what all processes have to themselves, and their
shares of the rest.
"""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks._bench import Found, Setting, go, line, ratios, spread, turns
from weft.spark.kafka.broker import Broker, NoBroker, down, up
from weft.spark.kafka.jars import NoJars
from weft.spark.storage.disk import Damaged, read_sealed

ONE = "one process"
START_S_MAX = 600.0
LOOK_S = 1.0
SITES = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
"""
HOP = """
sources:
  - {name: s, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: near
    operators: [{name: valid, from: [s], site: a, sql: "SELECT * FROM s WHERE n >= 0"}]
    sink: {from: valid, format: parquet, path: near, site: a}
  - name: far
    operators: [{name: small, from: [near.valid], site: b, sql: "SELECT n FROM near.valid WHERE n % 2 = 0"}]
    sink: {from: small, format: parquet, path: far, site: b}
"""
MOVE = """
sources:
  - {name: s, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: q
    operators:
      - {name: valid, from: [s], site: a, sql: "SELECT * FROM s WHERE n >= 0"}
      - {name: sums, from: [valid], watermark: 0 seconds,
         sql: "SELECT window(ts, '100 milliseconds') w, count(*) c FROM valid GROUP BY 1"}
    sink: {from: sums, format: parquet, path: out, site: b}
scenario: [MOVES]
"""


def text_of(body: str, form: str, broker: Broker | None, rate_per_s: float) -> str:
    """A deployment file."""
    reached = f", bootstrap: '{broker.bootstrap}'" if broker is not None and form == "kafka" else ""
    channels = "" if form == ONE else f"channels: {{kind: {form}{reached}}}\n"
    return SITES + body.replace("RATE", str(rate_per_s)) + channels


def begun(folder: Path, text: str, form: str, seconds: float) -> subprocess.Popen[bytes]:
    """A run, started as a user would; what it tells is in `told`, beside its file."""
    folder.mkdir(parents=True)
    (folder / "weft.yaml").write_text(text)
    words = ["run", str(folder / "weft.yaml"), "--seconds", str(seconds), "--json"]
    words += [] if form == ONE else ["--processes"]
    with open(folder / "told", "wb") as told, open(folder / "log", "wb") as log:
        return subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=told, stderr=log)


def ended(run: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    """The summary of a run, once it has ended."""
    if run.wait():
        raise RuntimeError((folder / "log").read_text()[-2000:])
    found: dict[str, Any] = json.loads((folder / "told").read_text())
    shutil.rmtree(folder)
    return found


def hop(folder: Path, form: str, broker: Broker | None, setting: Setting) -> float:
    """The median time from a commit at the one site to the commit of what the other made of it, once both are warm."""
    text = text_of(HOP, form, broker, setting["rate_per_s"])
    run = begun(folder, text, form, setting["warm_s"] + setting["seconds"])
    near: dict[float, float] = {}  # of each sink: when the newest record of a commit was born, and when that was
    far: dict[float, float] = {}
    seen: set[Path] = set()
    while run.poll() is None:
        for name, commits in (("near", near), ("far", far)):
            for path in set(folder.glob(f".{name}.weft/manifests/[0-9]*")) - seen:
                with suppress(OSError, Damaged):
                    told = read_sealed(path)
                    seen.add(path)
                    if told.get("birth_ms"):
                        commits[told["birth_ms"][1]] = told["committed_ms"]
        time.sleep(LOOK_S)
    ended(run, folder)
    warm_ms = min(near.values()) + setting["warm_s"] * 1000
    return statistics.median(at - near[born] for born, at in far.items() if born in near and near[born] >= warm_ms)


def measure(setting: Setting) -> Found:
    """All figures."""
    work = Path(tempfile.mkdtemp(prefix="weft-processes-"))
    broker = None
    try:
        with suppress(NoBroker, NoJars):
            broker = up(work / "kafka") if "kafka" in setting["forms"] else None
        forms = [form for form in setting["forms"] if form != "kafka" or broker is not None]
        hops: dict[str, list[float]] = {form: [] for form in forms}
        pauses: dict[str, list[float]] = {form: [] for form in forms}
        for number, form, _ in turns(forms, setting["rounds"], 0):
            folder = work / f"{form.split()[0]}-{number}"
            hops[form].append(hop(folder / "hop", form, broker, setting))
            pauses[form] += [pause(folder / "move", form, broker, setting)] if setting["moves"] else []
            words = f"{form}: a hop {hops[form][-1]:.0f} ms, pause of a move {[round(one) for one in pauses[form]]} ms"
            print(words, file=sys.stderr, flush=True)  # all of them take minutes
        others = [form for form in forms if form != ONE and ONE in forms]
        result: Found = {
            "hop_ms": {form: spread(hops[form], 1) for form in forms},
            "hop_ratio": {form: ratios(hops[form], hops[ONE]) for form in others},
        }
        if setting["moves"]:
            result["pause_ms"] = {form: spread(pauses[form], 0) for form in forms}
            result["pause_ratio"] = {form: ratios(pauses[form], pauses[ONE]) for form in others}
        return {**result, **(start(work / "start", setting) if setting["sites"] else {})}
    finally:
        if broker is not None:
            down(work / "kafka")
        shutil.rmtree(work, ignore_errors=True)


def pause(folder: Path, form: str, broker: Broker | None, setting: Setting) -> float:
    """The median pause of some moves to and fro."""
    first_s, each_s = setting["seconds"] / 3, setting["seconds"] * 2 / 3 / setting["moves"]
    moves = [
        f"{{at_s: {first_s + at * each_s:.2f}, move: q.sums, to: {'ab'[at % 2]}}}" for at in range(setting["moves"])
    ]
    text = text_of(MOVE.replace("MOVES", ", ".join(moves)), form, broker, setting["rate_per_s"])
    text = text.replace("{name: sums, from: [valid],", "{name: sums, from: [valid], site: b,")
    found = ended(begun(folder, text, form, setting["seconds"] + each_s), folder)
    held = [move["pause_ms"] for move in found["moves"] if move["pause_ms"] is not None]
    if not held:
        raise RuntimeError(f"no move of {len(moves)} was seen to its end: {found['moves']}")
    return statistics.median(held)


def start(folder: Path, setting: Setting) -> Found:
    """How long sites in processes take until all run, and the memory that they have then."""
    folder.mkdir()
    names = [f"s{at}" for at in range(setting["sites"])]
    sites = ", ".join(f"{{name: {name}}}" for name in names)
    links = ", ".join(f"{{from: {one}, to: {other}}}" for one, other in itertools.pairwise(names))
    steps, before = [], "s"
    for name in names:
        steps.append(f"      - {{name: o{name}, from: [{before}], site: {name}, sql: 'SELECT * FROM {before}'}}\n")
        before = f"o{name}"
    source = HOP[HOP.index("sources") : HOP.index("queries")].replace("site: a", f"site: {names[0]}")
    text = f"weft: 1\nsites: [{sites}]\nlinks: [{links}]\n{source.replace('RATE', str(setting['rate_per_s']))}"
    text += f"queries:\n  - name: q\n    operators:\n{''.join(steps)}"
    text += f"    sink: {{from: {before}, format: parquet, path: out}}\n"
    (folder / "weft.yaml").write_text(text)
    begun_s = time.monotonic()
    words = [sys.executable, "-m", "weft", "run", str(folder / "weft.yaml"), "--processes", "--seconds", "600"]
    desk = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while status(folder).get("phase") != "running":
            if desk.poll() is not None or time.monotonic() > begun_s + START_S_MAX:
                raise RuntimeError("the sites did not come up")
            time.sleep(0.1)
        taken_s = time.monotonic() - begun_s
        time.sleep(setting["seconds"] / 4)
        agents = [site["pid"] for site in status(folder)["sites"].values()]
        return {"start_s": round(taken_s, 1), "memory_gib": round(memory_bytes({desk.pid, *agents}) / 2**30, 2)}
    finally:
        desk.send_signal(signal.SIGINT)
        desk.wait()


def status(folder: Path) -> dict[str, Any]:
    """What a run tells of itself."""
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((folder / ".weft/weft.yaml/status.json").read_text())
        return found
    return {}


def memory_bytes(roots: set[int]) -> int:
    """The memory of some processes and all that descend from them, what they share counted once."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    own = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    total = 0
    for pid in own:
        with suppress(OSError):
            for text in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                total += int(text.split()[1]) * 1024 if text.startswith("Pss:") else 0
    return total


def show(setting: Setting, found: Found) -> None:
    """The numbers for people."""
    for name, words, unit in (("hop", "one hop", "ms"), ("pause", "a move's pause", "ms")):
        for form, held in found.get(f"{name}_ms", {}).items():
            print(line(f"{words}, {form}", held, unit))
        for form, held in found.get(f"{name}_ratio", {}).items():
            print(line(f"{words}, {form} over one process", held), setting.aim(f"{name}_ratio.{form}.median"))
    if "start_s" in found:
        print(f"{setting['sites']} sites: all ran after {found['start_s']} s", setting.aim("start_s"))
        print(f"{setting['sites']} sites: {found['memory_gib']} GiB", setting.aim("memory_gib"))


if __name__ == "__main__":
    go("processes", __doc__, measure, show)
