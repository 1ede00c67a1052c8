"""What a file may say of Kafka: enough to find the records, and nothing by which some would be missing or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft import spec

FILE = """
weft: 1
sites: [{name: a}]
sources:
  - name: readings
    site: a
    format: kafka
    schema: "ts TIMESTAMP, k STRING, v BIGINT"
    options: {kafka.bootstrap.servers: "127.0.0.1:9092", subscribe: readings}
queries:
  - name: q
    operators:
      - {name: big, from: [readings], sql: "SELECT * FROM readings WHERE v > 1"}
    sink: {from: big, format: kafka, exact: true, options: {kafka.bootstrap.servers: "127.0.0.1:9092", topic: out}}
"""
SOURCE, SINK = "sources[0].options", "queries[0].sink"


def checked(folder: Path, text: str) -> spec.Report:
    file = folder / "weft.yaml"
    file.write_text(text)
    return spec.check(file)


def test_a_file_from_topic_to_topic_is_right_and_comes_back_as_it_was(folder: Path) -> None:
    report = checked(folder, FILE)
    assert (report.errors, report.warnings) == ((), ())
    assert report.deployment is not None
    assert report.deployment.sources[0].facts.endless
    plain = spec.as_plain(report.deployment)
    assert plain["queries"][0]["sink"]["exact"] is True
    assert "value" not in plain["sources"][0]


def test_a_sink_that_may_double_records_says_so(folder: Path) -> None:
    report = checked(folder, FILE.replace("exact: true, ", ""))
    assert report.ok
    assert [(one.field, one.message[:14]) for one in report.warnings] == [(SINK, "at least once:")]


@pytest.mark.parametrize(
    ("old", "new", "field", "piece"),
    [
        ("{S}", "{S}, failOnDataLoss: false", f"{SOURCE}.failOnDataLoss", "missing without a word"),
        ("{S}", "{S}, startingOffsets: latest", f"{SOURCE}.startingOffsets", "pass over what came"),
        ("{S}", "{S}, startingOffsets: soon", f"{SOURCE}.startingOffsets", "must be earliest"),
        ("{S}", "{S}, endingOffsets: latest", f"{SOURCE}.endingOffsets", "read on and on"),
        ("{S}", "{S}, kafka.auto.offset.reset: latest", f"{SOURCE}.kafka.auto.offset.reset", "the run itself"),
        ("{S}", "{S}, kafka.isolation.level: read_uncommitted", f"{SOURCE}.kafka.isolation.level", "taken back"),
        ("{S}", "{S}, subscribePattern: r.*", SOURCE, "found subscribe and subscribePattern"),
        ("{S}", "subscribee: readings", f"{SOURCE}.subscribee", "did you mean `subscribe`?"),
        ("{S}", "{S}, mode: DROPMALFORMED", f"{SOURCE}.mode", "bad_records"),
        ('kafka.bootstrap.servers: "127.0.0.1:9092", {S}', "{S}", SOURCE, "must name a broker"),
        ("format: kafka\n", "format: kafka\n    path: in\n", "sources[0].path", "has no path"),
        ("format: kafka\n", "format: kafka\n    value: raw\n", "sources[0].schema", "gives the columns key, value"),
        ("topic: out", "topics: out", f"{SINK}.options", "must name the topic"),
        ("topic: out", "topic: out, kafka.acks: 1", f"{SINK}.options.kafka.acks", "lost, doubled"),
        ("topic: out", "topic: out, kafka.transactional.id: x", f"{SINK}.options.kafka.transactional.id", "exact:"),
        ("format: kafka, exact: true", "format: parquet, path: out, exact: true", f"{SINK}.exact", "is for Kafka"),
    ],
)  # fmt: skip
def test_what_would_lose_or_double_records_is_refused(folder: Path, old: str, new: str, field: str, piece: str) -> None:
    old, new = (text.replace("{S}", "subscribe: readings") for text in (old, new))
    assert old in FILE
    report = checked(folder, FILE.replace(old, new, 1))
    assert {one.field for one in report.errors if piece in one.message} == {field}, report.errors


@pytest.mark.parametrize(
    ("channels", "piece"),
    [
        ('{kind: mirror, bootstrap: "127.0.0.1:9092", streams: {q.big: kafka}}', ""),
        ("{kind: mirror, streams: {q.big: folder}}", "do not go together"),
        ("{kind: mirror, streams: {q.big: kafka}}", "say where the broker is"),
    ],
)
def test_streams_of_one_deployment_may_be_of_kinds_that_go_together(folder: Path, channels: str, piece: str) -> None:
    report = checked(folder, f"{FILE}channels: {channels}\n")
    assert [piece in one.message for one in report.errors] == ([True] if piece else [])
