"""The example of the design loads into exactly what it says, and fits the schema that is printed."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import weft
from tests.spec.spec_texts import GOOD, written
from weft import model, spec
from weft.model import (
    Advise,
    Balance,
    Column,
    Control,
    Cost,
    CrashAt,
    Deployment,
    Link,
    MoveAt,
    Operator,
    Order,
    PartitionAt,
    Place,
    Poisson,
    Promise,
    Query,
    RateAt,
    Relief,
    RestartAt,
    Scale,
    Sink,
    Site,
    Source,
    Watermark,
    Weights,
)

EXAMPLE = """\
weft: 1
sites:
  - {name: gw-1, capacity: 1.0, quota: 0.8, memory_mb: 512, parent: district, failure_probability: 0.01}
  - {name: district, capacity: 2.0}
links:                       # both ways unless `oneway: true`; streams take the least-delay path over links
  - {from: gw-1, to: district, delay_ms: 20, bandwidth_kbps: 10000}
sources:
  - name: readings
    site: gw-1
    format: csv
    path: data/readings-*.csv            # a file, a folder or a glob; all three work
    options: {header: true}              # to Spark's reader
    bad_records: fail        # fail (default) | skip (counted) | keep (Spark's nulls)
    schema: "ts TIMESTAMP, meter STRING, kwh DOUBLE"
    event_time: ts
    record_bytes: 48
    arrivals: {kind: poisson, rate_per_s: 200}
queries:
  - name: suspicious
    promise: {latency_ms: 5000, quantile: 0.95, availability: 0.99, loss: 0}
    weight: 1
    operators:
      - {name: valid,  from: [readings], sql: "SELECT * FROM readings WHERE kwh >= 0", cost_ms: 0.05,
         selectivity: 0.98}
      - {name: hourly, from: [valid],
         sql: "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2",
         watermark: {column: ts, delay: 10 minutes}, state_kb: 200}     # short form `watermark: 10 minutes`
      - {name: high,   from: [hourly], call: "rules:over_threshold", args: {kwh: 6}, site: district}
    sink: {from: high, site: district, format: parquet, path: out/suspicious, mode: append}
control:
  place: {policy: near, objective: latency, weights: {load: 100, correlation: 1, network: 0.001}, overload_penalty: 20,
          keep: 0.0}
  balance: {kind: tree, low: 0.4, target: 0.5, high: 0.6, period_s: 5}
  scale: {target: 0.7, high: 0.8, low: 0.6, period_s: 10}
  order: {lambda: 0.5}
scenario:
  - {at_s: 10, move: suspicious.hourly, to: district}
  - {at_s: 20, rate: {readings: 3.0}}
  - {at_s: 30, crash: gw-1}
  - {at_s: 40, restart: gw-1}
  - {at_s: 50, partition: [gw-1, district], for_s: 5}
