"""A query may read a stream of another: how it is written, what it means, and what is told where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from weft import spec
from weft.spec.sql import SqlError, parsed

FILE = """
weft: 1
sites: [{name: x}]
sources:
  - name: readings
    site: x
    format: rate
    schema: ts TIMESTAMP, meter STRING, kwh DOUBLE
    event_time: ts
    arrivals: {kind: constant, rate_per_s: 1}
queries:
  - name: south
    operators:
      - name: high
        from: [FROM]
        sql: >
          SQL
    sink: {from: high, format: console}
  - name: north
    operators:
      - {name: valid, from: readings, sql: SELECT * FROM readings WHERE kwh >= 0}
      - name: hourly
        from: valid
        watermark: 1 minute
        sql: SELECT window(ts, '1 hour') AS hour, meter, sum(kwh) AS kwh FROM valid GROUP BY 1, 2
    sink: {from: hourly, format: console}
"""


def written(tmp_path: Path, inputs: str, sql: str, *changes: tuple[str, str]) -> spec.Report:
    text = FILE.replace("FROM]", f"{inputs}]").replace("          SQL", f"          {sql}")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "file.yaml").write_text(text)
    return spec.check(tmp_path / "file.yaml")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT meter, kwh FROM north.valid WHERE kwh > 9",
        "SELECT valid.meter, valid.kwh FROM north.valid",
        "SELECT v.meter, kwh FROM north . valid AS v",
        "SELECT v.meter, kwh FROM north.`valid` v",
        "SELECT v.meter, kwh FROM `north.valid` v",
        "SELECT meter, valid.kwh FROM `north.valid`",
        "SELECT meter, kwh FROM NORTH.Valid",
        "WITH big AS (SELECT * FROM north.valid WHERE kwh > 9) SELECT meter, kwh FROM big",
        "SELECT meter, kwh FROM (SELECT * FROM north.valid) UNION ALL SELECT meter, kwh FROM north.valid v",
    ],
)
def test_a_stream_of_another_query_is_read_as_a_table_of_it(tmp_path: Path, sql: str) -> None:
    report = written(tmp_path, "north.valid", sql)
    assert report.deployment is not None, report.errors
    operator = report.deployment.query("south").operator("high")
    assert operator.from_ == ("north.valid",)
    assert {table.name for table in parsed(operator.sql or "").find_all(exp.Table)} - {"big"} == {"north.valid"}
    assert spec.columns(report.deployment)["south.high"] == spec.ddl("meter STRING, kwh DOUBLE")
    # What was read once is read the same way again, from Python as well.
    again = spec.with_named_reads(report.deployment)
    assert again is report.deployment
    assert spec.validate(again) == ([], list(report.warnings))


def test_event_time_and_watermarks_go_over_from_one_query_to_the_other(tmp_path: Path) -> None:
    counts = "SELECT window(ts, '1 day') AS day, count(1) AS n FROM north.valid GROUP BY 1"
    marked = ("from: [north.valid]", "watermark: 1 minute\n        from: [north.valid]")
    found = written(tmp_path, "north.valid", counts, marked)
    assert found.errors == ()
    told = written(tmp_path, "north.valid", counts).errors
    assert [(one.field, "ends its windows only with a watermark" in one.message) for one in told] == [
        ("queries[0].operators[0].watermark", True)
    ]
    days = "SELECT window(hour, '1 day') AS day, sum(kwh) AS kwh FROM north.hourly GROUP BY 1"
    marked = ("from: [north.hourly]", "watermark: {north.hourly: 1 minute}\n        from: [north.hourly]")
    assert written(tmp_path, "north.hourly", days, marked).errors == ()


@pytest.mark.parametrize(
    ("inputs", "sql", "field", "says"),
    [
        ("noth.valid", "SELECT 1 AS a FROM noth.valid", "from[0]",
         "no query is called `noth`; there are: north; did you mean `north`?"),
        ("north.valit", "SELECT 1 AS a FROM north.valit", "from[0]",
         "query `north` has no operator `valit`; it has: valid, hourly; did you mean `valid`?"),
        ("valid", "SELECT 1 AS a FROM valid", "from[0]",
         "`valid` is an operator of another query; write `north.valid`"),
        ("south.high", "SELECT 1 AS a FROM high", "from[0]", "`high` is an operator of this query; write `high`"),
        ("north.valid", "SELECT kw FROM north.valid", "sql",
         "there is no column `kw`; there are: ts, meter, kwh; did you mean `kwh`?"),
        ("north.valid", "SELECT kwh FROM north.hourly", "sql",
         "reads `north.hourly`, which is not among its inputs: north.valid"),
        ("readings", "SELECT kwh FROM north.valid", "sql",
         "reads `north.valid`, which is not among its inputs: readings; add it to `from`, or read one of those"),
        ("north.valid, north.hourly", "SELECT 1 AS a FROM north.valid JOIN north.hourly AS valid ON true", "sql",
         "calls both `north.valid` and `north.hourly` by one name; give them names of their own with AS"),
        ("north.valid, north.valid", "SELECT kwh FROM north.valid", "from[1]", "stands twice"),
    ],
)  # fmt: skip
def test_what_is_no_stream_of_another_query_is_told(
    tmp_path: Path, inputs: str, sql: str, field: str, says: str
) -> None:
    errors = written(tmp_path, inputs, sql).errors
    assert [one.field for one in errors][:1] == [f"queries[0].operators[0].{field}"], errors
    assert says in errors[0].message
    assert errors[0].line is not None


def test_queries_cannot_read_each_other_in_a_circle(tmp_path: Path) -> None:
    there = "from: readings, sql: SELECT * FROM readings WHERE kwh >= 0"
    back = (there, "from: south.high, sql: SELECT * FROM south.high")
    errors = written(tmp_path, "north.valid", "SELECT * FROM north.valid", back).errors
    assert [(one.line, one.field) for one in errors] == [(15, "queries[0].operators[0].from")]
    assert "go round: south.high -> north.valid -> south.high" in errors[0].message
    # They may read each other where no record comes round.
    both = "FROM (SELECT * FROM valid UNION ALL SELECT * FROM south.high) GROUP BY"
    more = (("from: valid\n", "from: [valid, south.high]\n"), ("FROM valid GROUP BY", both))
    assert written(tmp_path, "north.valid", "SELECT * FROM north.valid", *more).errors == ()


def test_a_stream_in_update_mode_is_read_by_no_other_query(tmp_path: Path) -> None:
    update = ("sink: {from: hourly, format: console}", "sink: {from: hourly, format: console, mode: update}")
    errors = written(tmp_path, "north.hourly", "SELECT meter, kwh FROM north.hourly", update).errors
    assert [one.field for one in errors] == ["queries[1].sink.mode"]
    assert "`hourly` in update mode may feed only a sink, but `south.high` reads it" in errors[0].message


def test_an_operator_that_only_another_query_reads_has_a_way_out(tmp_path: Path) -> None:
    only = ("sink: {from: hourly", "sink: {from: valid")
    assert written(tmp_path, "north.hourly", "SELECT meter, kwh FROM north.hourly", only).errors == ()
    errors = written(tmp_path, "north.valid", "SELECT meter, kwh FROM north.valid", only).errors
    assert ["has no way to the sink" in one.message for one in errors] == [True]


def test_a_sink_stays_within_its_query(tmp_path: Path) -> None:
    other = ("{from: high,", "{from: north.valid,")
    errors = written(tmp_path, "north.valid", "SELECT kwh FROM north.valid", other).errors
    assert "`north.valid` is of another query; put an operator between" in errors[0].message


def test_what_is_wrong_upstream_is_told_there_alone(tmp_path: Path) -> None:
    errors = written(tmp_path, "north.valid", "SELECT kwh FROM north.valid", ("kwh >= 0", "kwx >= 0")).errors
    assert [one.field for one in errors] == ["queries[1].operators[0].sql"]


def test_sql_that_cannot_be_read_is_left_as_it_is(tmp_path: Path) -> None:
    errors = written(tmp_path, "north.valid", "SELECT FROM WHERE north.valid").errors
    assert [one.field for one in errors] == ["queries[0].operators[0].sql"]
    with pytest.raises(SqlError):
        parsed("SELECT FROM WHERE north.valid")
