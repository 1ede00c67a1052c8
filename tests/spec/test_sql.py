"""Spark SQL of many shapes is taken as right, with the columns it gives."""

from __future__ import annotations

import pytest

from weft import spec
from weft.model import Constant, Deployment, Operator, Query, Sink, Site, Source, Watermark

BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, extra STRING"
AUCTION = (
    "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
)
PERSON = "id BIGINT, name STRING, email STRING, city STRING, state STRING, date_time TIMESTAMP"
READINGS = (
    "ts TIMESTAMP, meter STRING, kwh DOUBLE, n INT, w STRUCT<start: TIMESTAMP, end: TIMESTAMP>, price DECIMAL(10,2), "
    "tags MAP<STRING, STRING>, parts ARRAY<STRUCT<a: INT, b: STRING>>, `odd name` STRING"
)
SCHEMAS = {"bid": BID, "auction": AUCTION, "person": PERSON, "readings": READINGS}
TIMES = {"bid": "date_time", "auction": "date_time", "person": "date_time", "readings": "ts"}


def deployment(sql: str, inputs: str, watermark: str | None = None, mode: str = "append") -> Deployment:
    """One operator over rate sources."""
    names = tuple(inputs.split())
    sources = tuple(
        Source(name, "s", "rate", spec.ddl(SCHEMAS[name]), event_time=TIMES[name], arrivals=Constant(1.0))
        for name in names
    )
    marks = (Watermark("10 minutes", watermark),) if watermark else ()
    operator = Operator("out", names, sql=sql, watermarks=marks)
    sink = Sink("out", "console", mode="update" if mode == "update" else "append")
    return Deployment((Site("s"),), sources, (Query("q", (operator,), (sink,)),))


# (the statement, its inputs, the watermark's column, the names it gives; None where Spark makes one up)
NEXMARK = {
    "q0": (
        "SELECT auction, bidder, price, date_time, extra FROM bid",
        "bid",
        None,
        "auction bidder price date_time extra",
    ),
    "q1": (
        "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, date_time, extra FROM bid",
        "bid",
        None,
        "auction bidder price date_time extra",
    ),
    "q2": ("SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0", "bid", None, "auction price"),
    "q3": (
        "SELECT P.name, P.city, P.state, A.id FROM auction AS A INNER JOIN person AS P ON A.seller = P.id "
        "WHERE A.category = 10 AND (P.state = 'or' OR P.state = 'id' OR P.state = 'ca')",
        "auction person",
        "date_time",
        "name city state id",
    ),
    "q4": (
        "SELECT Q.category, window(Q.date_time, '10 minutes') w, AVG(Q.final) avg_price FROM (SELECT "
        "MAX(B.price) AS "
        "final, A.category, A.id, A.date_time FROM auction A, bid B WHERE A.id = B.auction AND B.date_time BETWEEN "
        "A.date_time AND A.expires GROUP BY A.id, A.category, A.date_time) Q GROUP BY Q.category, 2",
        "auction bid",
        "date_time",
        "category w avg_price",
    ),
    "q5": (
        "WITH counts AS (SELECT auction, count(*) AS num, window(date_time, '10 seconds', '2 seconds') AS "
        "w FROM bid "
        "GROUP BY auction, window(date_time, '10 seconds', '2 seconds')) SELECT w.start AS starttime, "
        "w.end AS endtime, "
        "max(num) AS maxn FROM counts GROUP BY w",
        "bid",
        "date_time",
        "starttime endtime maxn",
    ),
    "q7": (
        "SELECT window.end AS at, max(price) AS price, max_by(bidder, price) AS bidder FROM bid "
        "GROUP BY window(date_time, '10 seconds')",
        "bid",
        "date_time",
        "at price bidder",
    ),
    "q8": (
        "SELECT P.id, P.name, P.w.start AS starttime FROM (SELECT id, name, window(date_time, '10 "
        "seconds') AS w FROM "
        "person GROUP BY id, name, window(date_time, '10 seconds')) P JOIN (SELECT seller, window(date_time, "
        "'10 seconds') AS w FROM auction GROUP BY seller, window(date_time, '10 seconds')) A "
        "ON P.id = A.seller AND P.w = A.w",
        "person auction",
        "date_time",
        "id name starttime",
    ),
    "q14": (
        "SELECT auction, bidder, 0.908 * price AS price, CASE WHEN HOUR(date_time) >= 8 AND "
        "HOUR(date_time) <= 18 THEN "
        "'dayTime' WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS "
        "bidTimeType, date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts FROM bid "
        "WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
        "bid",
        None,
        "auction bidder price bidTimeType date_time extra c_counts",
    ),
    "q17": (
        "SELECT auction, window(date_time, '1 day') AS day, count(*) AS total_bids, count(*) FILTER (WHERE price < "
        "10000) AS rank1, min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS "
        "sum_price FROM bid GROUP BY auction, window(date_time, '1 day')",
        "bid",
        "date_time",
        "auction day total_bids rank1 min_price max_price avg_price sum_price",
    ),
    "q20": (
        "SELECT auction, bidder, price, channel, url, B.date_time AS b_time, item_name, category, A.date_time AS "
        "a_time FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id WHERE A.category = 10",
        "bid auction",
        "date_time",
        "auction bidder price channel url b_time item_name category a_time",
    ),
    "q21": (
        "SELECT auction, bidder, price, channel, CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = "
        "'google' THEN '1' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id FROM bid WHERE "
        "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL OR lower(channel) IN ('apple', 'google')",
        "bid",
        None,
        "auction bidder price channel channel_id",
    ),
    "q22": (
        "SELECT auction, bidder, price, channel, split(url, '/')[3] AS dir1, split_part(url, '/', 5) AS dir2 FROM bid",
        "bid",
        None,
        "auction bidder price channel dir1 dir2",
    ),
}

