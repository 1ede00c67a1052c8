"""What does Weft cost? The same query hand-written in Structured Streaming and run by Weft, in one session, by turns.

    python -m benchmarks.overhead [--records 1000000] [--rounds 3] [--json]

Throughput: files of records through a filter and a projection on one site; records over the time Spark spent on the
batches, the first two of each turn left out. Hop: a small file dropped into a folder until its records lie in the
last folder, through two queries (hand-written: file sink, then file source; Weft: a channel between two sites).
Ratios are medians over rounds; this machine's absolute figures mean little.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.bodies.live.run import Options, Run
from weft.model import Column, Deployment, Link, Operator, Query, Sink, Site, Source

SCHEMA = "ts TIMESTAMP, meter STRING, kwh DOUBLE, n BIGINT"
COLUMNS = (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE"), Column("n", "BIGINT"))
VALID = "SELECT * FROM {} WHERE kwh >= 1"
SHAPED = "SELECT ts, upper(meter) AS meter, kwh * 1000 AS wh, n FROM {}"
FILES = 12
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


def hand_throughput(session: Any, data: Path, folder: Path) -> float:
    query = hand_written(session, data, folder / "out", folder / "ck", maxFilesPerTrigger="1")
    query.processAllAvailable()
    reports = [
        (int(p["numInputRows"]), float(p["durationMs"]["triggerExecution"]))
        for p in query.recentProgress
        if p["numInputRows"]
    ]
    query.stop()
    return per_record_ms(reports)


def weft_throughput(data: Path, folder: Path) -> float:
    folder.mkdir(parents=True)
    (folder / "in").symlink_to(data)
    deployment = weft_deployment(folder, ("a", "a"), maxFilesPerTrigger="1")
    run = Run(deployment, folder / ".weft", Options(until_done=True))
    run.go()
    assert run.progress is not None
    reports = [report for report in run.progress.history["q.valid"] if report[0]]
    return per_record_ms(reports)


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


def measure(records: int, rounds: int, drops_each: int) -> dict[str, Any]:
    """All ratios, Weft against hand-written, turn by turn."""
    from weft.spark.session.starting import start_session

    work = Path(tempfile.mkdtemp(prefix="weft-overhead-"))
    session = start_session(work / "logs")
    try:
        make_data(session, work / "data", records)
        costs: dict[str, list[float]] = {"hand": [], "weft": []}
        hops: dict[str, list[float]] = {"hand": [], "weft": []}
        for number in range(rounds + 1):
            turn = work / f"round-{number}"
            by_hand = hand_throughput(session, work / "data", turn / "hand")
            by_weft = weft_throughput(work / "data", turn / "weft")
            if number:  # the first round warms the compiler
                costs["hand"].append(by_hand)
                costs["weft"].append(by_weft)
        for number in range(rounds):
            turn = work / f"hop-{number}"
            hops["hand"] += hand_hop(session, turn / "hand", drops_each)
            hops["weft"] += weft_hop(turn / "weft", drops_each)
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)
    return {
        "records": records,
        "rounds": rounds,
        "throughput_per_s": {name: round(1000 / statistics.median(held)) for name, held in costs.items()},
        "throughput_ratio": round(statistics.median(costs["hand"]) / statistics.median(costs["weft"]), 3),
        "hop_s": {name: round(statistics.median(held), 3) for name, held in hops.items()},
        "hop_ratio": round(statistics.median(hops["weft"]) / statistics.median(hops["hand"]), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--drops", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.records, asked.rounds, asked.drops)
    if asked.json:
        print(json.dumps(found))
        return
    print(f"throughput  hand-written {found['throughput_per_s']['hand']:>9,} records/s")
    print(f"            Weft         {found['throughput_per_s']['weft']:>9,} records/s")
    print(f"            ratio        {found['throughput_ratio']:>9} (at least 0.95 is the aim)")
    print(f"one hop     hand-written {found['hop_s']['hand']:>9} s")
    print(f"            Weft         {found['hop_s']['weft']:>9} s")
    print(f"            ratio        {found['hop_ratio']:>9} (at most 1.15 is the aim)")


if __name__ == "__main__":
    main()
