"""Deployments with records behind the watermark: every shape that keeps state, and what batch Spark gives for each."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Row = tuple[int, str, datetime, int]
"""A record: id, key, event time, value."""

START = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = "id BIGINT, k STRING, ts TIMESTAMP, v BIGINT"
SOURCES = f"""
weft: 1
sites: [{{name: edge}}, {{name: core}}]
links: [{{from: edge, to: core, delay_ms: 1}}]
sources:
  - {{name: left, site: edge, format: csv, path: left, schema: "{SCHEMA}", event_time: ts,
     options: {{maxFilesPerTrigger: 1}}}}
  - {{name: right, site: edge, format: csv, path: right, schema: "{SCHEMA}", event_time: ts,
     options: {{maxFilesPerTrigger: 1}}}}
queries:
"""
RULES = """
def once(df):
    return df.select("k", "ts", "v").dropDuplicates(["k", "ts"])
"""
SHAPES = {
    "window": """
  - name: window
    promise: {loss: 0}
    operators:
      - {name: good, from: left, sql: "SELECT * FROM left WHERE v >= 0"}
      - {name: sums, from: good, watermark: 10 minutes, late: {to: late/window},
         sql: "SELECT window(ts, '30 minutes') w, k, count(*) n FROM good WHERE v <> 7 GROUP BY 1, 2"}
      - {name: days, from: sums, watermark: 0 seconds, site: core,
         sql: "SELECT window(w, '1 day') d, sum(n) n FROM sums GROUP BY 1"}
    sink:
      - {from: sums, format: parquet, path: out/window}
      - {from: days, format: parquet, path: out/days}
""",
    "slide": """
  - name: slide
    operators:
      - {name: sums, from: left, watermark: 10 minutes, late: {to: late/slide, format: json}, site: edge,
         sql: "SELECT window(ts, '30 minutes', '10 minutes') w, count(*) n FROM left GROUP BY 1"}
    sink: {from: sums, format: parquet, path: out/slide}