"""


def expected(folder: Path) -> Deployment:
    """What the example says, built by hand."""
    hourly = "SELECT window(ts, '1 hour') w, meter, sum(kwh) kwh FROM valid GROUP BY 1, 2"
    operators = (
        Operator(
            "valid",
            ("readings",),
            sql="SELECT * FROM readings WHERE kwh >= 0",
            cost_ms=Cost("constant", (0.05,)),
            selectivity=0.98,
        ),
        Operator("hourly", ("valid",), sql=hourly, watermarks=(Watermark("10 minutes", "ts"),), state_kb=200),
        Operator("high", ("hourly",), call="rules:over_threshold", args={"kwh": 6}, site="district"),
    )
    source = Source(
        "readings",
        "gw-1",
        "csv",
        (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE")),
        path="data/readings-*.csv",
        options={"header": "true"},
        event_time="ts",
        record_bytes=48,
        arrivals=Poisson(200),
    )
    return Deployment(
        sites=(Site("gw-1", 1.0, 0.8, 512, "district", 0.01), Site("district", 2.0)),
        links=(Link("gw-1", "district", 20, 10000),),
        sources=(source,),
        queries=(
            Query(
                "suspicious",
                operators,
                (Sink("high", "parquet", "out/suspicious", "district"),),
                Promise(5000, 0.95, 0.99, 0),
            ),
        ),
        control=Control(Place("near", "latency", Weights(100, 1, 0.001), 20, 0), Balance(), Scale(), Order(0.5)),
        scenario=(
            MoveAt(10, "suspicious.hourly", "district"),
            RateAt(20, {"readings": 3.0}),
            CrashAt(30, "gw-1"),
            RestartAt(40, "gw-1"),
            PartitionAt(50, ("gw-1", "district"), 5),
        ),
        folder=str(folder),
    )


def test_the_example_loads_into_exactly_what_it_says(folder: Path) -> None:
    report = spec.check(written(folder, EXAMPLE))
    assert report.deployment == expected(folder)
    assert [problem.field for problem in report.warnings] == ["control.scale"]
    assert weft.load(folder / "deployment.yaml") == report.deployment


def test_a_deployment_built_in_python_is_checked_like_a_file(folder: Path) -> None:
    good = expected(folder)
    assert spec.validate(good)[0] == []
    bad = replace(good, sites=(replace(good.sites[0], capacity=-1), *good.sites[1:]))
    (problem,) = spec.validate(bad)[0]
    assert (problem.line, problem.field) == (None, "sites[0].capacity")
    broken = replace(good, sites=("gw-1",), sources=(replace(good.sources[0], schema=5),))  # type: ignore[arg-type]
    assert {problem.field for problem in spec.validate(broken)[0]} >= {"sites[0]", "sources[0].schema"}


def test_text_where_python_needs_a_tuple_is_told(folder: Path) -> None:
    good = expected(folder)
    operator = replace(good.queries[0].operators[0], from_="readings")  # type: ignore[arg-type]
    query = replace(good.queries[0], operators=(operator, *good.queries[0].operators[1:]))
    (problem,) = spec.validate(replace(good, queries=(query,)))[0]
    assert (problem.field, problem.message) == (
        "queries[0].operators[0].from",
        "must be a tuple, found a str; write (...,)",
    )


def test_a_deployment_written_back_reads_as_the_same(folder: Path) -> None:
    good = expected(folder)
    assert spec.load(written(folder, yaml.safe_dump(spec.as_plain(good)))) == good


FORMS = [
    ("cost_ms: 2", {"cost_ms": Cost("constant", (2.0,))}),
    ("cost_ms: {constant: 1}", {"cost_ms": Cost("constant", (1.0,))}),
    ("cost_ms: {exponential: 2.0}", {"cost_ms": Cost("exponential", (2.0,))}),
    ("cost_ms: {uniform: [1, 5]}", {"cost_ms": Cost("uniform", (1.0, 5.0))}),
    ("cost_ms: {normal: [3, 0.5]}", {"cost_ms": Cost("normal", (3.0, 0.5))}),
    ("cost_ms: {empirical: [1, 2, 3]}", {"cost_ms": Cost("empirical", (1.0, 2.0, 3.0))}),
    ("watermark: 10 minutes", {"watermarks": (Watermark("10 minutes"),)}),
    ("watermark: {column: ts, delay: 1 hour 30 minutes}", {"watermarks": (Watermark("1 hour 30 minutes", "ts"),)}),
    ("watermark: {readings: 5 seconds}", {"watermarks": (Watermark("5 seconds", None, "readings"),)}),
    (
        "watermark: {readings: {column: ts, delay: 0 seconds}}",
        {"watermarks": (Watermark("0 seconds", "ts", "readings"),)},
    ),
    ("queue: {length: 100, when_full: block}", {"queue": model.Queue(100, "block")}),
    ("window: {records: 5}", {"window": model.JoinWindow(5)}),
    ("window: {seconds: 1e1}", {"window": model.JoinWindow(None, 10.0)}),
    ("order: true", {"order": Order()}),
    ("order: {late_max: 0.1}", {"order": Order(late_max=0.1)}),
    (
        "schema: 'ts: TIMESTAMP, meter STRING, kwh: DECIMAL(10,2)'",
        {"schema": (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DECIMAL(10, 2)"))},
    ),
    (
        "schema: 'ts TIMESTAMP NOT NULL, meter STRING COMMENT \"m\", kwh DOUBLE'",
        {"schema": (Column("ts", "TIMESTAMP"), Column("meter", "STRING"), Column("kwh", "DOUBLE"))},
    ),
]


@pytest.mark.parametrize(("text", "fields"), FORMS, ids=[form[0] for form in FORMS])
def test_every_form_of_a_field_is_read_and_written_back(folder: Path, text: str, fields: dict[str, Any]) -> None:
    sql = "        sql: SELECT * FROM readings"
    report = spec.check(written(folder, GOOD.replace(sql, f"        {text}\n{sql}")))
    assert report.deployment is not None, report.errors
    operator = report.deployment.queries[0].operators[0]
    assert {name: getattr(operator, name) for name in fields} == fields
    assert spec.load(written(folder, yaml.safe_dump(spec.as_plain(report.deployment)))) == report.deployment


ARRIVALS = [
    "{kind: constant, rate_per_s: 5}",
    "{kind: poisson, rate_per_s: 5}",
    "{kind: onoff, rate_per_s: 5, ratio: 2}",
    "{kind: sine, rate_per_s: 5, amplitude: 0.1}",
    "{kind: walk, rate_per_s: 5, step_per_s: 1, rate_per_s_max: 9}",
    "{kind: trace, rates_per_s: [1, 0, 2], period_s: 5}",
]


@pytest.mark.parametrize("text", ARRIVALS)
def test_every_kind_of_arrivals_is_read_and_written_back(folder: Path, text: str) -> None:
    deployment = spec.load(written(folder, GOOD.replace("{kind: poisson, rate_per_s: 200}", text)))
    arrivals = deployment.sources[0].arrivals
    assert arrivals is not None
    assert arrivals.kind == yaml.safe_load(text)["kind"]
    assert spec.load(written(folder, yaml.safe_dump(spec.as_plain(deployment)))) == deployment


def test_a_query_may_have_several_sinks_but_no_two_with_one_folder(folder: Path) -> None:
    two = "sink:\n      - {from: high, format: csv, path: out/a}\n      - {from: hourly, format: json, path: %s}"
    sink = "sink: {from: high, site: district, format: parquet, path: out/suspicious}"
    deployment = spec.load(written(folder, GOOD.replace(sink, two % "out/b")))
    assert [one.path for one in deployment.queries[0].sinks] == ["out/a", "out/b"]
    (problem,) = spec.check(written(folder, GOOD.replace(sink, two % "out/../out/a"))).errors
    assert problem.field == "queries[0].sink[1].path"
    assert "is also the folder of queries[0].sink[0]" in problem.message


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits the part of JSON Schema that is used here."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    wanted = schema.get("type", [])
    names = wanted if isinstance(wanted, list) else [wanted]
    flag = isinstance(value, bool)
    if names and not any(isinstance(value, kinds[name]) and (name == "boolean") == flag for name in names):
        return False
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return False
    if "oneOf" in schema and sum(fits(value, one) for one in schema["oneOf"]) != 1:
        return False
    if "not" in schema and any(set(one["required"]) <= set(value) for one in schema["not"]["anyOf"]):
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        more = schema.get("additionalProperties", {})
        inner = all(
            fits(one, known.get(key, more)) if known.get(key, more) is not False else False
            for key, one in value.items()
        )
        return inner and set(schema.get("required", ())) <= set(value) and len(value) <= schema.get("maxProperties", 99)
    if isinstance(value, list):
        sized = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)
        return sized and all(fits(one, schema.get("items", {})) for one in value)
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("exclusiveMinimum", -1e99), schema.get("exclusiveMaximum", 1e99)
        return low < value < high and schema.get("minimum", -1e99) <= value <= schema.get("maximum", 1e99)
    return True


def test_the_examples_fit_the_schema_and_broken_ones_do_not() -> None:
    schema = spec.schema()
    assert fits(yaml.safe_load(EXAMPLE), schema)
    assert fits(yaml.safe_load(GOOD), schema)
    for old, new in (
        ("capacity: 1.0", "capacity: 0"),
        ("weft: 1", "weft: 2"),
        ("kind: poisson", "kind: poison"),
        ("capacity: 1.0", "capactiy: 1.0"),
        ("policy: near", "policy: x"),
        ("at_s: 10, ", ""),
    ):
        assert not fits(yaml.safe_load(GOOD.replace(old, new)), schema), new


@pytest.mark.parametrize(("text", "_fields"), FORMS, ids=[form[0] for form in FORMS])
def test_every_form_of_a_field_fits_the_schema(text: str, _fields: object) -> None:
    operator = spec.schema()["properties"]["queries"]["items"]["properties"]["operators"]["items"]["properties"]
    ((key, value),) = yaml.safe_load(text.replace("1e1", "10.0")).items()
    assert fits(value, operator[key])


def test_every_mapping_of_the_schema_is_closed_and_every_key_described() -> None:
    todo, count = [spec.schema()], 0
    while todo:
        part = todo.pop()
        for key, inner in part.get("properties", {}).items():
            count += 1
            assert inner.get("description") or part["required"] == [key], key
            todo.append(inner)
        if "properties" in part:
            assert part["additionalProperties"] is False
        todo += part.get("oneOf", []) + ([part["items"]] if "items" in part else [])
    assert count > 100


def test_every_field_of_the_model_can_be_written_in_a_file() -> None:
    import dataclasses

    from weft.spec import control_keys, keys, network_keys, query_keys, scenario_keys
    from weft.spec.tables import Table

    modules = (keys, network_keys, query_keys, control_keys, scenario_keys)
    tables = [one for module in modules for one in vars(module).values() if isinstance(one, Table)]
    tables += [*query_keys.ARRIVALS.tables.values(), *scenario_keys.HAPPENING.tables.values()]
    for table in tables:
        fields = {one.name for one in dataclasses.fields(table.cls)} - {"folder", "sharing", "parts"}
        constants = {"kind"} if table.cls.__module__.endswith("arrivals") else set()
        read_elsewhere = {"queries"} if table.what == "an addition" else set()  # they stand in a file of their own
        assert {key.field for key in table.keys} == fields - constants - read_elsewhere, table.what


def test_checking_a_small_file_is_fast_and_starts_no_spark(folder: Path) -> None:
    file = written(folder, EXAMPLE)
    code = (
        "import sys, weft; assert 'sqlglot' not in sys.modules and 'yaml' not in sys.modules; "
        f"weft.load({str(file)!r}); assert not {{'pyspark', 'rules'}} & set(sys.modules); weft.model.Site('x')"
    )
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.perf_counter() - began < 10  # 0.4 s on a quiet machine
    began = time.process_time()
    assert spec.check(file).ok
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "advise"),
    [
        ("true", Advise()),
        ("false", None),
        ("{period_s: 5}", Advise(period_s=5.0)),
        ("{period_s: 30, price: 0}", Advise(price=0.0)),
    ],
)
def test_advice_is_asked_for_in_a_word_or_with_its_period_and_price(
    folder: Path, text: str, advise: Advise | None
) -> None:
    report = spec.check(written(folder, GOOD.replace("policy: near}", f"policy: near}}\n  advise: {text}")))
    assert report.deployment is not None
    assert report.deployment.control.advise == advise
    assert spec.load(written(folder, yaml.safe_dump(spec.as_plain(report.deployment)))) == report.deployment


@pytest.mark.parametrize(
    ("text", "relief"),
    [
        ("true", Relief()),
        ("false", None),
        ("{period_s: 5, horizon_s: 60, forecast: auto}", Relief()),
        ("{forecast: trend, horizon_s: 30}", Relief(horizon_s=30.0, forecast="trend")),
    ],
)
def test_relief_is_asked_for_in_a_word_or_with_its_period_horizon_and_forecast(
    folder: Path, text: str, relief: Relief | None
) -> None:
    report = spec.check(written(folder, GOOD.replace("policy: near}", f"policy: near}}\n  relief: {text}")))
    assert report.deployment is not None
    assert report.deployment.control.relief == relief
    assert spec.load(written(folder, yaml.safe_dump(spec.as_plain(report.deployment)))) == report.deployment


def test_relief_without_a_promised_latency_is_warned_of(folder: Path) -> None:
    text = GOOD.replace("policy: near}", "policy: near}\n  relief: true")
    assert all("nothing to relieve" not in problem.message for problem in spec.check(written(folder, text)).warnings)
    report = spec.check(written(folder, text.replace("{latency_ms: 5000}", "{loss: 0}")))
    assert any("nothing to relieve" in problem.message for problem in report.warnings)
