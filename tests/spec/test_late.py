"""`late` names a folder for what a watermark leaves out; where nothing can be left out it is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.spec_texts import changed, line_of, written
from weft import spec
from weft.model import Late, late_outlets

WATERMARK = "        watermark: 10 minutes\n"
VALID = "        sql: SELECT * FROM readings WHERE kwh >= 0\n"


def with_late(text: str) -> str:
    return changed(WATERMARK, f"{WATERMARK}        late: {text}\n")


def test_an_operator_with_a_watermark_keeps_what_it_leaves_out(folder: Path) -> None:
    file = written(folder, with_late("{to: out/late}"))
    assert not spec.check(file).errors
    deployment = spec.load(file)
    query = deployment.queries[0]
    assert query.operator("hourly").late == Late("out/late")
    (outlet,) = late_outlets(query, query.operator("hourly"))
    assert outlet.sink is not None
    assert (outlet.name, outlet.input, outlet.sink.path) == ("suspicious.hourly.late", "valid", "out/late")
    assert spec.as_plain(deployment)["queries"][0]["operators"][1]["late"] == {"to": "out/late"}


@pytest.mark.parametrize(
    ("text", "field", "piece"),
    [
        (with_late("{to: out/suspicious}"), "late.to", "is also the folder of queries[0].sink"),
        (with_late("{to: out/suspicious/late}"), "late.to", "lies in the folder of queries[0].sink"),
        (with_late("{to: data}"), "late.to", "holds what the source `readings` reads"),
        (with_late("{to: .weft/late}"), "late.to", "lies in the state folder"),
        (with_late("{to: out/late, format: console}"), "late.format", "console"),
        (with_late("{to: out/late, options: {path: x}}"), "late.options.path", "the place is `path`"),
        (with_late("{format: csv}"), "late.to", "is missing"),
        (with_late("{to: out/late}\n        order: true"), "late", "`order` puts"),
    ],
)
def test_a_folder_of_late_records_is_refused_like_that_of_any_sink(
    folder: Path, text: str, field: str, piece: str
) -> None:
    (problem,) = spec.check(written(folder, text)).errors
    assert problem.field == f"queries[0].operators[1].{field}"
    assert piece in problem.message


def test_an_operator_that_keeps_no_state_leaves_nothing_out(folder: Path) -> None:
    text = changed(VALID, f"{VALID}        late: {{to: out/late}}\n")
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == ("queries[0].operators[0].late", line_of(text, "late:"))
    assert "keeps no state" in problem.message


@pytest.mark.parametrize(
    ("statement", "piece"),
    [
        ("SELECT v.* FROM valid v LEFT ANTI JOIN readings r ON v.meter = r.meter", "LEFT OUTER JOIN"),
        ("SELECT meter FROM valid EXCEPT SELECT meter FROM readings", "no EXCEPT of streams; write a LEFT OUTER JOIN"),
        ("SELECT meter FROM valid INTERSECT SELECT meter FROM readings", "no INTERSECT of streams; write a LEFT SEMI"),
    ],
)
def test_what_spark_does_to_no_two_streams_is_told_before_it_starts(folder: Path, statement: str, piece: str) -> None:
    windows = "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2"
    text = changed(
        f"        from: [valid]\n        sql: {windows}", f"        from: [valid, readings]\n        sql: {statement}"
    )
    errors = [one for one in spec.check(written(folder, text)).errors if one.field.endswith(".sql")]
    assert any(piece in one.message for one in errors), errors
    assert all(one.field == "queries[0].operators[1].sql" for one in errors)
    kept = changed("SELECT * FROM readings WHERE", "SELECT * EXCEPT (odd) FROM readings WHERE")
    assert not any("EXCEPT" in one.message for one in spec.check(written(folder, kept)).errors)
