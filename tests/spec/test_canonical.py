"""Equal meanings have equal keys and give equal results; other meanings have other keys."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.spec.canonical import Relation, meaning_of, origin

READINGS = origin("source[readings]", ("ts", "meter", "kwh", "kind"), ("TIMESTAMP", "STRING", "DOUBLE", "INT"))
OTHERS = origin("source[others]", ("ts", "meter", "price"))

EQUAL = [
    ("SELECT * FROM readings WHERE kwh >= 0", "select ts, meter, kwh, kind\n from readings r where 0 <= r.KWH"),
    ("SELECT ts, kwh FROM readings WHERE kwh > 1 AND meter = 'm1'",
     "SELECT kwh, ts FROM readings WHERE meter = \"m1\" AND NOT kwh <= 1"),
    ("SELECT meter FROM readings WHERE kwh BETWEEN 1 AND 2 OR kind IN (2, 1)",
     "SELECT meter FROM readings WHERE kind IN (1, 2, 1) OR (kwh >= 1 AND kwh <= 2)"),
    ("SELECT meter FROM readings WHERE NOT (kwh > 3 AND kind = 1)",
     "SELECT meter FROM readings WHERE kind <> 1 OR kwh <= 3"),
    ("SELECT meter FROM readings WHERE kwh > 2 * 3 AND 1 = 1", "SELECT meter FROM readings WHERE 6 < kwh"),
    ("SELECT kwh * 2 AS d, kind + 1 AS k FROM readings", "SELECT 1 + kind AS k, 2 * kwh AS d FROM readings"),
    ("SELECT if(kwh > 1, 'high', 'low') AS c, coalesce(kind, 0) AS k FROM readings",
     "SELECT CASE WHEN 1 < kwh THEN 'high' ELSE 'low' END AS c, nvl(kind, 0) AS k FROM readings"),
    ("SELECT CAST(kwh AS INT) AS i FROM readings", "SELECT kwh::int AS i FROM readings"),
    ("WITH v AS (SELECT * FROM readings WHERE kwh > 0) SELECT meter, kwh FROM v WHERE kind = 1",
     "SELECT x.meter, x.kwh FROM (SELECT kind, kwh, meter FROM readings WHERE kind = 1) x WHERE kwh > 0"),
    ("SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM readings GROUP BY 1, 2",
     "SELECT meter, sum(kwh) AS kwh, window(ts, '60 minutes', '3600 seconds') AS w FROM readings GROUP BY w, meter"),
    ("SELECT window AS w, meter, count(*) n FROM readings GROUP BY window(ts, 'interval 1 hour'), meter",
     "SELECT window(ts, '1 hour', '1 hour', '0 seconds') AS w, meter, count(1) n FROM readings GROUP BY w, meter"),
    ("SELECT window.start AS s, avg(kwh) a FROM readings GROUP BY window(ts, '90 minutes')",
     "SELECT mean(kwh) AS a, window.start AS s FROM readings GROUP BY window(ts, '1 hour 30 minutes')"),
    ("SELECT meter, sum(kwh) s FROM readings GROUP BY meter HAVING sum(kwh) > 2",
     "SELECT * FROM (SELECT meter, sum(kwh) s FROM readings GROUP BY ALL) WHERE s > 2"),
    ("SELECT r.meter, o.price FROM readings r JOIN others o ON r.meter = o.meter WHERE r.kwh > 1",
     "SELECT a.meter, b.price FROM others b INNER JOIN readings a ON b.meter = a.meter AND a.kwh > 1"),
    ("SELECT r.meter, o.price FROM readings r LEFT JOIN others o ON r.meter = o.meter",
     "SELECT readings.meter, price FROM others RIGHT OUTER JOIN readings ON others.meter = readings.meter"),
    ("SELECT meter, kwh v FROM readings UNION ALL SELECT meter, price FROM others",
     "SELECT meter, price AS v FROM others UNION ALL SELECT meter, kwh FROM readings"),
    ("SELECT DISTINCT meter, kind FROM readings", "SELECT DISTINCT r.kind, r.meter FROM readings AS r"),
    ("SELECT * FROM readings WHERE ts > TIMESTAMP '2026-01-01' + INTERVAL 1 HOUR",
     "SELECT * FROM readings WHERE TIMESTAMP '2026-01-01' + INTERVAL 1 HOUR < ts"),
    ("SELECT upper(meter) AS m, date_trunc('hour', ts) AS h FROM readings",
     "SELECT date_trunc('hour', ts) AS h, UPPER(meter) AS m FROM readings"),
    ("SELECT length(meter) AS l, trim(meter) AS t FROM readings",
     "SELECT trim(meter) AS t, length(meter) AS l FROM readings"),
    ("SELECT meter, kind FROM readings WHERE kind IN (1, 2)",
     "SELECT meter, kind FROM readings WHERE kind = 2 OR 1 = kind"),
    ("SELECT meter, kind FROM readings WHERE meter NOT IN ('m1', 'm2')",
     "SELECT meter, kind FROM readings WHERE meter <> 'm2' AND meter <> 'm1'"),
    ("SELECT CASE kind WHEN 1 THEN 'one' ELSE 'more' END AS c FROM readings",
     "SELECT CASE WHEN kind = 1 THEN 'one' ELSE 'more' END AS c FROM readings"),
    ("SELECT CAST(kwh AS DECIMAL(10,2)) AS d FROM readings", "SELECT CAST(kwh AS NUMERIC(10, 2)) AS d FROM readings"),
    ("SELECT r.meter, q.price FROM readings r JOIN (SELECT * FROM others WHERE price > 1) q ON r.meter = q.meter",
     "WITH q AS (SELECT meter AS m, price AS p FROM others) "
     "SELECT r.meter, p AS price FROM q JOIN readings r ON q.m = r.meter WHERE p > 1"),
]  # fmt: skip

DIFFERENT = [
    ("SELECT * FROM readings WHERE kwh >= 0", "SELECT * FROM readings WHERE kwh > 0"),
    ("SELECT * FROM readings WHERE kwh >= 0", "SELECT * FROM readings WHERE kwh >= 1"),
    ("SELECT * FROM readings WHERE kwh >= 0", "SELECT * FROM readings WHERE kind >= 0"),
    ("SELECT * FROM readings WHERE kwh >= 0", "SELECT meter, kwh FROM readings WHERE kwh >= 0"),
    ("SELECT * FROM readings WHERE kwh > 0 AND kind > 0", "SELECT * FROM readings WHERE kwh > 0 OR kind > 0"),
    ("SELECT * FROM readings WHERE kwh <> 1", "SELECT * FROM readings WHERE NOT kwh <=> 1"),
    ("SELECT * FROM readings WHERE meter = 'a'", "SELECT * FROM readings WHERE meter = 'A'"),
    ("SELECT meter AS kind, kind AS meter FROM readings", "SELECT meter, kind FROM readings"),
    ("SELECT kwh / 2 AS x FROM readings", "SELECT 2 / kwh AS x FROM readings"),
    ("SELECT kwh - 1 AS x FROM readings", "SELECT 1 - kwh AS x FROM readings"),
    ("SELECT kwh AS x FROM readings WHERE kind = 1", "SELECT kwh AS x FROM readings WHERE kind = '1'"),
    ("SELECT CAST(meter AS INT) AS i FROM readings", "SELECT TRY_CAST(meter AS INT) AS i FROM readings"),
    ("SELECT CAST(kwh AS INT) AS i FROM readings", "SELECT CAST(kwh AS BIGINT) AS i FROM readings"),
    ("SELECT kwh + 1 AS x FROM readings", "SELECT kwh + 1.0 AS x FROM readings"),
    ("SELECT sum(kwh) x FROM readings GROUP BY meter", "SELECT sum(DISTINCT kwh) x FROM readings GROUP BY meter"),
    ("SELECT sum(kwh) x FROM readings GROUP BY meter", "SELECT avg(kwh) x FROM readings GROUP BY meter"),
    ("SELECT sum(kwh) x FROM readings GROUP BY meter", "SELECT sum(kwh) x FROM readings GROUP BY meter, kind"),
    ("SELECT count(*) x FROM readings GROUP BY meter", "SELECT count(kwh) x FROM readings GROUP BY meter"),
    ("SELECT upper(kind) AS kind, count(*) n FROM readings GROUP BY kind",
     "SELECT upper(kind) AS kind, count(*) n FROM readings GROUP BY upper(kind)"),
    ("SELECT window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1",
     "SELECT window(ts, '2 hours') w, count(*) n FROM readings GROUP BY 1"),
    ("SELECT window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1",
     "SELECT window(ts, '1 hour', '30 minutes') w, count(*) n FROM readings GROUP BY 1"),
    ("SELECT window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1",
     "SELECT window(ts, '1 hour', '1 hour', '5 minutes') w, count(*) n FROM readings GROUP BY 1"),
    ("SELECT window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1",
     "SELECT session_window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1"),
    # A window that slides gives a record several times, also where it is not shown in the end.
    ("SELECT kwh FROM (SELECT window(ts, '2 hours', '1 hour') w, kwh FROM readings)", "SELECT kwh FROM readings"),
    ("SELECT kwh FROM (SELECT explode(array(1, 2)) e, kwh FROM readings)", "SELECT kwh FROM readings"),
    ("SELECT r.meter, o.price FROM readings r JOIN others o ON r.meter = o.meter",
     "SELECT r.meter, o.price FROM readings r LEFT JOIN others o ON r.meter = o.meter"),
    ("SELECT r.meter, o.price FROM readings r LEFT JOIN others o ON r.meter = o.meter",
     "SELECT r.meter, o.price FROM others o LEFT JOIN readings r ON r.meter = o.meter"),
    ("SELECT r.meter, o.price FROM readings r LEFT JOIN others o ON r.meter = o.meter AND r.kwh > 1",
     "SELECT r.meter, o.price FROM readings r LEFT JOIN others o ON r.meter = o.meter WHERE r.kwh > 1"),
    ("SELECT a.meter, b.kwh FROM readings a JOIN readings b ON a.kwh = b.kind",
     "SELECT b.meter, a.kwh FROM readings a JOIN readings b ON a.kwh = b.kind"),
    ("SELECT DISTINCT meter FROM readings", "SELECT meter FROM readings"),
    ("SELECT meter, kwh FROM readings UNION ALL SELECT meter, price FROM others",
     "SELECT meter, price AS kwh FROM others"),
    ("SELECT meter FROM readings WHERE kind = 1 UNION ALL SELECT meter FROM readings WHERE kind = 2",
     "SELECT meter FROM readings WHERE kind = 1 OR kind = 2"),
    ("SELECT to_date(meter) AS d FROM readings", "SELECT try_to_date(meter) AS d FROM readings"),
    ("SELECT element_at(array(kwh), 1) AS d FROM readings", "SELECT try_element_at(array(kwh), 1) AS d FROM readings"),
    ("SELECT date_trunc('hour', ts) AS d FROM readings", "SELECT date_trunc('day', ts) AS d FROM readings"),
    ("SELECT meter m FROM readings", "SELECT meter n FROM readings"),
    # What the parser does not hand on, or hands on in other words.
    ("SELECT to_timestamp(meter, 'yyyy') AS t FROM readings", "SELECT to_timestamp(meter, 'YYYY') AS t FROM readings"),
    ("SELECT date_format(ts, r'dd') AS t FROM readings", "SELECT date_format(ts, r'DD') AS t FROM readings"),
    ("SELECT to_json(struct(kind AS k)) AS j FROM readings", "SELECT to_json(struct(kind AS K)) AS j FROM readings"),
    ("SELECT to_json(struct(kind)) AS j FROM readings", "SELECT to_json(struct(KIND)) AS j FROM readings"),
    ("SELECT named_struct('k', kind) AS j FROM readings", "SELECT named_struct('K', kind) AS j FROM readings"),
    ("SELECT to_json(struct(*)) AS j FROM (SELECT kind FROM readings)",
     "SELECT to_json(struct(*)) AS j FROM (SELECT kwh FROM readings)"),
    ("SELECT CAST(NULL AS STRUCT<a: INT>) AS j FROM others", "SELECT CAST(NULL AS STRUCT<A: INT>) AS j FROM others"),
    ("SELECT CAST(meter AS CHAR(3)) AS t FROM readings", "SELECT CAST(meter AS CHAR(5)) AS t FROM readings"),
    ("SELECT CAST(meter AS CHAR(3)) AS t FROM readings", "SELECT CAST(meter AS VARCHAR(3)) AS t FROM readings"),
    ("SELECT CAST(meter AS TIME) AS t FROM readings", "SELECT CAST(meter AS TIMESTAMP) AS t FROM readings"),
    ("SELECT arrays_zip(a) AS z FROM (SELECT array(kind) AS a, array(kwh) AS b FROM readings)",
     "SELECT arrays_zip(b) AS z FROM (SELECT array(kind) AS b, array(kwh) AS a FROM readings)"),
    ("SELECT r.meter FROM readings r JOIN others o USING (meter) WHERE r.meter = r'A'",
     "SELECT r.meter FROM readings r JOIN others o USING (meter) WHERE r.meter = r'a'"),
    # An outer join fills in nulls for what one side computes.
    ("SELECT o.meter, q.c FROM others o LEFT JOIN (SELECT meter, coalesce(kwh, 0) AS c FROM readings) q "
     "ON o.meter = q.meter",
     "SELECT o.meter, coalesce(q.kwh, 0) AS c FROM others o LEFT JOIN (SELECT meter, kwh FROM readings) q "
     "ON o.meter = q.meter"),
    ("SELECT meter FROM readings WHERE kind NOT IN (1, 2)", "SELECT meter FROM readings WHERE kind NOT IN (1, NULL)"),
    ("SELECT meter FROM readings WHERE meter IN (1, 2)", "SELECT meter FROM readings WHERE meter IN ('1', '2')"),
    ("SELECT CASE kind WHEN NULL THEN 1 ELSE 0 END AS c FROM readings",
     "SELECT CASE WHEN kind IS NULL THEN 1 ELSE 0 END AS c FROM readings"),
]  # fmt: skip

BY_CHANCE = [
    "SELECT rand() x FROM readings", "SELECT *, uuid() u FROM readings", "SELECT * FROM readings WHERE ts > now()",
    "SELECT * FROM readings WHERE ts > current_timestamp()", "SELECT current_timestamp AS t FROM readings",
    "SELECT current_date AS t FROM readings", "SELECT unix_timestamp() AS t FROM readings",
    "SELECT monotonically_increasing_id() AS i FROM readings", "SELECT * FROM readings WHERE ts > DATE 'today'",
    "SELECT * FROM readings LIMIT 5", "SELECT first(kwh) k, meter FROM readings GROUP BY meter",
    "SELECT collect_list(kwh) k, meter FROM readings GROUP BY meter", "SELECT * FROM readings TABLESAMPLE (10 PERCENT)",
    "SELECT localtimestamp AS t FROM readings", "SELECT current_time AS t FROM readings",
    "SELECT aes_encrypt(meter, '0000111122223333') AS c FROM readings", "SELECT default.risk(kwh) AS r FROM readings",
    "SELECT meter, kll_sketch_agg_double(kwh) AS k FROM readings GROUP BY meter", "SELECT own(kwh) AS r FROM readings",
    "SELECT * FROM (SELECT *, randn() r FROM readings) WHERE r > 0", "SELECT shuffle(array(1, 2)) s FROM readings",
]  # fmt: skip


def meaning(sql: str, marks: dict[str, str] | None = None) -> Relation | None:
    return meaning_of(sql, {"readings": READINGS, "others": OTHERS}, marks or {}, None)


def key(sql: str, marks: dict[str, str] | None = None) -> str:
    found = meaning(sql, marks)
    assert found is not None, sql
    return found.key


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_other_words_for_the_same_have_the_same_key(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_means_something_else_has_another_key(one: str, other: str) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize("sql", BY_CHANCE)
def test_what_may_differ_when_asked_twice_has_no_meaning_to_share(sql: str) -> None:
    assert meaning(sql) is None


def test_a_truth_may_be_compared_with_true() -> None:
    flags = {"t": origin("source[t]", ("f", "g"), ("BOOLEAN", "STRING"))}
    pairs = [("f = true", "f"), ("f <> true", "NOT f"), ("false = f", "NOT f"), ("f IS TRUE", "f"), ("g = true", "g")]
    found = [[meaning_of(f"SELECT * FROM t WHERE {one}", flags, {}, None) for one in pair] for pair in pairs]
    assert [one == other for one, other in found] == [True, True, True, True, False]
    # Shown, or under NOT, what is null is not what is false.
    for one, other in (("SELECT f IS TRUE AS x FROM t", "SELECT f AS x FROM t"),
                       ("SELECT g FROM t WHERE NOT (f IS TRUE)", "SELECT g FROM t WHERE NOT f")):  # fmt: skip
        assert meaning_of(one, flags, {}, None) != meaning_of(other, flags, {}, None)


def test_a_watermark_is_part_of_the_meaning() -> None:
    sql = "SELECT window(ts, '1 hour') w, count(*) n FROM readings GROUP BY 1"
    assert key(sql, {"readings": "ts:1us"}) == key(sql.lower(), {"readings": "ts:1us"})
    assert len({key(sql), key(sql, {"readings": "ts:1us"}), key(sql, {"readings": "ts:2us"})}) == 3
    inner = "WITH r AS (SELECT * FROM readings) SELECT window(ts, '1 hour') w, count(*) n FROM r GROUP BY 1"
    assert key(sql, {"readings": "ts:1us"}) == key(inner, {"readings": "ts:1us"})


def test_what_is_not_followed_is_known_by_its_very_words() -> None:
    def key_of(sql: str) -> str:
        found = meaning_of(sql, {"readings": READINGS}, {}, ("meter", "s"))
        assert found is not None
        return found.key

    over = "SELECT meter, sum(kwh) OVER (PARTITION BY meter) s FROM readings"
    assert key_of(over) == key_of("select meter,  sum(kwh) over (partition by meter) s from readings")
    assert key_of(over) != key_of("SELECT meter, sum(kwh) OVER (PARTITION BY kind) s FROM readings")


def test_an_alias_that_may_hide_a_column_of_unknown_ones_is_not_followed() -> None:
    unknown = origin("call[f]", None)
    found = [
        meaning_of(f"SELECT c FROM (SELECT a + {n} AS b, b * 2 AS c FROM t)", {"t": unknown}, {}, ("c",))
        for n in (1, 2)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].key != found[1].key


OPERATORS = ("<", "<=", ">", ">=", "=", "<>")


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> tuple[str, str]:
    """A condition, and another way to say it."""
    kind = draw(st.sampled_from(("compare", "between", "and", "or", "not"))) if depth else "compare"
    if kind == "compare":
        left, right = draw(st.sampled_from("abc")), draw(st.sampled_from((*"abc", "0", "1", "2")))
        word = draw(st.sampled_from(OPERATORS))
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(word, word)
        opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}[word]
        others = (f"{right} {flipped} {left}", f"NOT {left} {opposite} {right}", f"({left} {word} {right})")
        other = draw(st.sampled_from(others))
        return f"{left} {word} {right}", other
    if kind == "between":
        name, low = draw(st.sampled_from("abc")), draw(st.integers(-1, 2))
        return f"{name} BETWEEN {low} AND {low + 1}", f"({low} <= {name} AND {name} <= {low} + 1)"
    one, said_one = draw(conditions(depth=depth - 1))
    if kind == "not":
        return f"NOT ({one})", f"NOT ({said_one})"
    two, said_two = draw(conditions(depth=depth - 1))
    other = "OR" if kind == "and" else "AND"
    plain = f"(({said_two})  {kind} ({said_one}))"
    said = draw(st.sampled_from((plain, f"NOT (NOT ({said_one}) {other} NOT ({said_two}))")))
    return f"({one} {kind.upper()} {two})", said


ABC = origin("source[t]", ("a", "b", "c"))


def rows(sql: str) -> list[tuple[object, ...]]:
    """What SQLite gives, over all values that matter, nulls included: AND, OR and NOT mean what they do in Spark."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (a, b, c)")
    values = (None, 0, 1, 2)
    base.executemany("INSERT INTO t VALUES (?, ?, ?)", [(a, b, c) for a in values for b in values for c in values])
    found = sorted(base.execute(sql).fetchall(), key=repr)
    base.close()
    return found


