"""Is a promise kept that breaks without relief? Examples in which one source triples in mid-run, with and without.

    python -m benchmarks.relief [--short] [--json]

Each example is laid down with its data and changed: what the source gives is decoded at its site first, the site has a
cap, its own moves are left out. `walking` is meters with two sources that triple one after the other. Both sides run to
the end, by turns. Told are the seconds whose records gave results later than promised, also the periods of five seconds
in which results came that were late (where a slow site holds its results back, those of others are in time
meanwhile), latencies, what was moved, and whether all results are those of batch Spark. A quiet run is one in which
nothing triples: nothing should move.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import weft
from benchmarks._bench import ROOT, Found, Setting, go, line, spark, spread, turns
from weft.bodies.live.run import Options, Run
from weft.model import Deployment, Promise, dataflow
from weft.spark.storage.disk import read_sealed

SIDES: dict[str, dict[str, Any]] = {"without": {}, "with": {"relief": {"period_s": 5, "horizon_s": 60}}}
DECODING = '''"""What records take where they come in, as on a device of its own: time, and none of this machine's."""

import time


def decoded(frame, each_ms):
    def work(parts):
        for part in parts:
            time.sleep(each_ms * len(part) / 1000)
            yield part

    return frame.mapInPandas(work, frame.schema)
