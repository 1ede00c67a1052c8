"""What Spark or the planner would tell when a run starts, or at its first record, `weft check` tells before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.spec_texts import GOOD, changed, line_of, written
from tests.spec.test_sql import deployment
from weft import spec


def errors(sql: str) -> list[str]:
    return [one.message for one in spec.validate(deployment(sql, "readings"))[0]]


@pytest.mark.parametrize("where", ["kwh > 'abc'", "'x' = n", "readings.price <= '1,5'", "n > 0 AND kwh <> ''"])
def test_a_number_that_is_compared_with_other_text_is_refused(where: str) -> None:
    [said] = errors(f"SELECT meter FROM readings WHERE {where}")
    assert "is a number and" in said


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT meter FROM readings WHERE kwh > '1.5' AND n = ' 3 ' AND meter = 'abc' AND ts > '2024-01-01'",
        "SELECT meter FROM readings WHERE tags['x'] = 'a' AND parts[0].b = 'b' AND CAST(n AS STRING) = 'n'",
        "SELECT meter AS n FROM readings WHERE n = 'x' OR w.start > 'x'",
        "SELECT n FROM (SELECT meter AS n FROM readings) WHERE n = 'x'",
        "WITH readings AS (SELECT meter AS kwh FROM readings) SELECT kwh FROM readings WHERE kwh = 'x'",
    ],
)
def test_what_may_be_no_number_is_left_alone(sql: str) -> None:
    assert errors(sql) == []


def test_without_the_rules_of_ansi_nothing_is_said_of_numbers() -> None:
    from dataclasses import replace

    from weft.model import Spark

    made = deployment("SELECT meter FROM readings WHERE kwh > 'abc'", "readings")
    assert spec.validate(made)[0] != []
    assert spec.validate(replace(made, spark=Spark(conf={"spark.sql.ansi.enabled": "false"})))[0] == []


def test_a_sum_of_text_is_warned_of() -> None:
    sql = "SELECT window(ts, '1 hour') AS w, sum({}) AS s FROM readings GROUP BY 1"
    _, warnings = spec.validate(deployment(sql.format("meter"), "readings", "ts"))
    assert [one.message for one in warnings if "`meter` is a STRING" in one.message] != []
    for fine in ("kwh", "try_cast(meter AS DOUBLE)"):
        assert spec.validate(deployment(sql.format(fine), "readings", "ts"))[1] == []


LINK = "  - {from: gw-1, to: district, delay_ms: 20, bandwidth_kbps: 10000}\n"


def without_link(text: str) -> str:
    return text.replace(f"links:\n{LINK}", "").replace("  - {at_s: 10, move: suspicious.hourly, to: district}\n", "")


def test_a_pin_to_which_no_path_leads_is_told_at_its_line(folder: Path) -> None:
    text = without_link(changed("args: {kwh: 6}", "args: {kwh: 6}\n        site: district")).replace("scenario:\n", "")
    [error] = spec.check(written(folder, text)).errors
    assert (error.field, error.line) == ("queries[0].operators[2].site", line_of(text, "site: district\n    sink"))
    assert "no path of links leads from gw-1 (`hourly`) to district" in error.message


def test_a_sink_and_a_oneway_street_are_looked_at_too(folder: Path) -> None:
    text = without_link(GOOD).replace("scenario:\n", "")
    assert [one.field for one in spec.check(written(folder, text)).errors] == ["queries[0].sink.site"]
    back = GOOD.replace("{from: gw-1, to: district,", "{from: district, to: gw-1, oneway: true,")
    assert "no path of links" in spec.check(written(folder, back)).errors[0].message
    assert spec.check(written(folder, GOOD)).errors == ()


def test_sources_that_cannot_come_together_are_told() -> None:
    from dataclasses import replace

    from weft.model import Link, Site

    sql = "SELECT a.n FROM readings a JOIN bid b ON a.n = b.price"
    made = deployment(sql, "readings bid", "ts")
    far = tuple(replace(one, site="far" if one.name == "bid" else "s") for one in made.sources)
    apart = replace(made, sites=(Site("s"), Site("far")), sources=far)
    told = [one.message for one in spec.validate(apart)[0] if "no site" in one.message]
    assert told == ["no site can be reached from both s (`readings`) and far (`bid`); add links"]
    joined = replace(apart, links=(Link("s", "far"),))
    assert [one for one in spec.validate(joined)[0] if "site" in one.message] == []


def test_an_empty_folder_is_warned_of_and_a_glob_without_files_says_what_to_do(folder: Path) -> None:
    (folder / "later").mkdir()
    report = spec.check(written(folder, changed("path: data/readings-*.csv", "path: later")))
    assert report.ok
    assert "holds no files yet" in report.warnings[0].message
    [error] = spec.check(written(folder, changed("path: data/readings-*.csv", "path: later/*.csv"))).errors
    assert error.message.endswith("to start before data come, name the folder: `path: later`")


def test_keys_that_begin_with_x_hold_what_anchors_name(folder: Path) -> None:
    text = GOOD.replace("sites:\n", "x-small: &small {capacity: 1.0, quota: 0.8}\nsites:\n", 1)
    report = spec.check(written(folder, text))
    assert report.errors == ()
    assert "^x-" in spec.schema()["patternProperties"]
    assert [one.field for one in spec.check(written(folder, GOOD + "y-small: 1\n")).errors] == ["y-small"]


@pytest.mark.parametrize(("on", "asks"), [("a.n = b.price", True), ("a.n = b.price AND b.date_time > a.ts", False)])
def test_a_join_that_has_a_time_condition_is_not_told_to_add_one(on: str, asks: bool) -> None:
    made = deployment(f"SELECT a.n FROM readings a JOIN bid b ON {on}", "readings bid")
    [warning] = spec.validate(made)[1]
    assert ("time condition" in warning.message) is asks