SHAPES = {
    "star": ("SELECT * FROM readings", "ts meter kwh n w price tags parts odd|name"),
    "qualified star": (
        "SELECT r.*, kwh * 2 AS twice FROM readings r",
        "ts meter kwh n w price tags parts odd|name twice",
    ),
    "star without": ("SELECT * EXCEPT (w, tags, parts) FROM readings", "ts meter kwh n price odd|name"),
    "struct access": ("SELECT w.end, readings.w.start AS s FROM readings", "end s"),
    "alias used beside": ("SELECT kwh * 1000 AS wh, wh / 60 AS w FROM readings", "wh w"),
    "case": ("SELECT CASE WHEN kwh > 6 THEN 'high' WHEN kwh IS NULL THEN NULL ELSE 'low' END AS k FROM readings", "k"),
    "backticks": ("SELECT `odd name`, `meter` AS `a b` FROM `readings`", "odd|name a|b"),
    "upper case": ("select KWH, Readings.METER from READINGS", "KWH METER"),
    "map and array": ("SELECT tags['site'] AS site, parts[0].a AS a, size(parts) AS n FROM readings", "site a n"),
    "lambda": (
        "SELECT transform(parts, p -> p.a + n) AS more, filter(parts, x -> x.b = meter) AS some FROM readings",
        "more some",
    ),
    "lateral view": ("SELECT meter, p.a, i FROM readings LATERAL VIEW posexplode(parts) t AS i, p", "meter a i"),
    "explode": ("SELECT meter, explode(parts) AS part FROM readings", "meter part"),
    "several aliases": ("SELECT meter, posexplode(parts) AS (i, part) FROM readings", "meter i part"),
    "stack": ("SELECT meter, stack(2, 'a', n, 'b', n * 2) AS (k, v) FROM readings", "meter k v"),
    "lateral join": ("SELECT meter, t.x FROM readings, LATERAL explode(map_keys(tags)) AS t(x)", "meter x"),
    "now": ("SELECT current_timestamp() AS now, current_date AS today, ts FROM readings", "now today ts"),
    "units": (
        "SELECT timestampdiff(MINUTE, ts, w.end) AS late, dateadd(DAY, 1, ts) AS next FROM readings",
        "late next",
    ),
    "interval": ("SELECT ts + INTERVAL 1 HOUR AS t, ts - INTERVAL '2' DAY AS u FROM readings WHERE ts > now()", "t u"),
    "extract": ("SELECT extract(HOUR FROM ts) AS h, date_format(ts, 'HH') AS f, ts::date AS d FROM readings", "h f d"),
    "named struct": ("SELECT named_struct('a', n, 'b', kwh) AS s, struct(n, kwh) AS t FROM readings", "s t"),
    "cte": (
        "WITH big AS (SELECT * FROM readings WHERE kwh > 6), small AS (SELECT meter, kwh FROM big) "
        "SELECT meter, kwh FROM small",
        "meter kwh",
    ),
    "cte of the same name": ("WITH readings AS (SELECT meter, kwh FROM readings) SELECT * FROM readings", "meter kwh"),
    "cte with columns": ("WITH c(m, k) AS (SELECT meter, kwh FROM readings) SELECT m, k FROM c", "m k"),
    "subquery": ("SELECT x.m FROM (SELECT meter AS m, kwh FROM readings) x WHERE x.kwh > 1", "m"),
    "inline table": (
        "SELECT meter, v.factor FROM readings JOIN (VALUES ('a', 2.0)) AS v(m, factor) ON meter = v.m",
        "meter factor",
    ),
    "union": ("SELECT ts, meter FROM readings UNION ALL SELECT ts, `odd name` FROM readings WHERE n > 3", "ts meter"),
    "cast": (
        "SELECT CAST(price AS DOUBLE), CAST(n AS STRING) AS s, try_cast(meter AS INT) AS i FROM readings",
        "price s i",
    ),
    "window without group": ("SELECT window(ts, '1 hour').start AS hour, meter FROM readings", "hour meter"),
    "json": (
        "SELECT from_json(meter, 'a INT, b STRING').a AS a, get_json_object(meter, '$.b') AS b FROM readings",
        "a b",
    ),
    "from first": ("FROM readings SELECT meter", "meter"),
    "comment and semicolon": ("SELECT meter -- the meter\nFROM readings /* all */;", "meter"),
    "hash": ("SELECT sha2(concat_ws('-', meter, CAST(n AS STRING)), 256) AS id, uuid() AS u FROM readings", "id u"),
    "rlike": (
        "SELECT meter FROM readings WHERE meter RLIKE '^m[0-9]+' AND NOT meter LIKE 'x%' AND n BETWEEN 1 AND 3",
        "meter",
    ),
    "decimals": ("SELECT price * 1.1BD AS p, round(price, 1) AS r, 1e3 AS k, -n AS m FROM readings", "p r k m"),
}

