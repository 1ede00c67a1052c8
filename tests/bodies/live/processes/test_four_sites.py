"""Four sites: filters at two edges, windows in the middle, a join at the top; the same rows however it runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.spark.kafka import brokers
from tests.spark.session.clusters import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.long]
RUN_S_MAX = 600.0
FILE = """
weft: 1
sites:
  - {name: north, parent: hub}
  - {name: south, parent: hub}
  - {name: hub, parent: topHUB}
  - {name: top}
links:
  - {from: north, to: hub, delay_ms: 2}
  - {from: south, to: hub, delay_ms: 2}
  - {from: hub, to: top, delay_ms: 2}
sources:
  - {name: meters, site: north, format: replay, path: meters.csv, event_time: ts,
     schema: "ts TIMESTAMP, k STRING, v BIGINT", arrivals: {kind: constant, rate_per_s: 200}}
  - {name: alarms, site: south, format: replay, path: alarms.csv, event_time: ts,
     schema: "ts TIMESTAMP, k STRING, level BIGINT", arrivals: {kind: constant, rate_per_s: 20}}
queries:
  - name: found
    operators:
      - {name: valid, from: [meters], site: north, sql: "SELECT ts, k, v FROM meters WHERE v >= 10"}
      - {name: high, from: [alarms], site: south, sql: "SELECT ts, k, level FROM alarms WHERE level > 2"}
      - {name: sums, from: [valid], site: hub, watermark: 30 seconds,
         sql: "SELECT window(ts, '1 minute') w, k, sum(v) s, count(*) n FROM valid GROUP BY 1, 2"}
      - {name: ended, from: [sums], site: hub, sql: "SELECT w.end t, k, s, n FROM sums"}
      - {name: pairs, from: [ended, high], site: top,
         watermark: {ended: {column: t, delay: 30 seconds}, high: 30 seconds},
         sql: "SELECT ended.t, high.ts, ended.k, ended.s, ended.n, high.level FROM ended JOIN high ON ended.k = high.k
               AND high.ts BETWEEN ended.t - INTERVAL 1 MINUTE AND ended.t"}
    sink: {from: pairs, format: json, path: out, site: top}
"""
METERS, ALARMS, LATE_S_MAX = 3000, 300, 25
"""A meter tells about once a second, an alarm comes about every ten; both are late by less than the watermarks."""


Record = tuple[datetime, str, int]


def recorded(folder: Path, name: str, records: int, step_s: float, rng: random.Random) -> list[Record]:
    """Write a recording, and return it."""
    at, found = datetime(2024, 1, 1, tzinfo=UTC), []
    with open(folder / f"{name}.csv", "w", encoding="utf-8") as file:
        for _ in range(records):
            at += timedelta(milliseconds=rng.randrange(int(2000 * step_s)))
            moment = at - timedelta(milliseconds=rng.randrange(LATE_S_MAX * 1000))
            found.append((moment, f"k{rng.randrange(5)}", rng.randrange(100) if name == "meters" else rng.randrange(6)))
            file.write(f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z,{found[-1][1]},{found[-1][2]}\n")
    return found


def wanted(meters: list[Record], alarms: list[Record]) -> Counter[str]:
    """The rows of the sink, by plain Python."""
    windows: dict[tuple[datetime, str], list[int]] = defaultdict(list)
    for at, k, v in meters:
        if v >= 10:
            windows[at.replace(second=0, microsecond=0) + timedelta(minutes=1), k].append(v)
    return Counter(
        row(end, at, k, sum(values), len(values), level)
        for (end, k), values in windows.items()
        for at, other, level in alarms
        if other == k and level > 2 and end - timedelta(minutes=1) <= at <= end
    )


def row(t: datetime, ts: datetime, k: str, s: int, n: int, level: int) -> str:
    return f"{t:%H:%M:%S} {ts:%H:%M:%S.%f} {k} {s} {n} {level}"


def given(folder: Path) -> Counter[str]:
    """What lies in the sink, read as anyone would: a plain glob."""
    texts = [path.read_text() for path in (folder / "out").glob("*.json")]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    times = [(datetime.fromisoformat(one["t"]), datetime.fromisoformat(one["ts"])) for one in rows]
    return Counter(
        row(t, ts, one["k"], one["s"], one["n"], one["level"]) for (t, ts), one in zip(times, rows, strict=True)
    )


@pytest.mark.parametrize("form", ["embedded", "folder", "mirror", "kafka", "both", "cluster"])
def test_four_sites_give_the_same_rows(form: str, folder: Path) -> None:
    rng = random.Random(19)
    rows = wanted(recorded(folder, "meters", METERS, 1.0, rng), recorded(folder, "alarms", ALARMS, 10.0, rng))
    assert rows.total() > 100
    text = FILE
    if form in ("kafka", "both"):
        boot = brokers.broker().bootstrap
        kind = "mirror, streams: {found.valid: kafka}" if form == "both" else "kafka"
        text += f'channels: {{kind: {kind}, bootstrap: "{boot}"}}\n'
    elif form == "mirror":
        text += "channels: {kind: mirror}\n"
    with Cluster(folder / "cluster", 1) if form == "cluster" else nullcontext() as cluster:
        spark = f', spark: {{master: "{cluster.master}", conf: {{spark.cores.max: "1"}}}}' if cluster else ""
        (folder / "weft.yaml").write_text(text.replace("HUB", spark))
        words = ["run", str(folder / "weft.yaml"), "--until-done", "--json"]
        words += [] if form == "embedded" else ["--processes"]
        ended = subprocess.run(
            [sys.executable, "-m", "weft", *words], capture_output=True, text=True, timeout=RUN_S_MAX, check=False
        )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = given(folder)
    assert (rows - found, found - rows) == (Counter(), Counter())
    assert json.loads(ended.stdout)["queries"]["found"]["records_out"] == rows.total()
