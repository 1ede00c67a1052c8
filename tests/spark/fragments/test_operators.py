"""Does an operator keep state? One answer for the check, the plan and the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weft.model import Column, Constant, Deployment, Operator, Query, Sink, Site, Source
from weft.spark.fragments.analysis import analyse
from weft.spark.fragments.operators import BadOperator, apply
from weft.spec import is_stateful

COLUMNS = (Column("ts", "TIMESTAMP"), Column("n", "INT"), Column("m", "STRING"))
STATEMENTS = {
    "SELECT * FROM a WHERE n > 1": False,
    "SELECT ts FROM a UNION ALL SELECT ts FROM b": False,
    "SELECT a.ts, v.k FROM a JOIN (VALUES (1)) AS v(k) ON a.n = v.k": False,
    "SELECT window(ts, '1 hour') AS w, n FROM a": False,
    "SELECT a.ts, b.n FROM a JOIN b ON a.n = b.n": True,
    "SELECT ts, n FROM a INTERSECT SELECT ts, n FROM b": True,
    "SELECT ts, n FROM a UNION SELECT ts, n FROM b": True,
    "SELECT DISTINCT n, m FROM a": True,
    "SELECT m, count(*) AS c FROM a GROUP BY m": True,
}
CALLS = """
from pyspark.sql import DataFrame


def passed(a: DataFrame) -> DataFrame:
    return a


def counted(a: DataFrame) -> DataFrame:
    return a.groupBy("m").count()
"""


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("def op():\n    raise SystemExit(0)\n", r"operator q\.o: SystemExit: 0 \(leaving_{n}\.py:2, in op\)"),
        ("import sys\nsys.exit(3)\ndef op(): ...\n", r"operator q\.o: SystemExit: 3 \(leaving_{n}\.py:2\)"),
        ("op = 3\n", r"operator q\.o: leaving_{n}:op is not a function$"),
    ],
)
def test_a_users_code_cannot_end_the_run_without_a_word(tmp_path: Path, module: str, says: str) -> None:
    name = f"leaving_{len(module)}"
    (tmp_path / f"{name}.py").write_text(module)
    with pytest.raises(BadOperator, match=says.replace("leaving_{n}", name)):
        apply(Operator("o", (), call=f"{name}:op"), {}, str(tmp_path), query="q")


@pytest.mark.spark
def test_live_cuts_at_the_operators_that_the_check_and_the_plan_take_for_stateful(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "calls_of_state.py").write_text(CALLS)
    said = {f"o{number}": stateful for number, stateful in enumerate(STATEMENTS.values())}
    operators = [
        Operator(f"o{number}", ("a", "b") if " b" in sql else ("a",), sql=sql) for number, sql in enumerate(STATEMENTS)
    ]
    for name, call, declared, stateful in (
        ("plain", "passed", None, False),
        ("found", "counted", None, True),
        ("declared", "passed", True, True),
        ("denied", "counted", False, False),
    ):
        operators.append(Operator(name, ("a",), call=f"calls_of_state:{call}", stateful=declared))
        said[name] = stateful
    sources = tuple(Source(name, "x", "rate", COLUMNS, arrivals=Constant(1.0)) for name in "ab")
    query = Query("q", tuple(operators), (Sink("o0", "console"),))
    deployment = Deployment((Site("x"),), sources, (query,), folder=str(tmp_path))
    found = analyse(spark, deployment).stateful
    assert {one.name: f"q.{one.name}" in found for one in operators} == said
    assert {one.name: is_stateful(one) for one in operators if one.sql} == {
        f"o{n}": s for n, s in enumerate(STATEMENTS.values())
    }
