"""Functions that Spark does not have are told before it starts, and no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spec.spec_texts import GOOD, written
from tests.spec.test_sql import deployment
from weft import spec
from weft.model import Spark

BEHIND = "\n        sql: SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2"


def told(sql: str, conf: dict[str, str] | None = None) -> list[str]:
    made = replace(deployment(sql, "readings", "ts"), spark=Spark(conf=conf or {}))
    return [one.message for one in spec.validate(made)[0]]


@pytest.mark.parametrize(
    ("sql", "name", "meant"),
    [
        ("SELECT window(ts, '1 hour') w, summ(kwh) s FROM readings GROUP BY 1", "summ", "sum"),
        ("SELECT meter FROM readings WHERE uper(meter) = 'X'", "uper", "upper"),
        # Another system's, which the parser knows.
        ("SELECT approx_distinct(n) s FROM readings", "approx_distinct", "approx_count_distinct"),
        ("SELECT meter, p FROM readings LATERAL VIEW explod(parts) t AS p", "explod", "explode"),
        ("SELECT transform(parts, p -> absolut(p.a)) AS a FROM readings", "absolut", "abs"),
        ("WITH big AS (SELECT rownd(kwh) AS k FROM readings) SELECT k FROM big", "rownd", "round"),
    ],
)
def test_a_function_that_spark_does_not_have_is_told_with_the_nearest(sql: str, name: str, meant: str) -> None:
    [said] = [one for one in told(sql) if "function" in one]
    assert said.startswith(f"Spark has no function `{name}`")
    assert said.endswith(f"; did you mean `{meant}`?")


def test_it_is_told_on_its_line(folder: Path) -> None:
    text = GOOD.replace(
        BEHIND, BEHIND.replace(": SELECT", ": |\n          SELECT").replace(", sum(", ",\n            summ(")
    )
    [error] = spec.check(written(folder, text)).errors
    assert text.splitlines()[(error.line or 0) - 1].strip().startswith("summ(")


@pytest.mark.parametrize(
    "called",
    [
        "session.risk(kwh)",
        "default.risk(kwh)",
        "builtin.abs(kwh)",
        "{fn abs(kwh)}",
        "bigint(kwh)",
        "`abs`(kwh)",
        "try_cast(meter AS INT)",
        "trim(BOTH 'x' FROM meter)",
        "position('x' IN meter)",
        "overlay(meter PLACING 'x' FROM 1)",
        "extract(HOUR FROM ts)",
        "timestampdiff(MINUTE, ts, w.end)",
        "identifier('abs')(kwh)",
    ],
)
def test_what_spark_takes_is_no_unknown_function(called: str) -> None:
    assert [one for one in told(f"SELECT {called} AS a FROM readings") if "function" in one] == []


def test_hints_are_no_functions() -> None:
    assert told("SELECT /*+ REPARTITION(3), REBALANCE(meter) */ meter FROM readings") == []


def test_functions_that_settings_bring_are_not_looked_for() -> None:
    sql = "SELECT st_buffer(meter, 3) AS a FROM readings"
    assert told(sql) != []
    assert told(sql, {"spark.sql.extensions": "org.apache.sedona.sql.SedonaSqlExtensions"}) == []


@pytest.mark.spark
def test_the_list_holds_every_function_of_the_spark_that_is_installed(spark: Any) -> None:
    from weft.spec.spark_functions import FUNCTIONS

    rows = spark.sql("SHOW SYSTEM FUNCTIONS").collect()
    names = {row.function for row in rows if row.function.replace("_", "a").isalnum()}
    assert names == FUNCTIONS
