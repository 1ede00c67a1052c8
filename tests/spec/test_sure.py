"""What may be asked of any record, and what may fail: only expressions that are known are taken."""

from __future__ import annotations

import pytest
from sqlglot import exp

from weft.spec.folding import folded, grouped, unfolded
from weft.spec.spelling import Unclear
from weft.spec.sql import parsed
from weft.spec.sure import known, never_fails

TYPES = {"t": "TIMESTAMP", "d": "DATE", "k": "STRING", "v": "DOUBLE", "n": "BIGINT", "m": "DECIMAL(38,10)",
         "b": "BOOLEAN", "w": "STRUCT<start: TIMESTAMP>"}  # fmt: skip
READ = unfolded(list(TYPES.items()))


def expression(text: str) -> exp.Expr:
    select = parsed(f"SELECT {text} AS x FROM s")
    assert isinstance(select, exp.Select)
    return select.selects[0].unalias()


@pytest.mark.parametrize(
    "text",
    ["v > 1", "n = 3 OR k = 'a'", "k LIKE 'a%'", "t >= '2024-01-01 00:00:00'", "n % 3 = 1", "v * 2 > n", "NOT b", "b",
     "k IN ('a', 'b')", "n BETWEEN 1 AND 9", "m > 1.5", "coalesce(n, 0) > 1",
     "CASE WHEN b THEN v > 1 ELSE false END", "CAST(n AS DOUBLE) / 2 > 1", "v IS NULL", "length(k) > 2", "-v < 0"],
)  # fmt: skip
def test_a_condition_over_plain_columns_never_fails(text: str) -> None:
    assert never_fails(expression(text), READ.kinds, "truth")


@pytest.mark.parametrize(
    "text",
    [
        "1 / n > 1",
        "n + 1 > 2",
        "n / v > 1",
        "n % n = 0",
        "CAST(k AS INT) > 1",
        "-n > 1",
        "abs(n) > 1",
        "m * m > 1",
        "m / 2 > 1",
    ],
)
def test_what_may_divide_by_zero_overflow_or_be_no_number_may_fail(text: str) -> None:
    assert known(expression(text), READ.kinds).fails


@pytest.mark.parametrize(
    "text",
    ["k > 5", "t > 'soon'", "rand() > 0.5", "date_format(t, 'y') = 'x'",
     "k RLIKE '('", "w.start > t", "element_at(w, 1)",
     "n IN (1, 'a')", "k = 'a\\\\'", "1e400 > v", "nowhere > 1", "m > m", "k LIKE k", "v", "TRY_CAST(k AS INT) > 1"],
)  # fmt: skip
def test_what_is_not_known_is_not_taken(text: str) -> None:
    asked = expression(text)
    if text in ("v", "m > m"):
        assert not never_fails(asked, READ.kinds, "truth")
        return
    with pytest.raises(Unclear):
        known(asked, READ.kinds)


def test_a_column_is_followed_through_names_and_computing_and_what_is_not_known_is_not_asked_for() -> None:
    one = folded("SELECT v * 2 AS v, k AS n, date_format(t, 'y') AS year FROM s x WHERE x.v > 1", READ)
    assert one is not None
    two = folded("SELECT v + 1 AS v, n FROM kept WHERE v > 4", one)
    assert two is not None
    assert [held.sql(dialect="spark") for held in two.conditions] == ["`v` > 1", "(`v` * 2) > 4"]
    assert {name: held.sql(dialect="spark") for name, held in two.columns.items() if held is not None} == {
        "v": "(`v` * 2) + 1",
        "n": "`k`",
    }
    assert not two.carries("v")
    assert folded("SELECT * FROM kept WHERE year = '2024'", one) is None
    gone = folded("SELECT k FROM kept", one)
    assert gone is not None
    assert gone.columns == {"k": None}, "there is no such column any more: nobody may ask for it"


@pytest.mark.parametrize(
    "sql",
    ["SELECT DISTINCT k FROM s", "SELECT k FROM s LIMIT 1", "SELECT explode(array(1, 2)) AS k FROM s",
     "SELECT sum(v) AS k FROM s",
     "SELECT a.k FROM s a JOIN s b ON a.k = b.k", "SELECT k, uuid() AS id FROM s", "SELECT k FROM (SELECT k FROM s)",
     "SELECT row_number() OVER (PARTITION BY k ORDER BY v) AS k FROM s", "SELECT v + 1, k FROM s"],
)  # fmt: skip
def test_a_statement_that_says_more_is_not_folded(sql: str) -> None:
    assert folded(sql, READ) is None


@pytest.mark.parametrize(
    "sql",
    ["SELECT k, format_number(sum(v), 2) AS x FROM s GROUP BY k", "SELECT k, v AS x FROM s GROUP BY k",
     "SELECT k, median(v) AS x FROM s GROUP BY k",
     "SELECT n / n AS k, sum(v) AS x FROM s GROUP BY n / n",
     "SELECT k, date_format(max(t), 'y') AS x FROM s GROUP BY k",
     "SELECT k, sum(v) AS x FROM s GROUP BY CUBE (k)", "SELECT count(k, v) AS k, k AS x FROM s GROUP BY k"],
)  # fmt: skip
def test_a_grouping_that_says_more_is_not_taken_apart(sql: str) -> None:
    assert grouped(sql, READ, ["k", "x"]) is None


def test_a_grouping_is_taken_apart_whatever_its_keys_are_called() -> None:
    shows = "SELECT window.start AS at, k AS key, sum(v) / count(*) AS x FROM s"
    sql = f"{shows} GROUP BY window(t, '1 hour'), key HAVING x > 2"
    found = grouped(sql, READ, ["at", "key", "x"])
    assert found is not None
    assert [one.sql(dialect="spark") for one in found.keys.values()] == ["WINDOW(`t`, '1 hour')", "`k`"]
    assert [one.call.sql(dialect="spark") for one in found.measures] == ["SUM(`v`)", "COUNT(*)"]
    shown = [held.sql(dialect="spark") for _, held in found.shown]
    assert shown == ["`key 0`.start", "`key 1`", "`measure 0` / `measure 1`"]
    assert found.having is not None
    assert found.having.sql(dialect="spark") == "(`measure 0` / `measure 1`) > 2"