@given(conditions(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_rewritten_conditions_have_equal_keys_and_equal_results(said: tuple[str, str], reordered: bool) -> None:
    shown = "b AS y, a AS x" if reordered else "a AS x, b AS y"
    one, other = f"SELECT a AS x, b AS y FROM t WHERE {said[0]}", f"select {shown} from t AS q where {said[1]}"
    found = [meaning_of(sql, {"t": ABC}, {}, None) for sql in (one, other)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].key == found[1].key
    assert rows(f"SELECT x, y FROM ({one})") == rows(f"SELECT x, y FROM ({other})")


@given(conditions(depth=1), conditions(depth=1))
@settings(max_examples=300, deadline=None)
def test_conditions_with_different_results_have_different_keys(one: tuple[str, str], other: tuple[str, str]) -> None:
    texts = [f"SELECT a, b, c FROM t WHERE {said}" for said in (one[0], other[1])]
    found = [meaning_of(text, {"t": ABC}, {}, None) for text in texts]
    if rows(texts[0]) != rows(texts[1]):
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].key != found[1].key


@pytest.mark.spark
def test_spark_gives_equal_results_for_what_has_equal_keys(spark: object) -> None:
    session = spark  # typed loosely, as in the fixture
    stamp = "TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, CAST(id * 7 AS INT), 0) AS ts"
    made = (
        f"SELECT {stamp}, CASE WHEN id % 7 = 0 THEN NULL ELSE concat('m', id % 3) END AS meter, "
        "CASE WHEN id % 5 = 0 THEN NULL ELSE CAST(id % 11 AS DOUBLE) - 2 END AS kwh, CAST(id % 4 AS INT) AS kind "
        "FROM range(40)"
    )
    session.sql(made).createOrReplaceTempView("readings")  # type: ignore[attr-defined]
    others = f"SELECT {stamp}, concat('m', id % 4) AS meter, CAST(id AS DOUBLE) AS price FROM range(6)"
    session.sql(others).createOrReplaceTempView("others")  # type: ignore[attr-defined]
    given_ = []
    for pair in EQUAL:
        names = sorted(name.lower() for name in session.sql(pair[0]).columns)  # type: ignore[attr-defined]
        texts = [f"SELECT to_json(struct({', '.join(names)})) AS r FROM ({sql})" for sql in pair]
        given_ += [f"SELECT {len(given_) // 2} AS pair, {at} AS side, r FROM ({text})" for at, text in enumerate(texts)]
    found: dict[tuple[int, int], list[str]] = {}
    for row in session.sql(" UNION ALL ".join(given_)).collect():  # type: ignore[attr-defined]
        found.setdefault((row["pair"], row["side"]), []).append(row["r"])
    for at, (one, other) in enumerate(EQUAL):
        assert found[at, 0], one
        assert sorted(found[at, 0]) == sorted(found[at, 1]), other