WINDOWS = {
    "by position": ("SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM readings GROUP BY 1, 2", "w meter kwh"),
    "by alias": ("SELECT window(ts, '1 hour') AS hour, count(*) AS n FROM readings GROUP BY hour", "hour n"),
    "first in group by": (
        "SELECT window.start, count(1) AS c FROM readings GROUP BY window(ts, '1 hour'), meter",
        "start c",
    ),
    "session": (
        "SELECT meter, session_window(ts, '5 minutes') AS s, max(kwh) AS m FROM readings GROUP BY meter, 2",
        "meter s m",
    ),
    "sliding": ("SELECT window(ts, '1 hour', '5 minutes') AS w, avg(kwh) a FROM readings GROUP BY 1", "w a"),
    "all": ("SELECT window(ts, '1 hour') AS w, meter, count_if(kwh > 1) AS c FROM readings GROUP BY ALL", "w meter c"),
    "having": (
        "SELECT window(ts, '1 hour') w, sum(kwh) s FROM readings GROUP BY 1 HAVING s > 3 AND count(*) > 1",
        "w s",
    ),
    "event time": ("SELECT ts, count(*) AS c FROM readings GROUP BY ts", "ts c"),
    "window time": (
        "SELECT window_time(w) AS t, c FROM (SELECT window(ts, '1 hour') AS w, count(*) AS c FROM readings GROUP BY 1)",
        "t c",
    ),
    "over a subquery": (
        "SELECT w, count(*) AS c FROM (SELECT window(ts, '1 hour') AS w, meter FROM readings) GROUP BY w",
        "w c",
    ),
    "made up names": (
        "SELECT window(ts, '1 hour'), count(*), sum(kwh) FROM readings GROUP BY 1",
        "window count(1) sum(kwh)",
    ),
    "filter": ("SELECT window(ts, '1 hour') w, sum(kwh) FILTER (WHERE n > 1) AS s FROM readings GROUP BY 1", "w s"),
    "collect": (
        "SELECT window(ts, '1 hour') w, collect_list(struct(ts, kwh)) AS l, max_by(meter, kwh) AS m, "
        "percentile_approx(kwh, 0.5) AS p, approx_count_distinct(meter) AS d FROM readings GROUP BY 1",
        "w l m p d",
    ),
}

ALL = (
    NEXMARK
    | {name: (sql, "readings", None, names) for name, (sql, names) in SHAPES.items()}
    | {f"window {name}": (sql, "readings", "ts", names) for name, (sql, names) in WINDOWS.items()}
)


