"""What an operator's SQL says about state, counts, keys and columns that come through."""

from __future__ import annotations

import pytest

from weft import spec
from weft.model import Operator, Watermark

W = "window(ts, '1 hour')"

# (the statement, stateful, changes the count, keys, the window's column, `a.ts` comes through, `b.ts` does)
CASES = [
    ("SELECT * FROM a", False, False, (), None, True, False),
    ("SELECT ts, upper(x) AS x FROM a", False, False, (), None, True, False),
    ("SELECT x.ts, x.n FROM a AS x", False, False, (), None, True, False),
    ("SELECT (ts) AS ts FROM a", False, False, (), None, True, False),
    ("SELECT ts + INTERVAL 1 HOUR AS ts FROM a", False, False, (), None, False, False),
    ("SELECT other AS ts FROM a", False, False, (), None, False, False),
    ("SELECT ts AS at FROM a", False, False, (), None, False, False),
    ("SELECT * EXCEPT (ts) FROM a", False, False, (), None, False, False),
    ("SELECT * FROM a WHERE n > 1", False, True, (), None, True, False),
    ("SELECT * FROM (SELECT *, n * 2 AS m FROM a) x", False, False, (), None, True, False),
    ("WITH a AS (SELECT ts, n FROM a) SELECT * FROM a", False, False, (), None, True, False),
    ("SELECT ts FROM a UNION ALL SELECT ts FROM b", False, True, (), None, True, True),
    ("SELECT ts, n FROM a UNION ALL SELECT tb, n FROM b", False, True, (), None, True, False),
    ("SELECT ta AS ts, n FROM a UNION ALL SELECT ts, n FROM b", False, True, (), None, False, True),
    ("SELECT ts FROM a UNION SELECT ts FROM b", True, True, (), None, True, True),
    ("SELECT ts FROM a INTERSECT SELECT ts FROM b", True, True, (), None, True, True),
    ("SELECT a.ts, b.n FROM a JOIN b ON a.n = b.n", True, True, (), None, True, False),
    ("SELECT a.ts FROM a, b WHERE a.n = b.n", True, True, (), None, True, False),
    ("SELECT x.ts FROM a x JOIN a y ON x.n = y.n", True, True, (), None, True, False),
    ("SELECT * FROM a WHERE n IN (SELECT n FROM b)", True, True, (), None, True, False),
    ("SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.n = a.n)", True, True, (), None, True, False),
    ("SELECT a.ts, v.k FROM a JOIN (VALUES (1)) AS v(k) ON a.n = v.k", False, True, (), None, True, False),
    ("SELECT ts, y FROM a LATERAL VIEW explode(x) t AS y", False, True, (), None, True, False),
    ("SELECT ts, explode(x) AS y FROM a", False, True, (), None, True, False),
    (f"SELECT {W} AS w, ts FROM a", False, True, (), "w", True, False),
    ("SELECT DISTINCT n, m FROM a", True, True, ("n", "m"), None, False, False),
    (f"SELECT {W} w, m, sum(k) k FROM a GROUP BY 1, 2", True, True, ("w", "m"), "w", False, False),
    (f"SELECT {W} AS w, count(*) c FROM a GROUP BY w", True, True, ("w",), "w", False, False),
    (f"SELECT window, m, count(*) c FROM a GROUP BY {W}, m", True, True, ("window", "m"), "window", False, False),
    (f"SELECT window.start AS s, count(*) c FROM a GROUP BY {W}", True, True, ("s",), None, False, False),
    (f"SELECT {W}.end AS e, count(*) c FROM a GROUP BY {W}", True, True, ("e",), None, False, False),
    (f"SELECT count(*) c FROM a GROUP BY {W}", True, True, (), None, False, False),
    ("SELECT m, count(*) c FROM a GROUP BY ALL", True, True, ("m",), None, False, False),
    ("SELECT upper(m) AS u, count(*) c FROM a GROUP BY upper(m)", True, True, ("u",), None, False, False),
    ("SELECT a.m, count(*) c FROM a GROUP BY m", True, True, ("m",), None, False, False),
    ("SELECT m, count(*) c FROM a GROUP BY m WITH ROLLUP", True, True, (), None, False, False),
    ("SELECT count(*) c FROM a", True, True, (), None, False, False),
    ("SELECT ts, count(*) c FROM a GROUP BY ts", True, True, ("ts",), None, True, False),
    ("SELECT percentile_approx(k, 0.5) AS p FROM a", True, True, (), None, False, False),
    (
        f"WITH x AS (SELECT {W} AS w, m, count(*) c FROM a GROUP BY 1, 2) SELECT w AS v, m, c FROM x WHERE c > 1",
        True,
        True,
        ("v", "m"),
        "v",
        False,
        False,
    ),
    (f"SELECT * FROM (SELECT {W} AS w, count(*) c FROM a GROUP BY 1) x", True, True, ("w",), "w", False, False),
    ("SELECT row_number() OVER (PARTITION BY n ORDER BY ts) AS r, ts FROM a", True, False, (), None, True, False),
]