""",
    "union": """
  - name: union
    operators:
      - {name: sums, from: [left, right], watermark: 10 minutes, late: {to: late/union},
         sql: "SELECT window(ts, '30 minutes') w, count(*) n FROM
               (SELECT ts, v FROM left WHERE v >= 0 UNION ALL SELECT ts, v + 1 FROM right) GROUP BY 1"}
    sink: {from: sums, format: parquet, path: out/union, mode: update}
""",
    "join": """
  - name: join
    operators:
      - {name: pairs, from: [left, right], watermark: 10 minutes, late: {to: late/join},
         sql: "SELECT l.id, r.id rid FROM left l JOIN right r ON l.k = r.k
               AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES WHERE l.v >= 0"}
    sink: {from: pairs, format: parquet, path: out/join}
""",
    "semi": """
  - name: semi
    operators:
      - {name: known, from: [left, right], watermark: 10 minutes, late: {to: late/semi},
         sql: "SELECT l.id, l.k FROM left l LEFT SEMI JOIN right r ON l.k = r.k
               AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES"}
    sink: {from: known, format: parquet, path: out/semi}
""",
    "outer": """
  - name: outer
    operators:
      - {name: pairs, from: [left, right], watermark: 10 minutes, late: {to: late/outer},
         sql: "SELECT l.id, r.id rid FROM left l LEFT OUTER JOIN right r ON l.k = r.k
               AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES"}
    sink: {from: pairs, format: parquet, path: out/outer}
""",
    "session": """
  - name: session
    operators:
      - {name: visits, from: left, watermark: 10 minutes, late: {to: late/session},
         sql: "SELECT session_window(ts, '5 minutes') w, k, count(*) n FROM left GROUP BY 1, 2"}
    sink: {from: visits, format: parquet, path: out/session}
""",
    "distinct": """
  - name: distinct
    operators:
      - {name: few, from: left, watermark: 10 minutes, late: {to: late/distinct, format: csv},
         sql: "SELECT DISTINCT k, ts FROM left"}
    sink: {from: few, format: parquet, path: out/distinct}
""",
    "once": """
  - name: once
    operators:
      - {name: few, from: left, call: "rules:once", watermark: {column: ts, delay: 10 minutes}, late: {to: late/once}}
    sink: {from: few, format: parquet, path: out/once}
""",
}


def drawn(seed: int, files: int = 5, each: int = 40) -> list[list[Row]]:
    """Files of records whose time goes on, and of which from the third file on some are far too late."""
    rng = random.Random(seed)
    found: list[list[Row]] = []
    number = 0
    for at in range(files):
        rows: list[Row] = []
        for _ in range(each):
            minutes = at * 60 + rng.randrange(60)
            if at >= 2 and rng.random() < 0.25:
                minutes = rng.randrange(at * 60)  # behind the watermark, mostly
            number += 1
            rows.append((number, f"k{rng.randrange(3)}", START + timedelta(minutes=minutes), rng.randrange(-2, 10)))
        found.append(rows)
    return found


def lay_down(folder: Path, name: str, files: Iterable[list[Row]], first: int = 0) -> None:
    """The files of a source, each younger than the one before it: that is the order in which Spark reads them."""
    (folder / name).mkdir(exist_ok=True)
    for at, rows in enumerate(files, first):
        path = folder / name / f"{at:03d}.csv"
        text = "".join(f"{number},{k},{ts:%Y-%m-%d %H:%M:%S},{v}\n" for number, k, ts, v in rows)
        aside = folder / f".{name}-{at}"
        aside.write_text(text, encoding="utf-8")
        os.utime(aside, (1_700_000_000 + at, 1_700_000_000 + at))
        os.replace(aside, path)


def late_ids(spark: Any, path: Path) -> list[int]:
    """The records in a folder of late ones, by their ids."""
    if not any(path.glob("part-*")):
        return []
    kind = next(path.glob("part-*")).name.split(".")[1]
    reader = spark.read.schema(SCHEMA) if kind == "csv" else spark.read
    return sorted(row.id for row in reader.format(kind).load(str(path)).select("id").collect())


def expected(spark: Any, shape: str, left: list[Row], right: list[Row]) -> list[tuple[Any, ...]]:
    """What batch Spark gives for a shape over some records."""
    columns = "id BIGINT, k STRING, ts TIMESTAMP, v BIGINT"
    frames = {"left": spark.createDataFrame(left, columns), "right": spark.createDataFrame(right, columns)}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    statements = {
        "window": "SELECT window(ts, '30 minutes').start w, k, count(*) n FROM left WHERE v >= 0 AND v <> 7 "
        "GROUP BY window(ts, '30 minutes'), k",
        "days": "SELECT window(ts, '1 day').start d, count(*) n FROM left WHERE v >= 0 AND v <> 7 "
        "GROUP BY window(ts, '1 day')",
        "slide": "SELECT window.start w, count(*) n FROM left GROUP BY window(ts, '30 minutes', '10 minutes')",
        "union": "SELECT window.start w, count(*) n FROM (SELECT ts FROM left WHERE v >= 0 UNION ALL "
        "SELECT ts FROM right) GROUP BY window(ts, '30 minutes')",
        "join": "SELECT l.id, r.id rid FROM left l JOIN right r ON l.k = r.k AND l.v >= 0 "
        "AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES",
        "semi": "SELECT l.id, l.k FROM left l LEFT SEMI JOIN right r ON l.k = r.k "
        "AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES",
        "outer": "SELECT l.id, r.id rid FROM left l LEFT OUTER JOIN right r ON l.k = r.k "
        "AND r.ts BETWEEN l.ts - INTERVAL 2 MINUTES AND l.ts + INTERVAL 2 MINUTES",
        "session": "SELECT session_window.start w, k, count(*) n FROM left GROUP BY session_window(ts, '5 minutes'), k",
        "distinct": "SELECT DISTINCT k, ts FROM left",
        "once": "SELECT DISTINCT k, ts FROM left",
    }
    return _sorted(spark.sql(statements[shape]))


def given(spark: Any, folder: Path, shape: str) -> list[tuple[Any, ...]]:
    """What a run has given for a shape."""
    columns = {
        "window": "w.start w, k, n",
        "days": "d.start d, n",
        "slide": "w.start w, n",
        "union": "w.start w, n",
        "join": "id, rid",
        "semi": "id, k",
        "outer": "id, rid",
        "session": "w.start w, k, n",
        "distinct": "k, ts",
        "once": "k, ts",
    }
    frame = spark.read.parquet(str(folder / "out" / shape))
    return _sorted(frame.selectExpr(*columns[shape].split(", ")))


def _sorted(frame: Any) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, nulls first."""
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: [(one is not None, one) for one in row])
