"""Makes a week of readings, runs the smart meter deployment on Spark, and tells what happened: `make demo`."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import generate
import pyarrow.dataset as ds

import weft
from weft.bodies.live.last_run import last_batches
from weft.bodies.live.state import state_folder
from weft.cli.output import print_table, say
from weft.model import Constant, Deployment

HERE = Path(__file__).resolve().parent
FILE = HERE / "deployment.yaml"
WEFT = Path(sys.executable).with_name("weft")


def main() -> int:
    """Data, run, story; the exit status is that of the run."""
    began_s = time.monotonic()
    say(f"data     {generate.fill(HERE / 'data')}")
    command = [str(WEFT), "run", str(FILE), "--until-done", "--fresh", "--json"]
    say(f"run      weft run {_short(FILE)} --until-done --fresh")
    # A run of a minute gains more from quick compiling than from code that would be faster in the long run.
    settings = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m", **os.environ}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=settings)
    if done.returncode:
        return done.returncode
    tell(json.loads(done.stdout))
    _next(time.monotonic() - began_s)
    return 0


def tell(summary: dict[str, Any]) -> None:
    """The story of a run, from its summary, its state and its results."""
    deployment = weft.load(FILE)
    _what_ran_where(summary)
    _moves(summary)
    _promises(deployment, summary)
    _results(deployment)
    _where(deployment)


def _what_ran_where(summary: dict[str, Any]) -> None:
    rows = []
    order = list(summary["sites"])
    for _, one in sorted(summary["fragments"].items(), key=lambda item: order.index(item[1]["site"])):
        out = [f"{name} {count:,}" for name, count in (one.get("records_out") or {}).items() if count is not None]
        rows.append((
            one["site"], one["query"] or "", ", ".join(one["operators"]), f"{one.get('records_in', 0):,}",
            ", ".join(out), f"{one['batches']}",
        ))  # fmt: skip
    say("")
    print_table("What ran where", ("site", "query", "operators", "records in", "records out", "batches"), rows)


def _moves(summary: dict[str, Any]) -> None:
    say("")
    say("What moved while records flowed")
    for one in summary["moves"]:
        name = f"{one['query']}.{one['operator']}"
        if "state" in one:
            say(f"  {name} was to move from {one['from']} to {one['to']}, but: {one['why'] or one['state']}")
            continue
        if one["pause_ms"] is None:
            say(f"  {name} moved from {one['from']} to {one['to']} at {one['at_s']:.0f} s, before its first result")
            continue
        spent = ", ".join(f"{what.replace('_', ' ')} {ms / 1000:.1f}" for what, ms in one["spent_ms"].items())
        say(f"  {name} moved with its open windows from {one['from']} to {one['to']} at {one['at_s']:.0f} s;")
        say(f"  its results paused for {one['pause_ms'] / 1000:.1f} s ({spent}), and none was lost or doubled.")


def _promises(deployment: Deployment, summary: dict[str, Any]) -> None:
    rows = []
    for query in deployment.queries:
        told = summary["queries"][query.name]
        latency = told["latency_ms"] or {}
        promise = query.promise
        promised = "-"
        if promise.latency_ms is not None:
            promised = f"p{promise.quantile * 100:.0f} within {promise.latency_ms / 1000:g} s"
        kept = {True: "kept", False: "broken", None: "-"}[told["promise_kept"]]
        rows.append((
            query.name, f"{told['records_in']:,}", f"{told['bad_records']}", f"{told['records_out']:,}",
            *(f"{latency[name] / 1000:.1f} s" if latency else "-" for name in ("p50", "p95")), promised, kept,
        ))  # fmt: skip
    say("")
    head = ("query", "records in", "broken lines", "results", "p50", "p95", "promise", "")
    print_table("Latency against the promise", head, rows)
    rates = [source.arrivals.rate_per_s for source in deployment.sources if isinstance(source.arrivals, Constant)]
    say(f"  {len(rates)} sources gave {sum(rates):,.0f} records/s together. A result's latency begins with the record")
    say(f"  that completed it. The run took {summary['wall_s']:.0f} s, the start of Spark included.")
    for query in deployment.queries:
        latency, slowest = summary["queries"][query.name]["latency_ms"], _slowest(summary, query.name)
        if latency and slowest is not None:
            name, batch_ms = slowest
            say(f"  {query.name}: p95 is {latency['p95'] / batch_ms:.1f} times a batch of its slowest fragment, {name}")
            say(f"  ({batch_ms / 1000:.2f} s, the median of the last ones after the start).")


def _slowest(summary: dict[str, Any], query: str) -> tuple[str, float] | None:
    """The fragment of a query whose batches take longest, by the median of its recent ones, and that median."""
    took = last_batches(state_folder(FILE, None))
    own = [(took[name], name) for name, one in summary["fragments"].items() if one["query"] == query and name in took]
    return (max(own)[1], max(own)[0]) if own else None


def _results(deployment: Deployment) -> None:
    out = Path(deployment.folder) / "out"
    say("")
    say("Some results")
    for day, district, kwh, mean in sorted(_csv(out / "district-north") + _csv(out / "district-south"))[:4]:
        say(f"  {day}  district {district}: {float(kwh):7.1f} kWh, {float(mean):.3f} on average per meter and hour")
    found = [row for gateway in range(1, 5) for row in _parquet(out / f"suspicious-{gateway}")]
    for row in sorted(found, key=lambda row: -float(row["kwh"]))[:3]:
        say(f"  suspicious: {row['meter']} in {row['neighbourhood']} used {row['kwh']:.1f} kWh in the hour from "
            f"{row['w']['start']:%Y-%m-%d %H:%M}, {row['times']} times the limit")  # fmt: skip
    meters = sum(len(_parquet(out / f"meters-{gateway}")) for gateway in range(1, 5))
    say(f"  in all {len(found)} suspicious hours among {meters:,} hourly averages per meter")


def _csv(folder: Path) -> list[list[str]]:
    return [row for path in sorted(folder.glob("*.csv")) for row in csv.reader(path.read_text().splitlines())]


def _parquet(folder: Path) -> list[dict[str, Any]]:
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    return ds.dataset(files).to_table().to_pylist() if files else []


def _where(deployment: Deployment) -> None:
    say("")
    say("Where they lie")
    for query in deployment.queries:
        for sink in query.sinks:
            if sink.path is not None:
                say(f"  {query.name:<6} {sink.from_:<15} {_short(Path(deployment.folder) / sink.path)} ({sink.format})")


def _next(wall_s: float) -> None:
    command, file = _short(WEFT), _short(FILE)
    say("")
    say("What to try next")
    say(f"  {command} plan {file}                    why each operator is where it is")
    say(f"  {command} explain {file} north.neighbourhoods   what Spark runs there")
    say(f"  {command} logs {file}                    what the sites told one another")
    say(f"  {command} run {file} --until-done --fresh   again, with a live table")
    say("")
    say(f"demo     done in {wall_s:.0f} s")


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


if __name__ == "__main__":
    sys.exit(main())
