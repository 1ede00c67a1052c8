"""A small deployment to break: text with one thing changed, and its folder of data."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
weft: 1
sites:
  - {name: gw-1, capacity: 1.0, quota: 0.8, parent: district}
  - {name: district, capacity: 2.0}
links:
  - {from: gw-1, to: district, delay_ms: 20, bandwidth_kbps: 10000}
sources:
  - name: readings
    site: gw-1
    format: csv
    path: data/readings-*.csv
    schema: "ts TIMESTAMP, meter STRING, kwh DOUBLE"
    event_time: ts
    arrivals: {kind: poisson, rate_per_s: 200}
queries:
  - name: suspicious
    promise: {latency_ms: 5000}
    operators:
      - name: valid
        from: [readings]
        sql: SELECT * FROM readings WHERE kwh >= 0
      - name: hourly
        from: [valid]
        sql: SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2
        watermark: 10 minutes
      - name: high
        from: [hourly]
        call: "rules:over_threshold"
        args: {kwh: 6}
    sink: {from: high, site: district, format: parquet, path: out/suspicious}
control:
  place: {policy: near}
scenario:
  - {at_s: 10, move: suspicious.hourly, to: district}
"""

RULES = """\
raise RuntimeError("a check must not run this")

def over_threshold(hourly, kwh=3.0):
    return hourly

def joined(left, right, *, within):
    return left

async def later(df):
    return df
"""


def folder_with_data(folder: Path) -> Path:
    """A folder with what the small deployment reads."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "readings-1.csv").write_text("2024-01-01T00:00:00Z,m1,1.5\n")
    (folder / "rules.py").write_text(RULES)
    return folder


def written(folder: Path, text: str | bytes) -> Path:
    """The text as a deployment file in that folder."""
    file = folder / "deployment.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def changed(old: str, new: str) -> str:
    """The good text with one thing changed."""
    assert GOOD.count(old) >= 1, old
    return GOOD.replace(old, new, 1)


def line_of(text: str, part: str) -> int:
    """The line on which a part of a text stands."""
    assert part in text, part
    return text[: text.index(part)].count("\n") + 1
