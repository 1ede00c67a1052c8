"""From topics to topics: records of a broker are read once each, and resumed where results were written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.spark.kafka import brokers
from weft.bodies.live.opening import Opening, Options
from weft.bodies.live.run import Run
from weft.bodies.live.state import CannotRun, State
from weft.spark.kafka import client

pytestmark = pytest.mark.spark

FILE = """
weft: 1
sites: [{{name: edge}}, {{name: core}}]
links: [{{from: edge, to: core, delay_ms: 1}}]
sources:
  - {{name: readings, site: edge, format: kafka, schema: "ts TIMESTAMP, k STRING, v BIGINT", bad_records: skip,
     options: {{kafka.bootstrap.servers: "{boot}", subscribe: {source}}}, event_time: ts}}
queries:
  - name: big
    promise: {{latency_ms: 600000}}
    operators:
      - {{name: good, from: [readings], sql: "SELECT * FROM readings WHERE v >= 10"}}
      - {{name: half, from: [good], sql: "SELECT k, v, ts FROM good WHERE v % 2 = 0", site: core}}
    sink:
      - {{from: half, format: kafka, exact: true, key: k,
         options: {{kafka.bootstrap.servers: "{boot}", topic: {exact}}}}}
      - {{from: good, format: kafka, options: {{kafka.bootstrap.servers: "{boot}", topic: {plain}}}}}
"""
RUN_S_MAX = 600.0


def until(read: int, wanted: dict[str, int]) -> Callable[[Run], None]:
    """Ends a run when so many records were read, by Spark's count, and its sinks hold so many."""

    def watch(run: Run) -> None:
        held = all(run.meter.sinks.get(sink, 0) >= records for sink, records in wanted.items())
        if held and run.meter.source("readings") >= read:
            run.stop()

    return watch


def record(v: int) -> bytes:
    return json.dumps({"ts": f"2024-01-01T00:00:{v % 60:02d}Z", "k": f"k{v % 3}", "v": v}).encode()


def test_a_topic_is_read_filtered_and_written_once_each_and_goes_on(spark: Any, folder: Path) -> None:
    source, exact, plain = brokers.topic("source", 2), brokers.topic("exact", 2), brokers.topic("plain")
    brokers.fill(source, [record(v) for v in range(60)], partition=0)
    brokers.fill(source, [b"{no json", b'{"v": "many"}', *(record(v) for v in range(60, 100))], partition=1)
    file = folder / "weft.yaml"
    file.write_text(FILE.format(boot=brokers.broker().bootstrap, source=source, exact=exact, plain=plain))
    options = Options(seconds=RUN_S_MAX)
    summary = Run(weft.spec.load(file), folder / ".weft", options).go(until(102, {"big.1": 45, "big.2": 90}))
    told = summary["queries"]["big"]
    assert (told["records_in"], told["bad_records"], told["records_out"]) == (102, 2, 135)
    assert told["latency_ms"]["p50"] > 0  # from the moment that Kafka keeps with each record
    assert values(exact, 2) == [v for v in range(10, 100) if v % 2 == 0]
    assert {message.key() for message in brokers.held(exact, 2)} == {b"k0", b"k1", b"k2"}

    brokers.fill(source, [record(v) for v in range(100, 140)], partition=0)
    again = Run(weft.spec.load(file), folder / ".weft", options).go(until(142, {"big.1": 65, "big.2": 130}))
    assert again["queries"]["big"]["records_in"] == 142
    assert values(exact, 2) == [v for v in range(10, 140) if v % 2 == 0]
    assert values(plain, 1) == list(range(10, 140))


def values(topic: str, partitions: int) -> list[int]:
    return sorted(json.loads(message.value())["v"] for message in brokers.held(topic, partitions))


def test_what_is_not_there_is_refused_before_anything_starts(folder: Path) -> None:
    boot, known = brokers.broker().bootstrap, brokers.topic("known")
    file = folder / "weft.yaml"
    file.write_text(FILE.format(boot=boot, source="readigns", exact=known, plain=known))
    with pytest.raises(CannotRun, match="source readings: there is no topic readigns: make what is missing"):
        Run(weft.spec.load(file), folder / ".weft", Options(seconds=1)).go()
    file.write_text(FILE.format(boot=boot, source=known, exact=known, plain="elsewhere"))
    with pytest.raises(CannotRun, match="sink of big: there is no topic elsewhere"):
        Run(weft.spec.load(file), folder / ".weft", Options(seconds=1)).go()
    assert not (folder / ".weft").exists()


BETWEEN = """
weft: 1
sites: [{{name: edge}}, {{name: core}}, {{name: top}}]
links: [{{from: edge, to: core, delay_ms: 1}}, {{from: core, to: top, delay_ms: 1}}]
sources:
  - {{name: played, site: edge, format: replay, path: played.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT",
     event_time: ts, arrivals: {{kind: constant, rate_per_s: 200}}}}
queries:
  - name: sums
    operators:
      - {{name: good, from: [played], sql: "SELECT * FROM played WHERE v >= 10", site: edge}}
      - {{name: total, from: [good], sql: "SELECT window(ts, '10 seconds') w, k, sum(v) AS v FROM good GROUP BY 1, 2",
         watermark: 5 seconds, site: core}}
      - {{name: big, from: [total], sql: "SELECT w.start AS at, k, v FROM total WHERE v > 0", site: top}}
    sink: {{from: big, format: json, path: out/sums}}
channels: {{kind: kafka, bootstrap: "{boot}", prefix: "{prefix}", streams: {{sums.total: folder}}}}
scenario: [{{at_s: 1, move: sums.good, to: core}}]
"""


def test_streams_between_sites_lie_in_topics_where_the_file_says_so(spark: Any, folder: Path) -> None:
    prefix = f"t{folder.name[-8:]}{id(folder)}."
    file = folder / "weft.yaml"
    file.write_text(BETWEEN.format(boot=brokers.broker().bootstrap, prefix=prefix))
    wanted: dict[tuple[int, str], int] = {}
    with open(folder / "played.csv", "w", encoding="utf-8") as lines:
        for i in range(400):
            lines.write(f"2024-01-01T00:00:{i // 10:02d}Z,k{i % 3},{i}\n")
            if i >= 10:
                wanted[i // 100, f"k{i % 3}"] = wanted.get((i // 100, f"k{i % 3}"), 0) + i
    summary = Run(weft.spec.load(file), folder / ".weft", Options(until_done=True)).go()
    found = [
        json.loads(line) for path in (folder / "out/sums").glob("*.json") for line in path.read_text().splitlines()
    ]
    assert {(int(row["at"][17:19]) // 10, row["k"]): row["v"] for row in found} == wanted
    assert len(found) == len(wanted)
    assert [move["to"] for move in summary["moves"]] == ["core"]
    own = [name for name in client.topics(brokers.conf()) if name.startswith(prefix)]
    assert any(".sums.good.d" in name for name in own)
    assert not any(".sums.total.d" in name for name in own)
    deployment = weft.spec.load(file)
    state = State(folder / ".weft", channels=deployment.channels)
    Opening(deployment, state, Options(until_done=True, fresh=True)).resume()
    assert not any(name.endswith((".m", ".d")) for name in client.topics(brokers.conf()) if name.startswith(prefix))