@pytest.mark.parametrize(("sql", "stateful", "changes", "keys", "window", "a", "b"), CASES, ids=[c[0] for c in CASES])
def test_the_facts_of_a_statement(
    sql: str, stateful: bool, changes: bool, keys: tuple[str, ...], window: str | None, a: bool, b: bool
) -> None:
    operator = Operator("o", ("a", "b"), sql=sql)
    assert spec.is_stateful(operator) == stateful
    assert spec.changes_count(operator) == changes
    assert spec.keys_of(operator) == keys
    assert spec.window_column_of(operator) == window
    assert spec.passes_through(operator, "a", "ts") == a
    assert spec.passes_through(operator, "b", "ts") == b


def test_known_columns_tell_apart_what_a_join_leaves_open() -> None:
    operator = Operator("o", ("a", "b"), sql="SELECT ts, m FROM a JOIN b ON a.n = b.k")
    assert not spec.passes_through(operator, "a", "ts")
    assert spec.passes_through(operator, "a", "ts", {"a": ("ts", "n"), "b": ("k", "m")})


def test_a_call_says_itself_whether_it_keeps_state() -> None:
    assert not spec.is_stateful(Operator("o", ("a",), call="m:f"))
    assert spec.is_stateful(Operator("o", ("a",), call="m:f", stateful=True))
    assert spec.is_stateful(Operator("o", ("a",), call="m:f", state_kb=5))
    assert spec.is_stateful(Operator("o", ("a",), call="m:f", watermarks=(Watermark("1 hour"),)))
    assert not spec.is_stateful(Operator("o", ("a",), call="m:f", state_kb=5, stateful=False))
    assert spec.changes_count(Operator("o", ("a",), call="m:f"))


@pytest.mark.parametrize(
    ("sql", "condition"),
    [
        ("SELECT * FROM a WHERE v >= 1", "v >= 1"),
        (
            "SELECT x.k, upper(x.k) u FROM a x WHERE x.v > 3 AND (k LIKE 'z%' OR k IS NULL)",
            "v > 3 AND (k LIKE 'z%' OR k IS NULL)",
        ),
        ("SELECT k FROM a WHERE w.start > ts", "w.start > ts"),
        ("SELECT k FROM a", None),
        ("SELECT explode(ks) k FROM a WHERE v > 1", None),
        ("SELECT DISTINCT k FROM a WHERE v > 1", None),
        ("SELECT k, count(*) n FROM a WHERE v > 1 GROUP BY k", None),
        ("SELECT k FROM (SELECT * FROM a WHERE v > 0) b WHERE v > 1", None),
        ("SELECT k FROM a WHERE rand() < 0.5", None),
        ("SELECT k FROM a WHERE uuid() <> k", None),
    ],
)
def test_what_only_filters_says_by_what(sql: str, condition: str | None) -> None:
    assert spec.sole_filter(Operator("o", ("a",), sql=sql)) == condition


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT window(ts, '1 hour') w, sum(v) FROM a GROUP BY 1", "aggregate"),
        ("SELECT DISTINCT k, n FROM (SELECT k, count(*) n FROM a GROUP BY k)", "aggregate"),
        ("SELECT DISTINCT ts, k FROM a", "distinct"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts = b.ts", "join"),
        ("SELECT k FROM a WHERE k IN (SELECT k FROM b)", "join"),
        ("SELECT k FROM a", "other"),
    ],
)
def test_what_keeps_state_aggregates_drops_repeats_or_joins(sql: str, kind: str) -> None:
    operator = Operator("o", ("a", "b"), sql=sql)
    assert spec.kind_of_state(operator) == kind
    assert spec.gathers(operator) == (kind == "aggregate"), "only what aggregates waits for the watermark"


def test_of_a_function_it_is_not_known_what_it_keeps() -> None:
    assert spec.kind_of_state(Operator("o", ("a",), call="m:f", stateful=True)) == "other"
