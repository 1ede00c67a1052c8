"""Whatever file is given, the answer is a report: soon, and without filling memory."""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spec.spec_texts import GOOD, written
from weft import spec
from weft.spec.tree import FILE_BYTES_MAX, NODES_MAX

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 10)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)

# (what the file holds, a piece of the message)
CASES = {
    "nothing": (b"", "is empty"),
    "only blanks": (b" \n\n ", "is empty"),
    "only a comment": (b"# later\n", "holds no YAML document"),
    "binary": (b"\x7fELF\x02\x00\x00\x01", "is a binary file"),
    "not UTF-8": (b"weft: 1\nsites: \xe9\n", "is not UTF-8 text (byte 0xe9)"),
    "UTF-16": ("weft: 1".encode("utf-16"), "is UTF-16 text"),
    "a control character": (b"weft: 1\nsites: \x07\n", "control characters"),
    "a list": (b"- weft: 1\n", "must be a mapping"),
    "a word": (b"weft\n", "must be a mapping"),
    "two documents": (b"weft: 1\n---\nweft: 1\n", "one document"),
    "an anchor bomb": (BOMB.encode(), f"holds more than {NODES_MAX} values"),
    "a merge bomb": (BOMB.replace("[x,", "[{k: v},").encode() + b"z: {<<: *j}\n", "values"),
    "an anchor within itself": (b"a: &a [*a]\n", "stands for nothing"),
    "brackets without end": (b"[" * 200_000, "nested more than"),
    "braces without end": (b"{a: " * 200_000, "nested more than"),
    "lists without end": (b"- " * 200_000, "nested more than"),
    "many values": (b"a: [" + b"1, " * 1_000_000 + b"1]", "values"),
    "a key that is a list": (b"? [a, b]\n: 1\n", "a key must be a word"),
    "a number without end": (b"weft: " + b"1" * 100_000, "not a number"),
    "ten megabytes": (b"x" * 10_000_000, f"at most {FILE_BYTES_MAX}"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_unusable_file_is_told_soon_and_in_little_memory(folder: Path, name: str) -> None:
    data, piece = CASES[name]
    file = written(folder, data)
    began = time.process_time()
    report = spec.check(file)
    assert time.process_time() - began < 3
    assert report.deployment is None
    assert any(piece in problem.message for problem in report.errors), report.errors
    assert all(len(problem.message) < 400 and "\n" not in problem.message for problem in report.errors)


def test_an_anchor_bomb_stays_small_in_memory(folder: Path) -> None:
    file = written(folder, BOMB)
    tracemalloc.start()
    spec.check(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_noise_of_the_greatest_size_is_told_soon(folder: Path) -> None:
    rng = random.Random(1)
    text = "".join(rng.choice("ab \n:-[]{},'\"#&*!|>%@`") for _ in range(FILE_BYTES_MAX))
    began = time.process_time()
    assert spec.check(written(folder, text)).errors
    assert time.process_time() - began < 3


def test_a_missing_file_a_folder_and_a_device_are_told(folder: Path) -> None:
    assert "no such file" in spec.check(folder / "none.yaml").errors[0].message
    assert "is a folder" in spec.check(folder).errors[0].message
    assert "not a plain file" in spec.check("/dev/zero").errors[0].message
    assert spec.check("no\0name").errors
    assert "no such file" in spec.check(folder / "rules.py" / "x.yaml").errors[0].message


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_told(folder: Path) -> None:
    file = written(folder, GOOD)
    file.chmod(0)
    assert "permissions" in spec.check(file).errors[0].message


def test_anchors_and_merge_keys_within_reason_are_read(folder: Path) -> None:
    text = GOOD.replace("{name: gw-1, ", "&one {name: gw-1, ").replace(
        "  - {name: district", "  - {<<: *one, name: gw-2}\n  - {name: district"
    )
    deployment = spec.load(written(folder, text))
    assert deployment.site("gw-2").quota == 0.8


def test_a_byte_order_mark_and_windows_line_ends_are_read(folder: Path) -> None:
    assert spec.check(written(folder, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())).ok


def test_long_and_deep_sql_is_told_soon(folder: Path) -> None:
    for inside in ("(" * 5_000 + "kwh" + ")" * 5_000, "kwh+" * 20_000 + "kwh", "x" * 200_000):
        text = GOOD.replace("SELECT * FROM readings", f"SELECT ts, meter, {inside} AS kwh FROM readings")
        began = time.process_time()
        report = spec.check(written(folder, text))
        assert time.process_time() - began < 10
        assert all(len(problem.message) < 600 for problem in report.errors)


FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
WORDS = st.sampled_from(
    [
        "weft",
        "sites",
        "name",
        "sources",
        "queries",
        "operators",
        "sink",
        "from",
        "sql",
        "call",
        "watermark",
        "cost_ms",
        "format",
        "csv",
        "rate",
        "path",
        "schema",
        "ts TIMESTAMP",
        "control",
        "place",
        "order",
        "scenario",
        "at_s",
        "rate",
        "arrivals",
        "kind",
        "trace",
        "partition",
        "SELECT * FROM a",
        "10 minutes",
        "a",
        "b",
        "links",
        "to",
        "args",
        "rules:joined",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=25
)


@FUZZ
@given(text=st.text(max_size=300) | st.binary(max_size=300))
def test_any_text_gives_a_report(folder: Path, text: str | bytes) -> None:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    assert isinstance(spec.check(written(folder, data)), spec.Report)


@FUZZ
@given(value=VALUES)
def test_any_yaml_value_gives_a_report(folder: Path, value: object) -> None:
    import yaml

    assert isinstance(spec.check(written(folder, yaml.safe_dump(value))), spec.Report)


TOP = st.sampled_from(["sites", "links", "sources", "queries", "control", "scenario"])


@FUZZ
@given(key=TOP, value=VALUES)
def test_any_value_in_a_section_gives_errors_with_lines(folder: Path, key: str, value: object) -> None:
    import yaml

    whole = yaml.safe_load(GOOD) | {key: value}
    report = spec.check(written(folder, yaml.safe_dump(whole)))
    assert all(problem.line is not None and problem.field for problem in report.errors)


@FUZZ
@given(where=st.integers(0, len(GOOD)), text=st.text(max_size=5), cut=st.integers(0, 30))
def test_any_small_change_of_a_good_file_gives_a_report(folder: Path, where: int, text: str, cut: int) -> None:
    changed = GOOD[:where] + text + GOOD[where + cut :]
    report = spec.check(written(folder, changed.encode("utf-8", "surrogatepass")))
    assert report.ok == (report.deployment is not None)


@FUZZ
@given(
    sql=st.lists(
        st.sampled_from(
            [
                "SELECT",
                "*",
                "FROM",
                "readings",
                "kwh",
                ",",
                "(",
                ")",
                "GROUP BY",
                "1",
                "window(ts, '1 hour')",
                "AS",
                "w",
                "JOIN",
                "ON",
                "=",
                "UNION ALL",
                "WITH",
                "x",
                "sum(kwh)",
                "OVER",
                "LATERAL VIEW",
                "explode(kwh)",
                ".",
                "'",
                "WHERE",
                "DISTINCT",
            ]
        ),
        max_size=14,
    )
)
def test_any_words_as_sql_give_a_report(folder: Path, sql: list[str]) -> None:
    import json

    text = GOOD.replace("SELECT * FROM readings WHERE kwh >= 0", json.dumps(" ".join(sql)))
    assert isinstance(spec.check(written(folder, text)), spec.Report)
