"""What does ordering cost? The same query with and without `weft.order`, and the ordering unit alone.

    python -m benchmarks.order [--short] [--json]

On Spark: parquet files of records, a third of them late, through a projection into parquet files, in one session, by
turns; records over the time Spark spent on the batches, the first two of each turn and the first rounds left out, in
which Java still compiles. Once in the session that Weft starts, once in one with Spark's own settings, as a program has
it that only calls `weft.order`; `spark.sql.shuffle.partitions` is 1 in both, what one part needs. Alone: event times
through the unit, one core of this process, a record at a time and a batch at once. Ratios are medians over rounds; this
machine's absolute figures mean little.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._bench import Found, Setting, go, line, ratios, spark, spread, turns
from weft.model import Order
from weft.protocol.ordering import Ordering

SCHEMA = "ts TIMESTAMP, meter STRING, kwh DOUBLE, n BIGINT"
SHAPED = ("ts", "upper(meter) AS meter", "kwh * 1000 AS wh", "n")
START_US = 1_700_000_000_000_000
WARM_BATCHES = 2
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


@contextmanager
def usual(logs: Path) -> Iterator[Any]:
    """As other programs have it; sources have names there too, so that the query is the same."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.streaming.offsetLog.formatVersion", "2")
    builder = builder.config("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # it tells of every query that is stopped
    yield session
    session.stop()


SESSIONS = {"weft": spark, "usual": usual}


def by_turns(kind: str, setting: Setting) -> Found:
    """Records per second with and without ordering in one session."""
    work = Path(tempfile.mkdtemp(prefix="weft-order-"))
    rates: dict[str, list[float]] = {"plain": [], "ordered": []}
    try:
        make_data(work / "data", setting["records"], setting["batch"])
        with SESSIONS[kind](work / "logs") as session:
            session.conf.set("spark.sql.shuffle.partitions", "1")
            for number, name, counts in turns(list(rates), setting["rounds"], setting["warm_rounds"]):
                print(f"{kind} session: round {number + 1}, {name}", file=sys.stderr)
                room = work / f"{name}-{number}"
                rate = throughput(session, work / "data", room, setting["records"], name == "ordered")
                rates[name] += [rate] if counts else []
    finally:
        shutil.rmtree(work, ignore_errors=True)
    told = {name: spread(held, 0) for name, held in rates.items()}
    return {**told, "ratio": ratios(rates["ordered"], rates["plain"])}


def measure(setting: Setting) -> Found:
    """All figures, ordered against plain, turn by turn."""
    sessions = {}
    for kind in setting["sessions"]:
        if len(setting["sessions"]) == 1:
            sessions[kind] = by_turns(kind, setting)
            continue
        # A process of its own: settings of the first session would stay in Java.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            sessions[kind] = process.submit(by_turns, kind, setting).result()
    units: dict[str, list[float]] = {"a record at a time": [], "a batch at once": []}
    for _, name, counts in turns(list(units), setting["unit_rounds"], setting["unit_warm_rounds"]):
        rate = alone(setting["records"], setting["batch"], name == "a batch at once")
        units[name] += [rate] if counts else []
    return {
        "sessions": sessions,
        "alone_per_s": {name: spread(held, 0) for name, held in units.items()},
        "bytes_per_held_record": held_bytes(min(setting["records"], 200_000)),
    }


def show(setting: Setting, found: Found) -> None:
    """The figures for people, with all rounds."""
    for name, rates in found["sessions"].items():
        print(line(f"{name} session, without ordering", rates["plain"], "records/s"))
        print(line(f"{name} session, with ordering", rates["ordered"], "records/s"))
        print(line(f"{name} session, with over without", rates["ratio"]), setting.aim(f"sessions.{name}.ratio.median"))
    for name, rate in found["alone_per_s"].items():
        print(line(f"unit alone, {name}", rate, "records/s"), setting.aim(f"alone_per_s.{name}.median"))
    for name, size in found["bytes_per_held_record"].items():
        print(f"memory, {name:<26} {size:>12} bytes a record held, beside the record itself")


if __name__ == "__main__":
    go("order", __doc__, measure, show)
