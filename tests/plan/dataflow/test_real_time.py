"""Which queries run record by record: by what they promise, and by what Spark can do."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft.spec
from weft.model import Deployment
from weft.plan import place
from weft.plan.dataflow.real_time import real_time, real_time_notes, with_real_time

FILE = """
weft: 1
sites: [{name: edge}, {name: core}]
links: [{from: edge, to: core, delay_ms: 1}]
sources:
  - name: readings
    site: edge
    format: kafka
    schema: "ts TIMESTAMP, k STRING, v BIGINT"
    event_time: ts
    options: {kafka.bootstrap.servers: "127.0.0.1:9092", subscribe: readings}
queries:
  - name: q
    promise: {latency_ms: 200}
    operators:
      - {name: big, from: [readings], sql: "SELECT * FROM readings WHERE v > 1"}
      - {name: last, from: [big], sql: "SELECT k, v FROM big"}
    sink: {from: last, format: kafka, mode: append, options: {kafka.bootstrap.servers: "127.0.0.1:9092", topic: out}}
"""
COUNT = "SELECT window(ts, '1 second') w, k, count(*) v FROM big GROUP BY 1, 2"


def deployment(folder: Path, *changes: tuple[str, str]) -> Deployment:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "weft.yaml").write_text(text)
    return weft.spec.load(folder / "weft.yaml")


def test_milliseconds_from_topic_to_topic_choose_it_and_hold_all_at_the_source(folder: Path) -> None:
    found = deployment(folder)
    assert real_time(found) == ("q",)
    assert real_time_notes(found) == ["q: runs record by record (Spark's real-time mode), results at least once"]
    placed = place(with_real_time(found))
    assert {placed.homes[f"q.{name}"] for name in ("big", "last")} == {"edge"}


def test_a_window_does_where_its_sink_takes_changes(folder: Path) -> None:
    windowed = (('SELECT k, v FROM big"', f'{COUNT}", watermark: 1 second'), ("mode: append", "mode: update"))
    assert real_time(deployment(folder, *windowed)) == ("q",)


def test_who_promises_seconds_is_left_alone(folder: Path) -> None:
    found = deployment(folder, ("latency_ms: 200", "latency_ms: 2000"))
    assert (real_time(found), real_time_notes(found)) == ((), [])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("format: kafka, mode", "format: kafka, exact: true, mode", "its sink is exact"),
        ("event_time: ts", "event_time: ts\n    bad_records: skip", "counts bad records"),
        ('sql: "SELECT k, v FROM big"', 'sql: "SELECT k, v FROM big", site: core', "spread over the sites core, edge"),
        ('sql: "SELECT k, v FROM big"', 'call: "rules:f", schema: "k STRING"', "is a Python function"),
        ('SELECT k, v FROM big"', f'{COUNT}", watermark: 1 second', "say `mode: update` on its sink"),
    ],
)
def test_what_spark_cannot_do_so_is_told_with_its_reason(folder: Path, old: str, new: str, why: str) -> None:
    (folder / "rules.py").write_text("def f(df):\n    return df\n")
    found = deployment(folder, (old, new))
    assert real_time(found) == ()
    assert with_real_time(found) == found
    assert [why in note and note.startswith("q: promises milliseconds") for note in real_time_notes(found)] == [True]
