"""Every mistake is told with its line, its field, what was found and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spec.spec_texts import GOOD, changed, line_of, written
from weft import spec

SQL = "SELECT * FROM readings WHERE kwh >= 0"
HOURLY = "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2"
RATE = "    format: csv\n    path: data/readings-*.csv\n"
ARRIVALS = "    arrivals: {kind: poisson, rate_per_s: 200}\n"
OP = "queries[0].operators"
CALL = 'call: "rules:over_threshold"'

# (what is changed, into what, the text on the line that is named, the field, a piece of the message)
CASES = [
    # the file's form
    ("weft: 1\n", "", "sites:", "weft", "is missing; write `weft: 1`"),
    ("weft: 1", "weft: 2", "weft: 2", "weft", "must be 1, the version this Weft reads"),
    ("weft: 1", 'weft: "1"', "weft:", "weft", "found `1` (text)"),
    ("weft: 1", "weft: true", "weft:", "weft", "must be 1"),
    ("    site: gw-1\n    format", "\tsite: gw-1\n    format", "\tsite", "sources[0].name", "indent with spaces"),
    ("weft: 1", "weft: 1\nweft: 1", "weft: 1\nsites:", "weft", "stands twice in one mapping (first on line 1)"),
    ("links:", "linkz:", "linkz:", "linkz", "did you mean `links`?"),
    ("capacity: 1.0", "capactiy: 1.0", "capactiy", "sites[0].capactiy", "did you mean `capacity`?"),
    ("weft: 1", "weft: 1\n---\nweft: 1", "---", "file", "a deployment file is one document"),
    ("quota: 0.8", "quota: !!python/name:os.system x", "quota", "sites[0].quota", "leave it out"),
    ("quota: 0.8", "quota: *nobody", "quota", "sites[0].quota", "`*nobody` stands for nothing"),
    (
        "{name: district, capacity: 2.0}",
        "{name: district, capacity: 2.0",
        "links:",
        "sites[1].capacity",
        "is not closed",
    ),
    ("sql: " + SQL, "sql: SELECT a: b", "sql:", OP + "[0].sql", "needs quotes"),
    # numbers
    ("capacity: 1.0", "capacity: 0", "gw-1", "sites[0].capacity", "greater than 0, found 0"),
    ("capacity: 1.0", "capacity: -1", "gw-1", "sites[0].capacity", "greater than 0, found -1"),
    ("capacity: 1.0", "capacity: fast", "gw-1", "sites[0].capacity", "found `fast` (text)"),
    ("capacity: 1.0", "capacity: '1'", "gw-1", "sites[0].capacity", "leave the quotes out"),
    ("capacity: 1.0", "capacity: yes", "gw-1", "sites[0].capacity", "found `yes` (a boolean)"),
    ("capacity: 1.0", "capacity: .nan", "gw-1", "sites[0].capacity", "found .nan"),
    ("capacity: 1.0", "capacity: .inf", "gw-1", "sites[0].capacity", "found .inf"),
    ("capacity: 1.0", "capacity: [1]", "gw-1", "sites[0].capacity", "found a list"),
    ("quota: 0.8", "quota: 1.5", "gw-1", "sites[0].quota", "at most 1, found 1.5"),
    ("quota: 0.8", "failure_probability: 2", "gw-1", "sites[0].failure_probability", "at most 1"),
    ("delay_ms: 20", "delay_ms: -20", "delay_ms", "links[0].delay_ms", "at least 0, found -20"),
    ("bandwidth_kbps: 10000", "bandwidth_kbps: 0", "delay_ms", "links[0].bandwidth_kbps", "greater than 0"),
    ("latency_ms: 5000", "latency_ms: 5000, quantile: 1", "promise", "queries[0].promise.quantile", "less than 1"),
    ("args: {kwh: 6}", "args: {kwh: 6}\n        selectivity: -1", "selectivity", OP + "[2].selectivity", "at least 0"),
    ("args: {kwh: 6}", "args: {kwh: .inf}", "args", OP + "[2].args.kwh", "finite"),
    ("rate_per_s: 200", "rate_per_s: 0", "arrivals", "sources[0].arrivals.rate_per_s", "greater than 0"),
    # names
    ("name: gw-1", "name: on", "name: on", "sites[0].name", 'write "on" in quotes'),
    ("name: gw-1", "name: 1", "name: 1", "sites[0].name", "YAML reads it as a number"),
    ("name: gw-1", "name: gw 1", "name: gw 1", "sites[0].name", "found `gw 1`"),
    ("name: district", "name: gw-1", "capacity: 2.0", "sites[1].name", "`gw-1` is taken by sites[0] (line 3)"),
    ("      - name: hourly", "      - name: VALID", "name: VALID", OP + "[1].name", "case does not tell names apart"),
    (
        "      - name: hourly",
        "      - name: readings",
        "- name: readings\n        from",
        OP + "[1].name",
        "is also the source `readings`",
    ),
    # sites and links
    ("parent: district", "parent: distrct", "gw-1", "sites[0].parent", "did you mean `district`?"),
    ("capacity: 2.0", "parent: gw-1", "gw-1", "sites[0].parent", "the parents go round: gw-1 -> district -> gw-1"),
    ("to: district, delay", "to: nowhere, delay", "nowhere", "links[0].to", "no site is called `nowhere`"),
    ("to: district, delay", "to: gw-1, delay", "to: gw-1", "links[0].to", "linked to itself"),
    ("sources:", "  - {from: district, to: gw-1}\nsources:", "- {from: district", "links[1]", "linked by links[0] too"),
    # sources
    ("format: csv", "format: kafka", "path: data", "sources[0].path", "a kafka source has no path; leave it out"),
    ("format: csv", "format: cvs", "cvs", "sources[0].format", "did you mean `csv`?"),
    ("    path: data/readings-*.csv\n", "", "- name: readings", "sources[0].path", "needs a file, a folder or a glob"),
    ("data/readings-*.csv", "data/nothing-*.csv", "nothing", "sources[0].path", "no file or folder matches"),
    (
        "    format: csv\n    path: data/readings-*.csv",
        "    format: replay\n    path: data",
        "path: data\n",
        "sources[0].path",
        "must end in .csv, .json or .parquet",
    ),
    (RATE, "    format: rate\n    path: data\n", "path: data\n", "sources[0].path", "a rate source has no path"),
    (
        RATE + GOOD[GOOD.index("    schema") : GOOD.index("    arrivals")] + ARRIVALS,
        '    format: rate\n    schema: "ts TIMESTAMP, meter STRING, kwh DOUBLE"\n    event_time: ts\n',
        "- name: readings",
        "sources[0].arrivals",
        "a rate source needs it",
    ),
    ("kwh DOUBLE", "kwh DUOBLE", "DUOBLE", "sources[0].schema", "did you mean `DOUBLE`?"),
    ("kwh DOUBLE", "kwh", "meter STRING, kwh", "sources[0].schema", "the column `kwh` has no type"),
    ("kwh DOUBLE", "TS DOUBLE", "TS DOUBLE", "sources[0].schema", "the column `TS` stands twice"),
    ("event_time: ts", "event_time: tz", "tz", "sources[0].event_time", "did you mean `ts`?"),
    ("event_time: ts", "event_time: meter", "event_time", "sources[0].event_time", "must be a TIMESTAMP"),
    ("kind: poisson", "kind: poison", "poison", "sources[0].arrivals.kind", "did you mean `poisson`?"),
    ("kind: poisson, ", "", "arrivals", "sources[0].arrivals.kind", "is missing"),
    (ARRIVALS, ARRIVALS + "    options: {header: [1]}\n", "header", "sources[0].options.header", "found a list"),
    ("site: gw-1\n", "site: gw-2\n", "gw-2", "sources[0].site", "did you mean `gw-1`?"),
    # streams
    ("from: [valid]", "from: [vaild]", "vaild", OP + "[1].from[0]", "did you mean `valid`?"),
    (
        "from: [readings]",
        "from: [high]",
        "from: [high]",
        OP + "[0].from",
        "the operators go round: valid -> hourly -> high",
    ),
    ("from: [readings]", "from: []", "from: []", OP + "[0].from", "must hold at least 1, found 0"),
    ("{from: high", "{from: hihg", "hihg", "queries[0].sink.from", "did you mean `high`?"),
    ("{from: high", "{from: valid", "name: high", OP + "[2].name", "no way to the sink"),
    (
        "{from: high",
        "{from: readings",
        "{from: readings",
        "queries[0].sink.from",
        "is a source; put an operator between",
    ),
    ("from: [hourly]", "from: [hourly, hourly]", "hourly, hourly", OP + "[2].from[1]", "stands twice"),
    ("sql: " + SQL, "site: gw-1", "name: valid", OP + "[0]", "has neither `sql` nor `call`"),
    (CALL, CALL + "\n        sql: SELECT * FROM hourly", "name: high", OP + "[2]", "has both `sql` and `call`"),
    ("args: {kwh: 6}", "site: nowhere", "site: nowhere", OP + "[2].site", "no site is called `nowhere`"),
    # SQL
    (SQL, "SELECT kwh meter x FROM readings", "kwh meter x", OP + "[0].sql", "`x` is not expected after"),
    (SQL, "SELECT (kwh FROM readings", "(kwh", OP + "[0].sql", "`)` is expected where `FROM` stands"),
    (SQL, "SELECT kwhh FROM readings", "kwhh", OP + "[0].sql", "did you mean `kwh`?"),
    (SQL, "SELECT readings.nope FROM readings", "nope", OP + "[0].sql", "`readings` has no column `nope`; it has: ts"),
    (
        SQL,
        "|\n          SELECT ts,\n            kwhh\n          FROM readings",
        "kwhh",
        OP + "[0].sql",
        "no column `kwhh`",
    ),
    (
        SQL,
        "|\n          SELECT ts\n          FROM readings\n          WHERE (kwh",
        "WHERE (kwh",
        OP + "[0].sql",
        "is expected",
    ),
    (SQL, "SELECT * FROM raedings", "raedings", OP + "[0].sql", "did you mean `readings`?"),
    (SQL, "DROP TABLE readings", "DROP", OP + "[0].sql", "must be one SELECT"),
    (SQL, "SELECT 1 AS a FROM readings; SELECT 2", "SELECT 2", OP + "[0].sql", "holds 2 statements"),
    (SQL, SQL + " ORDER BY ts", "ORDER BY", OP + "[0].sql", "ORDER BY does not end on an endless stream"),
    (SQL, SQL + " LIMIT 5", "LIMIT", OP + "[0].sql", "LIMIT does not end"),
    (SQL, "SELECT ts, kwh, kwh FROM readings", "kwh, kwh", OP + "[0].sql", "two columns called `kwh`"),
    (SQL, "SELECT 1 AS one", "AS one", OP + "[0].sql", "never reads its input readings"),
    (
        SQL,
        "SELECT ts, meter, kwh, count(DISTINCT meter) n FROM readings GROUP BY ALL",
        "DISTINCT",
        OP + "[0].sql",
        "approx_count_distinct",
    ),
    (SQL, "SELECT *, row_number() OVER (ORDER BY ts) n FROM readings", "OVER", OP + "[0].sql", "all records at once"),
    (HOURLY, "SELECT ts, meter FROM valid UNION ALL SELECT ts FROM valid", "UNION", OP + "[1].sql", "2 and 1 columns"),
    # windows, watermarks and modes
    (HOURLY, "SELECT meter, sum(kwh) kwh FROM valid GROUP BY meter", "sum(kwh)", OP + "[1].sql", "mode: update"),
    ("        watermark: 10 minutes\n", "", "name: hourly", OP + "[1].watermark", "add `watermark: 10 minutes`"),
    ("watermark: 10 minutes", "watermark: 10", "watermark", OP + "[1].watermark", "as `10 minutes`, found `10`"),
    ("watermark: 10 minutes", "watermark: -10 minutes", "watermark", OP + "[1].watermark", "is not negative"),
    ("watermark: 10 minutes", "watermark: 1 month", "watermark", OP + "[1].watermark", "use days"),
    (
        "watermark: 10 minutes",
        "watermark: {column: tss, delay: 1 hour}",
        "tss",
        OP + "[1].watermark.column",
        "did you mean `ts`",
    ),
    (
        "watermark: 10 minutes",
        "watermark: {column: kwh, delay: 1 hour}",
        "column: kwh",
        OP + "[1].watermark.column",
        "is DOUBLE",
    ),
    ("watermark: 10 minutes", "watermark: {other: 1 hour}", "other", OP + "[1].watermark.other", "is not an input"),
    ("    event_time: ts\n", "", "watermark", OP + "[1].watermark", "has no known event time; name its column"),
    (SQL, "SELECT ts AS at, meter, kwh FROM readings", "GROUP BY 1", OP + "[1].sql", "no column `ts`"),
    ("path: out/suspicious", "path: out/s, mode: updat", "updat", "queries[0].sink.mode", "did you mean `update`?"),
    ("args: {kwh: 6}", "state_kb: x", "state_kb", OP + "[2].state_kb", "must be a number"),
    # calls
    (CALL, 'call: "rules"', "call", OP + "[2].call", '"module:function"'),
    (CALL, 'call: "ruels:over_threshold"', "call", OP + "[2].call", "there is no module `ruels`"),
    (CALL, 'call: "rules:over"', "call", OP + "[2].call", "it has: over_threshold, joined"),
    (CALL, 'call: "rules:later"', "call", OP + "[2].call", "is async"),
    (CALL, 'call: "rules:joined"', "args", OP + "[2].args", "takes no argument `kwh`; it takes: right, within"),
    ("args: {kwh: 6}", "args: {kw: 6}", "args", OP + "[2].args", "did you mean `kwh`?"),
    ("args: {kwh: 6}", "args: {hourly: 6}", "args", OP + "[2].args", "is the DataFrame of `hourly`"),
    # sinks
    (", path: out/suspicious", "", "sink", "queries[0].sink.path", "needs the folder it writes"),
    (
        "path: out/suspicious",
        "path: data",
        "path: data}",
        "queries[0].sink.path",
        "holds what the source `readings` reads",
    ),
    ("path: out/suspicious", "path: data/readings-9.csv", "readings-9", "queries[0].sink.path", "would read itself"),
    ("path: out/suspicious", "path: .", "path: .", "queries[0].sink.path", "holds the deployment file itself"),
    ("path: out/suspicious", "path: rules.py", "path: rules.py", "queries[0].sink.path", "is a file"),
    ("path: out/suspicious", "path: out, key: [w]", "key", "queries[0].sink.key", "belongs to `mode: update`"),
    # control and scenario
    ("policy: near", "policy: refined", "refined", "control.place.policy", "did you mean `refine`"),
    ("policy: near", "policy: nearest", "nearest", "control.place.policy", "must be one of near"),
    ("policy: near}", "policy: near}\n  balance: {low: 0.7}", "balance", "control.balance", "low < target < high"),
    ("policy: near}", "policy: near}\n  order: {lambda: 1, late_max: 0.1}", "order", "control.order", "found both"),
    ("policy: near}", "policy: near}\n  advise: often", "advise", "control.advise", "must be true, or {period_s: 30"),
    ("policy: near}", "policy: near}\n  advise: {period_s: 0}", "advise", "control.advise.period_s", "greater than 0"),
    ("policy: near}", "policy: near}\n  advise: {prize: 1}", "advise", "control.advise.prize", "did you mean `price`"),
    ("policy: near}", "policy: near}\n  relief: soon", "relief", "control.relief", "must be true, or {period_s: 5"),
    ("policy: near}", "policy: near}\n  relief: {period_s: 0}", "relief", "control.relief.period_s", "greater than 0"),
    ("policy: near}", "policy: near}\n  relief: {forecast: holt}", "relief", "control.relief.forecast", "one of auto"),
    ("policy: near}", "policy: near}\n  relief: {horizon: 9}", "relief", "control.relief.horizon", "`horizon_s`"),
    (
        "policy: near}",
        "policy: near}\n  relief: {period_s: 60, horizon_s: 30}",
        "relief",
        "control.relief.horizon_s",
        "must be at least period_s, found 30 and 60",
    ),
    ("at_s: 10", "at_s: -1", "at_s", "scenario[0].at_s", "at least 0"),
    (
        "move: suspicious.hourly",
        "move: suspicious.houly",
        "at_s",
        "scenario[0].move",
        "did you mean `suspicious.hourly`?",
    ),
    ("move: suspicious.hourly", "move: hourly", "at_s", "scenario[0].move", "with a dot"),
    ("move: suspicious.hourly, to: district", "crash: gw-9", "at_s", "scenario[0].crash", "no site is called `gw-9`"),
    (
        "move: suspicious.hourly, to: district",
        "rate: {reading: 3}",
        "at_s",
        "scenario[0].rate.reading",
        "did you mean `readings`",
    ),
    (
        "move: suspicious.hourly, to: district",
        "partition: [gw-1, gw-1], for_s: 5",
        "at_s",
        "scenario[0].partition",
        "different",
    ),
    (
        "move: suspicious.hourly, to: district",
        "explode: gw-1",
        "at_s",
        "scenario[0]",
        "must be one of move, rate, crash",
    ),
]


@pytest.mark.parametrize(("old", "new", "at", "field", "piece"), CASES, ids=[f"{c[3]}-{c[4][:30]}" for c in CASES])
def test_a_mistake_is_told_with_line_field_and_remedy(
    folder: Path, old: str, new: str, at: str, field: str, piece: str
) -> None:
    text = changed(old, new)
    report = spec.check(written(folder, text))
    told = [(problem.line, problem.field) for problem in report.errors if piece in problem.message]
    assert told == [(line_of(text, at), field)], "\n".join(problem.at("file") for problem in report.errors)
    assert report.deployment is None


def test_the_unchanged_text_has_no_mistake(folder: Path) -> None:
    report = spec.check(written(folder, GOOD))
    assert (report.errors, report.warnings) == ((), ())


def test_several_mistakes_are_told_together_in_the_order_of_lines(folder: Path) -> None:
    text = GOOD.replace("capacity: 1.0", "capacity: -1").replace("kwh >= 0", "kwhh >= 0").replace("at_s: 10", "at_s: x")
    with pytest.raises(spec.SpecError) as caught:
        spec.load(written(folder, text))
    fields = [problem.field for problem in caught.value.errors]
    assert fields == ["sites[0].capacity", "queries[0].operators[0].sql", "scenario[0].at_s"]
    for line, problem in zip(str(caught.value).splitlines(), caught.value.errors, strict=True):
        assert line == f"{folder / 'deployment.yaml'}:{problem.line}: {problem.field}: {problem.message}"


def test_one_mistake_is_not_told_again_by_what_depends_on_it(folder: Path) -> None:
    for old, new in (("kwh DOUBLE", "kwh DUBLE"), ("sql: SELECT *", "sql: SELEKT *"), ("name: gw-1", "name: 'gw 1'")):
        report = spec.check(written(folder, GOOD.replace("gw-1", "gw 1") if "gw" in old else changed(old, new)))
        assert len(report.errors) == 1, [problem.at("file") for problem in report.errors]


def test_missing_example_data_are_told_with_who_makes_them(folder: Path) -> None:
    file = written(folder, changed("data/readings-*.csv", "data/nothing-*.csv"))
    (missing,) = spec.check(file).errors
    assert "generate.py" not in missing.message
    (folder / "generate.py").write_text("")
    (missing,) = spec.check(file).errors
    assert missing.message.endswith("; generate.py there makes example data")


@pytest.mark.parametrize(
    ("length", "says"),
    [
        ("1 huor", "`huor` in '1 huor' is no unit of time; write a length as '10 minutes'; did you mean `hour`?"),
        ("INTERVAL 5 mins", "`mins` in 'INTERVAL 5 mins' is no unit of time"),
        ("1 hour', '5 minuets", "`minuets` in '5 minuets' is no unit of time"),
    ],
)
def test_a_window_of_no_known_length_is_told(folder: Path, length: str, says: str) -> None:
    report = spec.check(written(folder, changed("'1 hour'", f"'{length}'")))
    assert [problem.field for problem in report.errors] == ["queries[0].operators[1].sql"]
    assert says in report.errors[0].message


@pytest.mark.parametrize("length", ["interval 1 hour 30 MINUTES", "90 seconds", "1 day', '2 hours', '-5 minutes"])
def test_a_window_of_any_other_length_is_fine(folder: Path, length: str) -> None:
    assert spec.check(written(folder, changed("'1 hour'", f"'{length}'"))).ok