'''
PIECES = 60  # into which the births behind a commit are cut
FRACTION = re.compile(r"-?\d+\.\d+(?:E-?\d+)?")


class Hot(NamedTuple):
    """A source that triples, where it comes in, which operator reads it, and what its decoding is called."""

    source: str
    site: str
    reader: str
    decoded: str = "decoded"


class Case(NamedTuple):
    """An example, the query whose promise is looked at, and which of its sources triple, one after another."""

    example: str
    query: str
    hot: tuple[Hot, ...]


CASES = {
    "meters": Case("meters", "north", (Hot("readings_1", "gw-1", "meters_1"),)),
    "network": Case("network", "lookups", (Hot("dns", "resolver", "asked"),)),
    "walking": Case(
        "meters",
        "north",
        (Hot("readings_1", "gw-1", "meters_1", "decoded_1"), Hot("readings_2", "gw-2", "meters_2", "decoded_2")),
    ),
}


def laid_down(folder: Path, name: str, setting: Setting, control: dict[str, Any], hot: bool = True) -> Deployment:
    """An example with its data in a folder of its own, its sources to be tripled there in turn, or not."""
    case, left = CASES[name], shutil.ignore_patterns("out", "data", ".weft", ".out*")
    shutil.copytree(ROOT / "examples" / case.example, folder, ignore=left)
    subprocess.run([sys.executable, str(folder / "generate.py")], check=True, stdout=subprocess.DEVNULL)
    (folder / "decoding.py").write_text(DECODING)
    plain = yaml.safe_load((folder / "deployment.yaml").read_text(encoding="utf-8"))
    rates = {}
    for source in plain["sources"]:
        records = _cut(folder / source["path"], setting["records"])
        mine = hot and source["name"] in [one.source for one in case.hot]
        lasts_s = setting["calm_s"] + setting["hot_s"] if hot else setting["quiet_s"]
        more_s = setting["hot_s"] / len(case.hot) * (setting["times"] - 1) if mine else 0.0
        rates[source["name"]] = records / (lasts_s + more_s)
        source["arrivals"] = {"kind": "constant", "rate_per_s": rates[source["name"]]}
    query = next(one for one in plain["queries"] if one["name"] == case.query)
    if setting["promise_s"]:
        query["promise"] = {"latency_ms": 1000 * setting["promise_s"], "quantile": 0.95}
    for one in case.hot:
        weak = next(site for site in plain["sites"] if site["name"] == one.site)
        weak |= {"capacity": setting["capacity"], "cap": True}
        reader = next(operator for operator in query["operators"] if operator["name"] == one.reader)
        reader["from"] = one.decoded
        reader["sql"] = re.sub(rf"\b{one.source}\b", one.decoded, reader["sql"])
        each_ms = 1000.0 * setting["used"] * setting["capacity"] / rates[one.source]
        query["operators"].insert(
            0,
            {"name": one.decoded, "from": one.source, "call": "decoding:decoded", "args": {"each_ms": each_ms},
             "cost_ms": each_ms, "selectivity": 1},
        )  # fmt: skip
    plain["control"] = {"place": {"policy": "near"}} | control
    plain["scenario"] = _rises(case, setting) if hot else []
    plain["spark"] = {"master": "local[8]"}  # those that sleep hold a place
    file = folder / "deployment.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return weft.load(file)


def _rises(case: Case, setting: Setting) -> list[dict[str, Any]]:
    """One source after another gives more, for as long each; those before it give what they gave."""
    each_s = setting["hot_s"] / len(case.hot)
    starts_s = [setting["calm_s"] + at * each_s for at in range(len(case.hot))]
    before = [{}, *({one.source: 1.0} for one in case.hot)]
    return [
        {"at_s": at_s, "rate": {one.source: setting["times"], **less}}
        for one, at_s, less in zip(case.hot, starts_s, before, strict=False)
    ]


def _cut(path: Path, records: int) -> int:
    """How many records a file has, of which the first so many are left, if asked for."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if records:
        lines = lines[: records + 1]
        path.write_text("".join(lines), encoding="utf-8")
    return len(lines) - 1


def measured(deployment: Deployment, query: str) -> Found:
    """What one run to the end came to."""
    state = Path(deployment.folder) / ".weft"
    run = Run(deployment, state, Options(until_done=True))
    summary = run.go()
    promise = deployment.query(query).promise
    began_ms = read_sealed(state / "flows.json")["starts"][0][1]
    seconds = broken_seconds(run.meter.births(deployment.query(query)), began_ms, promise)
    lines = (state / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    observed = [json.loads(one)["observed"] for one in lines]
    periods = [(one["at_s"], one["period_s"], one["queries"][query]["promise_kept"]) for one in observed]
    broken = broken_periods(periods)
    told = summary["queries"][query]
    return {
        "broken_s": len(seconds),
        "broken_at_s": seconds,
        "broken_periods_s": round(sum(period_s for _, period_s in broken), 1),
        "latency_ms": told["latency_ms"],
        "after_start_ms": told["after_start_ms"],
        "promise_kept": told["promise_kept"],
        "flowed_s": summary["flowed_s"],
        "changes": [
            {key: one[key] for key in ("at_s", "by", "state", "wish", "reason", "pause_ms")}
            for one in summary["changes"]
        ],
    }  # fmt: skip


def broken_seconds(births: Iterable[tuple[float, float, float, int]], began_ms: float, promise: Promise) -> list[int]:
    """The seconds of flow whose records gave results later than promised, given births and commits of results.

    Results of one commit are taken as born evenly between the first and the last record behind them.
    """
    promised_ms = promise.latency_ms or math.inf
    rows: Counter[int] = Counter()
    late: Counter[int] = Counter()
    for first_ms, last_ms, came_ms, count in births:
        for at in range(PIECES):
            born_ms = first_ms + (last_ms - first_ms) * (at + 0.5) / PIECES
            second = int((born_ms - began_ms) / 1000)
            rows[second] += count
            late[second] += count * (came_ms - born_ms > promised_ms)
    return sorted(second for second in rows if late[second] > (1.0 - promise.quantile) * rows[second])


def broken_periods(periods: list[tuple[float, float, bool | None]]) -> list[tuple[float, float]]:
    """When the promise was broken: moments and lengths of periods, given whether what came in each was in time.

    Where nothing came, what comes next was under way: it says how long that took.
    """
    found, late = [], False
    for at_s, period_s, kept in reversed(periods):
        late = late if kept is None else not kept
        if late:
            found.append((at_s, period_s))
    return found[::-1]


def moves_of(run: Found) -> int:
    """How often relief moved something."""
    return sum(one["by"] == "relief" and one["state"] == "done" for one in run["changes"])


def delivered(deployment: Deployment, under: str = ".") -> dict[str, Counter[str]]:
    """The rows of every sink, by its path; fractions to nine digits, for sums depend on their order.

    Not to fewer: what is read has four, and sums of halves fell either way.
    """
    import pyarrow.dataset as ds

    found = {}
    for query in deployment.queries:
        for sink in query.sinks:
            files = sorted(Path(deployment.folder, under, str(sink.path)).glob(f"*.{sink.format}"))
            if sink.format == "csv":
                rows = [text for path in files for text in path.read_text(encoding="utf-8").splitlines()]
            else:
                held = ds.dataset(list(map(str, files))).to_table().to_pylist() if files else []
                rows = [json.dumps(row, default=str, sort_keys=True) for row in held]
            found[str(sink.path)] = Counter(FRACTION.sub(lambda part: f"{float(part[0]):.9g}", row) for row in rows)
    return found


def batch(session: Any, deployment: Deployment) -> dict[str, Counter[str]]:
    """The rows that batch Spark gives for every sink."""
    from weft.spark.fragments import operators
    from weft.spark.sources import streams as sources

    flow, frames = dataflow(deployment), {}
    for source in deployment.sources:
        path = sources.path_of(deployment, str(source.path))
        read = session.read.schema(sources.with_bad(source, "csv")).options(**sources.reader_options(source))
        frames[source.name] = sources.without_bad(read.csv(path), source)
    for node in flow.nodes:
        inputs = {name: frames[stream] for name, stream in zip(node.operator.from_, node.inputs, strict=True)}
        whole = node.operator.call == "decoding:decoded"  # it takes time, and changes nothing
        frames[node.stream] = frames[node.inputs[0]] if whole else operators.apply(
            node.operator, inputs, deployment.folder
        )  # fmt: skip
    for outlet in flow.outlets:
        out = Path(deployment.folder, "batch", str(outlet.sink.path))
        frames[outlet.stream].write.mode("overwrite").format(outlet.sink.format).save(str(out))
    return delivered(deployment, "batch")


def measure(setting: Setting) -> Found:
    """Every example with relief and without, then the quiet ones."""
    found: Found = {"runs": {}, "less": {}, "moves": {}, "equal": {}, "quiet": {}}
    with tempfile.TemporaryDirectory(prefix="weft-relief-") as place:
        for name in setting["examples"]:
            runs: dict[str, list[Found]] = {side: [] for side in SIDES}
            laid = []
            for number, side, _ in turns(list(SIDES), setting["rounds"], 0):
                laid.append(laid_down(Path(place, f"{name}-{number}-{side}"), name, setting, SIDES[side]))
                runs[side].append(measured(laid[-1], CASES[name].query))
                print(f"{name} {side}: {_told(runs[side][-1])}", file=sys.stderr)
            found["runs"][name] = runs
            found["less"][name] = less(runs)
            found["moves"][name] = spread([float(moves_of(one)) for one in runs["with"]], 0)
            with spark(Path(place, "logs")) as session:
                found["equal"][name] = [delivered(one) == batch(session, one) for one in laid]
        for name in setting["quiet"]:
            calm = laid_down(Path(place, f"{name}-quiet"), name, setting, SIDES["with"], hot=False)
            found["quiet"][name] = one = measured(calm, CASES[name].query)
            one["moves"] = moves_of(one)
            print(f"{name} quiet: {_told(one)}", file=sys.stderr)
    return found


def less(runs: dict[str, list[Found]]) -> float | None:
    """By which share of its seconds the promise was broken less with relief; None where it was kept without, too."""
    broken = {side: sum(one["broken_s"] for one in held) for side, held in runs.items()}
    return round(1.0 - broken["with"] / broken["without"], 3) if broken["without"] else None


def _told(run: Found) -> str:
    latency = run["latency_ms"] or {}
    quantiles = ", ".join(f"{key} {latency[key] / 1000:.1f} s" for key in ("p50", "p95", "max") if key in latency)
    made = "; ".join(f"{one['at_s']:.0f} s {one['state']}: {one['reason']}" for one in run["changes"]) or "none"
    periods = f"in periods of {run['broken_periods_s']:.0f} s"
    return f"broken for {run['broken_s']} of {run['flowed_s']:.0f} s ({periods}); {quantiles}; changes: {made}"


def show(setting: Setting, found: Found) -> None:
    """Both sides of every example, and what came of the quiet runs."""
    for name, runs in found["runs"].items():
        for side, held in runs.items():
            for one in held:
                print(f"{name} {side} relief: {_told(one)}")
        print(f"{name}: broken less by {found['less'][name]} ({setting.aim(f'less.{name}')})")
        print(line(f"{name}, moves by relief", found["moves"][name]))
        equal = found["equal"][name]
        print(f"{name}: {sum(equal)} of {len(equal)} runs gave the results of batch Spark")
    for name, one in found["quiet"].items():
        print(f"{name}, quiet for {one['flowed_s']:.0f} s: {_told(one)}")


if __name__ == "__main__":
    go("relief", __doc__, measure, show)
