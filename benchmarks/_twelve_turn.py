"""One turn of benchmarks.twelve, in a process of its own: CPU seconds of all its processes, memory, and the rows."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks._bench import spark
from benchmarks.late import COLUMNS, cpu_s
from weft.bodies.live.run import Options, Run
from weft.model import Column, Control, Deployment, Operator, Query, Share, Sink, Site, Source, Watermark

SCHEMA = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
WINDOW, DELAY = "10 minutes", "10 minutes"
ONE_FILE = {"maxFilesPerTrigger": "1"}
Asked = tuple[str, str]
"""A condition, and what is measured of the records that it keeps, under the name `x`."""

SAME: list[Asked] = [
    ("kwh >= 1", "sum(kwh)"), ("kwh >= 2 AND meter <> 'm7'", "sum(kwh)"), ("kwh > 5", "count(*)"),
    ("meter IN ('m1', 'm2', 'm3')", "avg(kwh)"), ("kwh < 1", "count(*)"), ("meter LIKE 'm1%'", "max(kwh)"),
    ("kwh BETWEEN 2 AND 4", "min(kwh)"), ("meter = 'm40' OR kwh = 6", "sum(kwh)"), ("NOT kwh <= 3", "count(kwh)"),
    ("meter <> 'm9' AND kwh < 6", "avg(kwh)"), ("kwh IS NOT NULL", "max(kwh)"), ("kwh = 0 OR kwh = 6", "count(*)"),
]  # fmt: skip


def grouped(asked: Asked, window: str = WINDOW, upstream: str = "kept") -> str:
    """An aggregate as people write it."""
    made = f"window(ts, '{window}')"
    return f"SELECT {made} AS w, meter, {asked[1]} AS x FROM {upstream} GROUP BY {made}, meter"


def as_queries(asked: list[Asked], windows: list[str]) -> tuple[Query, ...]:
    """Queries of Weft; every other one has its filter in an operator of its own."""
    found = []
    for at, ((condition, _), window) in enumerate(zip(asked, windows, strict=True)):
        marks = (Watermark(DELAY, "ts"),)
        if at % 2:
            sql = grouped(asked[at], window, "records").replace("GROUP BY", f"WHERE {condition} GROUP BY")
            operators: tuple[Operator, ...] = (Operator("sums", ("records",), sql=sql, watermarks=marks),)
        else:
            kept = Operator("kept", ("records",), sql=f"SELECT * FROM records WHERE {condition}")
            operators = kept, Operator("sums", ("kept",), sql=grouped(asked[at], window), watermarks=marks)
        found.append(Query(f"q{at}", operators, (Sink("sums", "parquet", f"out/q{at}"),)))
    return tuple(found)


def by_weft(session: Any, folder: Path, asked: list[Asked], windows: list[str], share: bool) -> None:
    """All queries in one deployment on one site."""
    source = Source(
        "records", "a", "csv", tuple(Column(c.name, c.type) for c in COLUMNS), "in", ONE_FILE, event_time="ts"
    )
    whole = Deployment(
        (Site("a"),), (source,), as_queries(asked, windows), control=Control(share=Share(share)), folder=str(folder)
    )
    Run(whole, folder / ".weft", Options(until_done=True)).go()


def _records(session: Any, folder: Path, name: str) -> Any:
    frame = session.readStream.schema(SCHEMA).name(name).options(**ONE_FILE).csv(str(folder / "in"))
    return frame.withWatermark("ts", DELAY)


def by_streams(session: Any, folder: Path, asked: list[Asked], windows: list[str]) -> None:
    """A stream for each query, all started at once."""
    started = []
    for at, (one, window) in enumerate(zip(asked, windows, strict=True)):
        _records(session, folder, f"records{at}").createOrReplaceTempView(f"records{at}")
        session.sql(f"SELECT * FROM records{at} WHERE {one[0]}").createOrReplaceTempView("kept")
        writer = session.sql(grouped(one, window)).writeStream.format("parquet").trigger(availableNow=True)
        started.append(writer.option("checkpointLocation", str(folder / f"ck{at}")).start(str(folder / f"out/q{at}")))
    for query in started:
        query.awaitTermination()


def by_one(session: Any, folder: Path, asked: list[Asked], windows: list[str]) -> None:
    """One stream that reads and keeps everything once, and writes each batch to the folders of all queries."""
    from pyspark.sql import functions as F

    sums = []
    for at, (condition, what) in enumerate(asked):
        sums += [F.expr(f"count(*) FILTER (WHERE {condition})").alias(f"n{at}")]
        sums += [F.expr(f"{what} FILTER (WHERE {condition})").alias(f"x{at}")]
    whole = _records(session, folder, "records").groupBy(F.window("ts", windows[0]).alias("w"), "meter").agg(*sums)

    def divide(batch: Any, number: int) -> None:
        batch.persist()
        for at in range(len(asked)):
            rows = batch.filter(f"n{at} > 0").select("w", "meter", F.col(f"x{at}").alias("x"))
            rows.write.mode("append").parquet(str(folder / f"out/q{at}"))
        batch.unpersist()

    writer = whole.writeStream.foreachBatch(divide).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "ck")).start().awaitTermination()


def by_one_sink(session: Any, folder: Path, asked: list[Asked], windows: list[str]) -> None:
    """The same with one folder for all: nobody has results of his own."""
    from pyspark.sql import functions as F

    sums = [F.expr(f"{what} FILTER (WHERE {condition})").alias(f"x{at}") for at, (condition, what) in enumerate(asked)]
    whole = _records(session, folder, "records").groupBy(F.window("ts", windows[0]).alias("w"), "meter").agg(*sums)
    writer = whole.writeStream.format("parquet").trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "ck")).start(str(folder / "out/all")).awaitTermination()


SIDES: dict[str, Callable[..., None]] = {
    "weft": lambda *words: by_weft(*words, share=True),
    "weft_apart": lambda *words: by_weft(*words, share=False),
    "streams": by_streams,
    "one": by_one,
    "one_sink": by_one_sink,
}


def memory_mb() -> float:
    """The most that this process and those it started and that still run have held, each at its own worst."""
    parents, most = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            told = dict(line.split(":", 1) for line in (entry / "status").read_text().splitlines() if ":" in line)
        except OSError:
            continue
        parents[int(entry.name)] = int(told["PPid"])
        most[int(entry.name)] = int(told.get("VmHWM", "0 kB").split()[0]) / 1024
    ours, found = {os.getpid()}, 0
    while len(ours) > found:
        found = len(ours)
        ours |= {one for one, parent in parents.items() if parent in ours}
    return sum(most[one] for one in ours if one in most)


def rows_of(folder: Path, count: int) -> list[list[str]]:
    """The digests of every query's results."""
    found = []
    for at in range(count):
        rows: list[str] = []
        for file in sorted((folder / f"out/q{at}").glob("part-*.parquet")):
            held = pq.read_table(file, partitioning=None)
            rows += [
                hashlib.md5(repr(row).encode()).hexdigest() for row in held.select(["w", "meter", "x"]).to_pylist()
            ]
        found.append(sorted(rows))
    return found


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    """One side from the start of Spark to the end of the last query."""
    folder = Path(asked["folder"])
    begun_s = time.monotonic()
    with spark(folder / "logs") as session:
        started_s = cpu_s()
        what = [(one[0], one[1]) for one in asked["asked"]]
        SIDES[asked["side"]](session, folder, what, asked["windows"])
        return {
            "cpu_s": cpu_s(), "start_cpu_s": started_s, "memory_mb": memory_mb(), "wall_s": time.monotonic() - begun_s,
            "rows": [] if asked["side"] == "one_sink" else rows_of(folder, len(what)),
        }  # fmt: skip


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    Path(wanted["result"]).write_text(json.dumps(measure(wanted)))
