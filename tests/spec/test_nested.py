"""A csv takes no structs, arrays and maps: told before Spark would, half a minute later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.spec.test_sql import deployment
from weft import spec
from weft.model import Late, Sink


def told(sql: str, format_: str = "csv", watermark: str | None = None) -> list[str]:
    made = deployment(sql, "readings", watermark)
    [query] = made.queries
    query = replace(query, sinks=(Sink("out", format_, "out"),))
    return [f"{one.field}: {one.message}" for one in spec.validate(replace(made, queries=(query,)))[0]]


@pytest.mark.parametrize(
    ("column", "what"),
    [
        ("w", "w.start"),
        ("tags", "to_json(tags)"),
        ("parts AS p", "to_json(p)"),
        ("struct(n, kwh) AS s", "to_json(s)"),
        ("split(meter, '-') AS s", "to_json(s)"),
        ("from_json(meter, 'a INT') AS s", "to_json(s)"),
        ("filter(parts, p -> p.a > 1) AS s", "to_json(s)"),
    ],
)
def test_a_nested_column_is_refused_at_a_csv_sink_with_what_to_do(column: str, what: str) -> None:
    [said] = told(f"SELECT meter, {column} FROM readings")
    assert said.startswith("queries[0].sink.format: csv holds no nested columns")
    assert "write parquet or json, or let an operator" in said
    assert f"SELECT {what}`" in said
    assert told(f"SELECT meter, {column} FROM readings", "json") == []


def test_a_window_is_refused_at_a_csv_sink_and_its_start_is_not() -> None:
    sql = "SELECT {}, count(*) AS c FROM readings GROUP BY window(ts, '1 hour')"
    [said] = told(sql.format("window"), watermark="ts")
    assert "as `SELECT window.start`" in said
    assert told(sql.format("window.start AS s"), watermark="ts") == []


def test_what_may_be_flat_is_left_to_spark() -> None:
    assert told("SELECT parts[0].b AS p, greatest(n, 1) AS g, to_json(tags) AS t, size(parts) AS n FROM readings") == []


def test_late_records_with_nested_columns_are_refused_as_csv() -> None:
    made = deployment(
        "SELECT window(ts, '1 hour').start AS s, count(*) AS c FROM readings GROUP BY 1", "readings", "ts"
    )
    [query] = made.queries
    for format_, expected in (("csv", ["queries[0].operators[0].late.format"]), ("json", [])):
        operator = replace(query.operators[0], late=Late("late", format_))
        errors, _ = spec.validate(replace(made, queries=(replace(query, operators=(operator,)),)))
        assert [one.field for one in errors] == expected


def test_a_csv_source_with_nested_columns_is_refused() -> None:
    made = deployment("SELECT meter FROM readings", "readings")
    [source] = made.sources
    source = replace(source, format="csv", path="*.csv", arrivals=None, schema=spec.ddl("meter STRING, a ARRAY<INT>"))
    errors, _ = spec.validate(replace(made, sources=(replace(source, event_time=None),)))
    assert "declare it STRING" in next(one.message for one in errors if one.field == "sources[0].schema")
