"""What does ordering cost? The same query with and without `weft.order`, and the ordering unit alone.

    python -m benchmarks.order [--records 1000000] [--batch 100000] [--rounds 5] [--json]

On Spark: parquet files of records, a third of them late, through a projection into parquet files, in one session, by
turns; records over the time Spark spent on the batches, the first two of each turn and the first rounds left out, in
which Java still compiles. Once in the session that Weft starts, once in one with Spark's own settings, as a program has
it that only calls `weft.order`; `spark.sql.shuffle.partitions` is 1 in both, what one part needs. Alone: event times
through the unit, one core of this process, a record at a time and a batch at once. Ratios are medians over rounds; this
machine's absolute figures mean little.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from weft.model import Order
from weft.protocol.ordering import Ordering

SCHEMA = "ts TIMESTAMP, meter STRING, kwh DOUBLE, n BIGINT"
SHAPED = ("ts", "upper(meter) AS meter", "kwh * 1000 AS wh", "n")
START_US = 1_700_000_000_000_000
WARM_BATCHES = 2
WARM_ROUNDS = 3
WAIT_S_MAX = 600.0


def late_stream(records: int, delay_us: float, seed: int = 1) -> Any:
    """Event times in order of arrival: a record every millisecond, a third of them late by an exponential delay."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1000.0, records))
    delays = np.where(rng.random(records) < 1 / 3, rng.exponential(delay_us, records), 0.0)
    return (START_US + arrivals - delays).astype(np.int64)


def make_data(folder: Path, records: int, batch: int) -> None:
    """Equal parquet files, each one batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    times = late_stream(records, 2_000_000.0)
    for first in range(0, records, batch):
        numbers = np.arange(first, min(first + batch, records))
        table = pa.table(
            {
                "ts": pa.array(times[numbers], pa.timestamp("us", "UTC")),
                "meter": [f"meter-{number % 100}" for number in numbers],
                "kwh": numbers % 1000 / 100.0,
                "n": numbers,
            }
        )
        pq.write_table(table, folder / f"{first:010d}.parquet")


def throughput(session: Any, data: Path, folder: Path, records: int, ordered: bool) -> float:
    """Records per second of batch time, warm-up left out."""
    from weft.spark.ordering.dataframe import order

    frame = session.readStream.schema(SCHEMA).name("records").option("maxFilesPerTrigger", "1").parquet(str(data))
    frame = order(frame, time="ts") if ordered else frame
    shaped = frame.selectExpr(*SHAPED)
    query = shaped.writeStream.format("parquet").option("checkpointLocation", str(folder / "ck"))
    running = query.start(str(folder / "out"))
    reports: dict[int, tuple[int, float]] = {}
    deadline = time.monotonic() + WAIT_S_MAX
    try:
        while sum(rows for rows, _ in reports.values()) < records:
            if time.monotonic() > deadline:
                raise TimeoutError("the benchmark waited too long")
            if running.exception():
                raise RuntimeError(str(running.exception()))
            time.sleep(0.05)
            for report in running.recentProgress:
                if report["numInputRows"]:
                    reports[report["batchId"]] = report["numInputRows"], report["durationMs"]["triggerExecution"]
    finally:
        running.stop()
    steady = [reports[batch] for batch in sorted(reports)][WARM_BATCHES:]
    return sum(rows for rows, _ in steady) / sum(ms for _, ms in steady) * 1000


def alone(records: int, batch: int, at_once: bool) -> float:
    """Records per second of CPU time through the unit itself."""
    times = late_stream(records, 100_000.0)
    Ordering(Order()).take(times[:1000], at_once=at_once)
    unit = Ordering(Order())
    begun = time.process_time()
    for first in range(0, records, batch):
        unit.take(times[first : first + batch], at_once=at_once)
    return records / (time.process_time() - begun)


def held_bytes(records: int) -> dict[str, float]:
    """Bytes that a unit keeps beyond its window, per record held, for short and long delays."""
    found = {}
    for delay_us in (100_000.0, 10_000_000.0):
        unit = Ordering(Order())
        unit.take(late_stream(records, delay_us))
        kept = len(unit.snapshot()) - len(Ordering(Order()).snapshot())
        found[f"{unit.held} held"] = round(kept / max(1, unit.held), 1)
    return found


def weft_session(logs: Path) -> Any:
    """As `weft run` starts it."""
    from weft.spark.session.starting import start_session

    return start_session(logs)


def usual_session(logs: Path) -> Any:
    """As other programs have it; sources have names there too, so that the query is the same."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.streaming.offsetLog.formatVersion", "2")
    builder = builder.config("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # it tells of every query that is stopped
    return session


def by_turns(start: Callable[[Path], Any], records: int, batch: int, rounds: int) -> dict[str, float]:
    """Records per second with and without ordering in one session."""
    work = Path(tempfile.mkdtemp(prefix="weft-order-"))
    session = start(work / "logs")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    rates: dict[str, list[float]] = {"plain": [], "ordered": []}
    try:
        make_data(work / "data", records, batch)
        for number in range(WARM_ROUNDS + rounds):
            print(f"{start.__name__}: round {number + 1} of {WARM_ROUNDS + rounds}", file=sys.stderr)
            for name, found in rates.items():
                rate = throughput(session, work / "data", work / f"{name}-{number}", records, name == "ordered")
                if number >= WARM_ROUNDS:
                    found.append(rate)
    finally:
        session.stop()
        shutil.rmtree(work, ignore_errors=True)
    plain, ordered = (statistics.median(rates[name]) for name in ("plain", "ordered"))
    return {"plain": round(plain), "ordered": round(ordered), "ratio": round(ordered / plain, 3)}


def measure(records: int, batch: int, rounds: int) -> dict[str, Any]:
    """All figures, ordered against plain, turn by turn."""
    sessions = {}
    for start in (weft_session, usual_session):
        # A process of its own: settings of the first session would stay in Java.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            sessions[start.__name__] = process.submit(by_turns, start, records, batch, rounds).result()
    weft = sessions["weft_session"]
    return {
        "records": records,
        "batch": batch,
        "rounds": rounds,
        "throughput_per_s": {name: weft[name] for name in ("plain", "ordered")},
        "throughput_ratio": weft["ratio"],
        "sessions": sessions,
        "alone_per_s": {
            "a record at a time": round(max(alone(records, batch, False) for _ in range(rounds))),
            "a batch at once": round(max(alone(records, batch, True) for _ in range(rounds))),
        },
        "bytes_per_held_record": held_bytes(min(records, 200_000)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measure(asked.records, asked.batch, asked.rounds)
    if asked.json:
        print(json.dumps(found))
        return
    for name, rates in found["sessions"].items():
        print(f"{name:<13} without ordering   {rates['plain']:>12,} records/s")
        print(f"{'':<13} with ordering      {rates['ordered']:>12,} records/s")
        print(f"{'':<13} ratio              {rates['ratio']:>12} (at least 0.4 is the aim)")
    for name, rate in found["alone_per_s"].items():
        print(f"unit alone    {name:<18} {rate:>12,} records/s (at least 5,000,000 is the aim)")
    for name, size in found["bytes_per_held_record"].items():
        print(f"memory        {name:<18} {size:>12} bytes a record held, beside the record itself")


if __name__ == "__main__":
    main()