@pytest.mark.parametrize("name", ALL)
def test_good_sql_is_accepted_and_its_columns_are_known(name: str) -> None:
    sql, inputs, watermark, names = ALL[name]
    made = deployment(sql, inputs, watermark)
    assert spec.validate(made)[0] == []
    columns = spec.columns(made)["q.out"]
    assert columns is not None
    assert [column.name for column in columns] == [name.replace("|", " ") for name in names.split()]


def types(sql: str, inputs: str = "readings") -> dict[str, str | None]:
    columns = spec.columns(deployment(sql, inputs))["q.out"]
    assert columns is not None
    return {column.name: column.type for column in columns}


def test_types_follow_columns_windows_casts_and_sums() -> None:
    sql = "SELECT window(ts, '1 hour') v, meter, sum(kwh) s, sum(n) i, count(*) c, avg(n) a FROM readings GROUP BY 1, 2"
    assert types(sql) == {
        "v": "STRUCT<start: TIMESTAMP, end: TIMESTAMP>",
        "meter": "STRING",
        "s": "DOUBLE",
        "i": "BIGINT",
        "c": "BIGINT",
        "a": "DOUBLE",
    }
    ends = types("SELECT window.end AS e, count(*) AS c FROM readings GROUP BY window(ts, '1 hour')")
    assert ends["e"] == "TIMESTAMP"
    assert types("SELECT w.end AS e, price, CAST(n AS STRING) AS t FROM readings") == {
        "e": "TIMESTAMP",
        "price": "DECIMAL(10, 2)",
        "t": "STRING",
    }


def test_a_type_that_is_not_sure_is_none() -> None:
    assert set(types("SELECT sum(price) AS a, my_function(n) AS b, tags['x'] AS c FROM readings").values()) == {None}


def test_columns_behind_a_call_without_schema_are_not_known_and_not_checked() -> None:
    made = deployment("SELECT * FROM readings", "readings")
    call = Operator("c", ("out",), call="json:loads")
    after = Operator("after", ("c",), sql="SELECT whatever, c.more.deep FROM c")
    query = Query("q", (*made.queries[0].operators, call, after), (Sink("after", "console"),))
    made = Deployment(made.sites, made.sources, (query,))
    found = spec.columns(made)
    assert found["q.c"] is None
    assert [column.name for column in found["q.after"] or ()] == ["whatever", "deep"]
    assert spec.validate(made)[0] == []


def test_a_column_without_a_name_gives_a_warning_and_unknown_columns() -> None:
    made = deployment("SELECT kwh + 1 FROM readings", "readings")
    errors, warnings = spec.validate(made)
    assert errors == []
    assert "add `AS name`" in warnings[0].message
    assert spec.columns(made)["q.out"] is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT meter, count(*) AS c FROM readings GROUP BY meter",
        "SELECT count(*) AS c FROM readings",
        "SELECT date_trunc('hour', kwh) AS h, sum(kwh) AS s FROM readings GROUP BY 1",
        "WITH x AS (SELECT meter, max(kwh) AS m FROM readings GROUP BY meter) SELECT * FROM x",
    ],
)
def test_an_aggregate_without_a_window_needs_update_mode(sql: str) -> None:
    assert "mode: update" in spec.validate(deployment(sql, "readings"))[0][0].message
    assert spec.validate(deployment(sql, "readings", mode="update"))[0] == []


def test_a_windowed_aggregate_needs_a_watermark_on_the_same_column() -> None:
    sql = "SELECT window(date_time, '1 hour') AS w, count(*) AS c FROM auction GROUP BY 1"
    assert "add `watermark: 10 minutes`" in spec.validate(deployment(sql, "auction"))[0][0].message
    assert "the watermark on `expires`" in spec.validate(deployment(sql, "auction", "expires"))[0][0].message
    assert spec.validate(deployment(sql, "auction", "date_time"))[0] == []


def test_an_outer_join_of_streams_needs_watermarks_and_an_inner_one_is_warned_of() -> None:
    sql = "SELECT b.auction, a.item_name FROM bid b {} JOIN auction a ON b.auction = a.id"
    assert "waits for ever" in spec.validate(deployment(sql.format("LEFT"), "bid auction"))[0][0].message
    errors, warnings = spec.validate(deployment(sql.format("INNER"), "bid auction"))
    assert errors == []
    assert "keeps every record for ever" in warnings[0].message


def test_an_update_sink_on_an_operator_that_only_appends_is_an_error() -> None:
    made = deployment("SELECT meter, kwh FROM readings", "readings", mode="update")
    assert "only appends; use `mode: append`" in spec.validate(made)[0][0].message
