"""What does Weft cost? The same query hand-written in Structured Streaming and run by Weft, in one session, by turns.

    python -m benchmarks.overhead [--short] [--json]

Throughput: files of records through a filter and a projection on one site. Counted three ways, the first batches of
each turn left out: records over the time that Spark spent on batches; over the time from the first of them to the end
of the last, as one sees it who waits; and CPU seconds of a whole turn, Spark and Python together, start and end of the
run included. Hop: a small file dropped into a folder until its records lie in the last folder, through two queries
(hand-written: file sink, then file source; Weft: a channel between two sites).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks._bench import Found, Setting, cpu_s, go, java_of, line, ratios, spark, spread, turns
from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Link, Operator, Query, Sink, Site, Source

SCHEMA = "ts TIMESTAMP, meter STRING, kwh DOUBLE, n BIGINT"
COLUMNS = (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE"), Column("n", "BIGINT"))
VALID = "SELECT * FROM {} WHERE kwh >= 1"
SHAPED = "SELECT ts, upper(meter) AS meter, kwh * 1000 AS wh, n FROM {}"
FILES = 12
SIDES = {"hand": "hand-written", "weft": "Weft"}
WARM_BATCHES = 2
WAIT_S_MAX = 120.0


def make_data(session: Any, folder: Path, records: int, files: int = FILES) -> None:
    """Equal csv files, made by Spark."""
    frame = session.range(0, records, 1, files).selectExpr(
        "timestamp_micros(1700000000000000 + id * 1000) AS ts",
        "concat('meter-', id % 100) AS meter",
        "id % 1000 / 100.0 AS kwh",
        "id AS n",
    )
    frame.write.csv(str(folder))


def hand_written(session: Any, source: Path, sink: Path, checkpoint: Path, **options: str) -> Any:
    """The query as one would write it: file source, SQL, file sink."""
    frame = session.readStream.schema(SCHEMA).name("records").options(**options).csv(str(source))
    frame.createOrReplaceTempView("records")
    session.sql(VALID.format("records")).createOrReplaceTempView("valid")
    shaped = session.sql(SHAPED.format("valid"))
    return shaped.writeStream.format("parquet").option("checkpointLocation", str(checkpoint)).start(str(sink))


def weft_deployment(folder: Path, sites: tuple[str, str], **options: str) -> Deployment:
    """The same operators, each pinned to a site."""
    operators = (
        Operator("valid", ("records",), sql=VALID.format("records"), site=sites[0]),
        Operator("shaped", ("valid",), sql=SHAPED.format("valid"), site=sites[1]),
    )
    query = Query("q", operators, (Sink("shaped", "parquet", "out"),))
    source = Source("records", sites[0], "csv", COLUMNS, "in", dict(options))
    return Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b"),), folder=str(folder))


def per_record_ms(reports: list[tuple[int, float]]) -> float:
    """Milliseconds of batch time per record, warm-up left out."""
    steady = reports[WARM_BATCHES:]
    return sum(duration for _, duration in steady) / sum(rows for rows, _ in steady)


def per_second(reports: list[dict[str, Any]]) -> dict[str, float]:
    """Records per second of batch time, and of the time from the first batch to the end of the last."""
    steady = reports[WARM_BATCHES:]
    rows = sum(int(report["numInputRows"]) for report in steady)
    begun_s = [datetime.fromisoformat(report["timestamp"]).timestamp() for report in steady]
    took_s = [float(report["durationMs"]["triggerExecution"]) / 1000 for report in steady]
    return {"batches": rows / sum(took_s), "waiting": rows / (begun_s[-1] + took_s[-1] - begun_s[0])}


def hand_throughput(session: Any, data: Path, folder: Path) -> dict[str, float]:
    query = hand_written(session, data, folder / "out", folder / "ck", maxFilesPerTrigger="1")
    query.processAllAvailable()
    found = per_second([report for report in query.recentProgress if report["numInputRows"]])
    query.stop()
    return found


def runs_of(run: Run) -> dict[str, Any]:
    """The runs of all fragments, also where an earlier version of Weft is measured."""
    engine: Any = getattr(run.progress, "engine", None)  # of all sites, before each had one of its own
    sites: Any = run.sites
    runs: dict[str, Any] = (engine or sites).runs
    return runs


def weft_throughput(data: Path, folder: Path) -> dict[str, float]:
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    deployment = weft_deployment(folder, ("a", "a"), maxFilesPerTrigger="1")
    run = Run(deployment, folder / ".weft", Options(until_done=True))
    run.go()
    query = runs_of(run)["q.valid"].query
    assert query is not None
    return per_second([report for report in query.recentProgress if report["numInputRows"] > 1])


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """A Weft run in the background, stopped at the end."""
    thread = threading.Thread(target=run.go, daemon=True)
    thread.start()
    wait_for(lambda: run.phase == "running")
    try:
        yield run
    finally:
        run.stop()
        thread.join(WAIT_S_MAX)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the benchmark waited too long")
        time.sleep(0.005)


def drops(source: Path, visible: Callable[[], int], count: int) -> list[float]:
    """Seconds from dropping a small file to seeing its records, so many times; the first two are warm-up."""
    times = []
    for number in range(count):
        before = visible()
        temporary = source.parent / f"drop-{number}"
        lines = "".join(f"2024-01-01T00:00:00.000Z,m{i},{2 + i},{i}\n" for i in range(20))
        temporary.write_text(lines)
        begun = time.monotonic()
        temporary.rename(source / f"drop-{time.monotonic_ns()}.csv")
        wait_for(lambda before=before: visible() > before)  # type: ignore[misc]
        times.append(time.monotonic() - begun)
        time.sleep(0.1)
    return times[2:]


def hand_hop(session: Any, folder: Path, count: int) -> list[float]:
    """Two hand-written queries with a folder between them."""
    for name in ("in", "middle", "out"):
        (folder / name).mkdir(parents=True)
    frame = session.readStream.schema(SCHEMA).name("records").csv(str(folder / "in"))
    frame.createOrReplaceTempView("records")
    first = session.sql(VALID.format("records")).writeStream.format("parquet")
    first = first.option("checkpointLocation", str(folder / "ck1")).start(str(folder / "middle"))
    middle = session.readStream.schema(SCHEMA).name("valid").parquet(str(folder / "middle"))
    middle.createOrReplaceTempView("valid")
    second = session.sql(SHAPED.format("valid")).writeStream.format("parquet")
    second = second.option("checkpointLocation", str(folder / "ck2")).start(str(folder / "out"))
    try:
        # The sink's log, not a half-written file, tells that a batch is there.
        return drops(folder / "in", lambda: committed(folder / "out"), count)
    finally:
        first.stop()
        second.stop()


def committed(folder: Path) -> int:
    log = folder / "_spark_metadata"
    return len([name for name in log.iterdir() if not name.name.startswith(".")]) if log.exists() else 0


def weft_hop(folder: Path, count: int) -> list[float]:
    (folder / "in").mkdir(parents=True)
    deployment = weft_deployment(folder, ("a", "b"))
    with running(Run(deployment, folder / ".weft", Options())):
        return drops(folder / "in", lambda: len(list((folder / "out").glob("part-*"))), count)


def measure(setting: Setting) -> Found:
    """All figures, Weft and hand-written, turn by turn."""
    work = Path(tempfile.mkdtemp(prefix="weft-overhead-"))
    try:
        with spark(work / "logs") as session:
            return {**_throughput(session, work, setting), **_hops(session, work, setting)}
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _throughput(session: Any, work: Path, setting: Setting) -> Found:
    make_data(session, work / "data", setting["records"], setting["files"])
    java = java_of(session)
    held: dict[str, dict[str, list[float]]] = {name: {"batches": [], "waiting": [], "cpu_s": []} for name in SIDES}
    for number, name, counts in turns(list(SIDES), setting["rounds"], setting["warm_rounds"]):
        folder = work / f"{name}-{number}"
        begun_s = cpu_s(java)
        data = work / "data"
        one = hand_throughput(session, data, folder) if name == "hand" else weft_throughput(data, folder)
        one["cpu_s"] = cpu_s(java) - begun_s
        shutil.rmtree(folder, ignore_errors=True)
        for figure, values in held[name].items():
            values.extend([one[figure]] if counts else [])
    hand, weft = held["hand"], held["weft"]
    return {
        "throughput_per_s": {name: spread(one["batches"], 0) for name, one in held.items()},
        "throughput_ratio": ratios(weft["batches"], hand["batches"]),
        "waiting_ratio": ratios(weft["waiting"], hand["waiting"]),
        "cpu_s": {name: spread(one["cpu_s"], 2) for name, one in held.items()},
        "cpu_ratio": ratios(hand["cpu_s"], weft["cpu_s"]),
    }


def _hops(session: Any, work: Path, setting: Setting) -> Found:
    hops: dict[str, list[float]] = {name: [] for name in SIDES}
    for number, name, counts in turns(list(SIDES), setting["hop_rounds"], setting["hop_warm_rounds"]):
        folder, drops_each = work / f"hop-{name}-{number}", setting["drops"]
        one = hand_hop(session, folder, drops_each) if name == "hand" else weft_hop(folder, drops_each)
        hops[name] += [sorted(one)[len(one) // 2]] if counts else []
    return {
        "hop_s": {name: spread(held) for name, held in hops.items()},
        "hop_ratio": ratios(hops["weft"], hops["hand"]),
    }


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, words in SIDES.items():
        print(line(f"throughput, {words}", found["throughput_per_s"][name], "records/s"))
    print(line("Weft over hand-written, batches", found["throughput_ratio"]), setting.aim("throughput_ratio.median"))
    print(line("Weft over hand-written, waiting", found["waiting_ratio"]))
    for name, words in SIDES.items():
        print(line(f"a whole turn, {words}", found["cpu_s"][name], "CPU s"))
    print(line("hand-written over Weft, CPU", found["cpu_ratio"]))
    for name, words in SIDES.items():
        print(line(f"one hop, {words}", found["hop_s"][name], "s"))
    print(line("Weft over hand-written, hop", found["hop_ratio"]), setting.aim("hop_ratio.median"))


if __name__ == "__main__":
    go("overhead", __doc__, measure, show)
