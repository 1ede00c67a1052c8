"""A deployment to move about: a stateless, a windowed and a join query over recorded streams, and what batch gives."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import weft.spec
from weft.model import Deployment, dataflow

SITES = ("a", "b", "c")
FILE = """
weft: 1
sites: [{name: a}, {name: b}, {name: c}]
links: [{from: a, to: b}, {from: b, to: c}, {from: a, to: c}]
sources:
  - {name: left, site: a, format: replay, path: left.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
  - {name: right, site: b, format: replay, path: right.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT", event_time: ts,
     arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: plain
    operators:
      - {name: keep, from: [left], sql: "SELECT * FROM left WHERE v % 7 <> 0"}
      - {name: shape, from: [keep], sql: "SELECT ts, upper(k) k, v * 2 v FROM keep"}
      - {name: small, from: [keep], sql: "SELECT k, v FROM keep WHERE v < 50"}
    sink:
      - {from: shape, format: parquet, path: out/shape}
      - {from: small, format: parquet, path: out/small}
  - name: windowed
    operators:
      - {name: all, from: [left, right], sql: "SELECT * FROM left UNION ALL SELECT * FROM right"}
      - {name: good, from: [all], sql: "SELECT * FROM all WHERE v > 3"}
      - {name: sums, from: [good], watermark: 30 seconds,
         sql: "SELECT window(ts, '1 minute') w, k, sum(v) s, count(*) n FROM good GROUP BY 1, 2"}
      - {name: totals, from: [sums], sql: "SELECT window(w, '5 minutes') w5, sum(s) s, sum(n) n FROM sums GROUP BY 1",
         watermark: 0 seconds}
    sink: {from: totals, format: parquet, path: out/totals}
  - name: joined
    operators:
      - {name: l, from: [left], sql: "SELECT * FROM left WHERE v % 3 = 0"}
      - {name: pairs, from: [l, right], watermark: 30 seconds,
         sql: "SELECT l.ts, l.k, l.v, r.v rv FROM l JOIN right r ON l.k = r.k
               AND r.ts BETWEEN l.ts - INTERVAL 2 SECONDS AND l.ts + INTERVAL 2 SECONDS"}
    sink: {from: pairs, format: parquet, path: out/pairs}
"""
SINKS = {"plain": ("shape", "small"), "windowed": ("totals",), "joined": ("pairs",)}
OPERATORS = (
    "plain.keep",
    "plain.shape",
    "plain.small",
    "windowed.all",
    "windowed.good",
    "windowed.sums",
    "windowed.totals",
    "joined.l",
    "joined.pairs",
)


def seeds_asked(least: int, most: int) -> range:
    """The seeds of a long check: all of them, or the first so many that WEFT_SEEDS asks for."""
    return range(least, min(most, least + int(os.environ.get("WEFT_SEEDS", most - least))))


def make(folder: Path, seed: int, records: int, rate_per_s: int, moves: int = 0, text: str = FILE) -> Deployment:
    """The deployment with its recordings; records are late by less than the declared delay.

    With `moves`, the file's own scenario moves operators about at random moments; `text` is another file over the same.
    """
    rng = random.Random(seed)
    for name in ("left", "right"):
        moment = 1_700_000_000.0
        with open(folder / f"{name}.csv", "w", encoding="utf-8") as file:
            for _ in range(records):
                moment += rng.uniform(0.0, 1.0)
                late = moment - rng.uniform(0, 29)
                stamp = datetime.fromtimestamp(late, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
                file.write(f"{stamp}Z,k{rng.randrange(20)},{rng.randrange(100)}\n")
    path = folder / "weft.yaml"
    lines = []
    for moment in sorted(rng.uniform(0, records / rate_per_s) for _ in range(moves)):
        lines.append(f"  - {{at_s: {moment:.2f}, move: {rng.choice(OPERATORS)}, to: {rng.choice(SITES)}}}\n")
    scenario = f"scenario:\n{''.join(lines)}" if lines else ""
    path.write_text(text.replace("RATE", str(rate_per_s)) + scenario)
    return weft.spec.load(path)


def rows_of(frame: Any) -> list[str]:
    """Rows as text, in an order of their own."""
    return sorted(json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in frame.collect())


def expected(session: Any, deployment: Deployment) -> dict[str, list[str]]:
    """What batch Spark gives for every sink."""
    from weft.spark.fragments.operators import apply
    from weft.spark.sources.streams import struct

    flow = dataflow(deployment)
    frames = {
        source.name: session.read.schema(struct(source.schema)).csv(str(Path(deployment.folder) / str(source.path)))
        for source in deployment.sources
    }
    for node in flow.nodes:
        inputs = {name: frames[stream] for name, stream in zip(node.operator.from_, node.inputs, strict=True)}
        frames[node.stream] = apply(node.operator, inputs, deployment.folder)
    return {outlet.sink.from_: rows_of(frames[outlet.stream]) for outlet in flow.outlets}


def delivered(session: Any, deployment: Deployment) -> dict[str, list[str]]:
    """What lies in every sink, read as anyone would: a plain glob."""
    found = {}
    for query in deployment.queries:
        for sink in query.sinks:
            files = sorted(str(path) for path in (Path(deployment.folder) / str(sink.path)).glob("*.parquet"))
            found[sink.from_] = rows_of(session.read.parquet(*files)) if files else []
    return found


def differing(found: dict[str, list[str]], wanted: dict[str, list[str]]) -> dict[str, Any]:
    """Sinks that differ, with how many rows are missing or too many."""
    from collections import Counter

    out = {}
    for name, rows in wanted.items():
        missing = Counter(rows) - Counter(found[name])
        extra = Counter(found[name]) - Counter(rows)
        if missing or extra:
            out[name] = {
                "missing": missing.total(),
                "extra": extra.total(),
                "examples": [*list(missing)[:3], *list(extra)[:3]],
            }
    return out
