"""What a run stands on: the store and the Spark that a file names, and what of them is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.spec.spec_texts import GOOD, changed, line_of, written
from weft import spec
from weft.model import Deployment, Site, Spark, Store
from weft.spec.conf import KEPT
from weft.spec.tree import FILE_BYTES_MAX

SPARK = 'spark: {master: "local[3]", conf: {spark.ui.enabled: true, spark.sql.shuffle.partitions: 8}}\n'


@pytest.mark.parametrize(
    ("text", "store"),
    [
        ("", Store(".weft", True)),
        ("store: state\n", Store("state", True)),
        ("store: {path: state}\n", Store("state", True)),
        ("store: {fsync: false}\n", Store(".weft", False)),
        ("store: {path: ~/kept, fsync: false}\n", Store("~/kept", False)),
    ],
)
def test_a_store_is_read_written_back_and_found_alone(folder: Path, text: str, store: Store) -> None:
    file = written(folder, GOOD + text)
    deployment = spec.load(file)
    assert deployment.store == store == spec.store_of(file)
    again = spec.load(written(folder, json.dumps(spec.as_plain(deployment))))
    assert again.store == store
    assert ("store" in spec.as_plain(deployment)) == (store != Store())


@pytest.mark.parametrize(
    ("text", "store"),
    [
        (GOOD.replace("SELECT *", "SELEKT *") + "store: state\n", Store("state")),
        (GOOD.replace("sources:", "sources: [") + "store: {path: state, fsync: false}\n", Store("state", False)),
        ("store:\n  path: state\n\tbroken\n", Store("state")),
        (GOOD + "store: [a]\n", Store()),
        (GOOD + "store: {pth: a}\n", Store()),
        (GOOD + "store:\n", Store()),
        ("\x00", Store()),
        ("- store: state\n", Store()),
        ("", Store()),
    ],
)
def test_the_store_of_a_broken_file_is_found_where_it_can_be(folder: Path, text: str, store: Store) -> None:
    assert spec.store_of(written(folder, text)) == store


def test_the_store_of_a_file_that_is_gone_is_the_usual_one(folder: Path) -> None:
    assert spec.store_of(folder / "none.yaml") == spec.store_of(folder) == Store()


def test_the_store_is_found_soon_in_any_file(folder: Path) -> None:
    began = time.process_time()
    spec.store_of(written(folder, "a: [" + "x, " * (FILE_BYTES_MAX // 4)))
    spec.store_of(written(folder, "store:" + "\n " * (FILE_BYTES_MAX // 4)))
    assert time.process_time() - began < 3


def test_a_spark_is_read_with_its_values_as_text_and_written_back(folder: Path) -> None:
    text = GOOD.replace("capacity: 2.0", "capacity: 2.0, spark: {master: local, conf: {spark.driver.memory: 4g}}")
    deployment = spec.load(written(folder, text + SPARK))
    wanted = Spark("local[3]", {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "8"})
    assert deployment.spark == wanted
    assert deployment.site("district").spark == Spark("local", {"spark.driver.memory": "4g"})
    assert deployment.site("gw-1").spark == Spark()
    again = spec.load(written(folder, json.dumps(spec.as_plain(deployment))))
    assert (again.spark, again.sites) == (deployment.spark, deployment.sites)
    assert hash(again.sites[0]) == hash(deployment.sites[0])


def test_the_schema_tells_of_store_and_spark() -> None:
    properties = spec.schema()["properties"]
    assert {"store", "spark"} <= set(properties)
    assert "absent: .weft" in properties["store"]["description"]
    assert set(properties["spark"]["properties"]) == {"master", "conf"}


def sites(**sparks: Spark) -> Deployment:
    """A deployment of sites with these Sparks."""
    return Deployment(tuple(Site(name, spark=spark) for name, spark in sparks.items()), (), ())


def test_without_a_word_spark_takes_all_cores() -> None:
    assert sites(a=Spark(), b=Spark()).shared_spark() == (Spark("local[*]"), ())


def test_sites_that_agree_have_their_master_and_settings() -> None:
    same = Spark("local[2]", {"spark.x": "1"})
    assert sites(a=same, b=Spark(), c=same).shared_spark() == (same, ())
    one, other = Spark(conf={"spark.x": "1"}), Spark(conf={"spark.y": "2"})
    assert sites(a=one, b=other).shared_spark()[0].conf == {"spark.x": "1", "spark.y": "2"}


def test_sites_that_differ_have_the_default_and_are_named() -> None:
    one, other = Spark("local[1]", {"spark.x": "1"}), Spark("local[4]", {"spark.x": "2"})
    spark, warnings = sites(a=one, b=other, c=Spark()).shared_spark()
    assert spark == Spark("local[*]")
    assert ["a says local[1], b says local[4]" in one for one in warnings] == [True, False]
    assert "differ on spark.x: a says 1, b says 2" in warnings[1]


def test_the_deployments_own_word_wins_without_a_warning() -> None:
    one, other = Spark("local[1]", {"spark.x": "1"}), Spark("local[4]", {"spark.x": "2", "spark.y": "2"})
    both = Deployment((Site("a", spark=one), Site("b", spark=other)), (), (), spark=Spark("local", {"spark.x": "3"}))
    assert both.shared_spark() == (Spark("local", {"spark.x": "3", "spark.y": "2"}), ())


def test_a_check_warns_of_sites_that_differ(folder: Path) -> None:
    text = GOOD.replace("parent: district}", "spark: {master: local}}")
    text = text.replace("capacity: 2.0}", 'capacity: 2.0, spark: {master: "local[2]"}}')
    report = spec.check(written(folder, text))
    assert report.ok
    (warning,) = report.warnings
    assert (warning.field, warning.line) == ("sites", 2)
    assert "gw-1 says local, district says local[2]" in warning.message


@pytest.mark.parametrize("key", [key + ("x" if key.endswith(".") else "") for key in KEPT])
def test_what_a_run_depends_on_cannot_be_set(folder: Path, key: str) -> None:
    text = GOOD + f"spark:\n  conf:\n    spark.ui.enabled: true\n    {key}: 1\n"
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == (f"spark.conf.{key}", line_of(text, f"    {key}:"))
    assert problem.message.startswith("cannot be set: ")
    assert problem.message.endswith("; leave it out")


def test_a_sites_setting_is_refused_at_the_site(folder: Path) -> None:
    text = GOOD.replace("capacity: 2.0}", "capacity: 2.0, spark: {conf: {spark.sql.session.timeZone: CET}}}")
    (problem,) = spec.check(written(folder, text)).errors
    assert (problem.field, problem.line) == ("sites[1].spark.conf.spark.sql.session.timeZone", 4)


@pytest.mark.parametrize(
    ("text", "at", "field", "piece"),
    [
        ("store: 1\n", "store", "store", "must be a folder, or a mapping"),
        ("store: {path: 1}\n", "store", "store.path", "must be a folder, found `1`"),
        ("store: {fsync: 1}\n", "store", "store.fsync", "must be true or false"),
        ("store: {paht: x}\n", "store", "store.paht", "did you mean `path`?"),
        ("store: .\n", "store", "store", "holds the deployment file itself"),
        ("store: {path: ..}\n", "store", "store.path", "holds the deployment file itself"),
        ("store: rules.py\n", "store", "store", "is a file; state needs a folder"),
        ("store: s3a://bucket/state\n", "store", "store", "is not a folder of this machine"),
        ("spark: local\n", "spark:", "spark", "must be a mapping (a Spark)"),
        ("spark: {master: yarn}\n", "spark:", "spark.master", "found `yarn`; other masters are not there yet"),
        ('spark: {master: "local[0]"}\n', "spark:", "spark.master", "must be local, local[N], local[*] or spark://"),
        (
            "spark: {conf: {driver.memory: 2g}}\n",
            "spark:",
            "spark.conf.driver.memory",
            "did you mean `spark.driver.memory`?",
        ),
        ("spark: {conf: {spark.x: [1]}}\n", "spark:", "spark.conf.spark.x", "must be text, a number or true/false"),
    ],
)
def test_a_mistake_in_store_or_spark_is_told(folder: Path, text: str, at: str, field: str, piece: str) -> None:
    whole = GOOD + text
    (problem,) = spec.check(written(folder, whole)).errors
    assert (problem.field, problem.line) == (field, line_of(whole, "\n" + at) + 1)
    assert piece in problem.message


def test_a_deployment_built_in_python_is_checked_alike(folder: Path) -> None:
    from dataclasses import replace

    good = spec.load(written(folder, changed("quota: 0.8", "quota: 0.9")))
    bad = replace(good, spark=Spark("yarn", {"spark.sql.session.timeZone": "CET"}), store=Store("."))
    errors, _ = spec.validate(bad)
    assert [one.field for one in errors] == ["spark.master", "store", "spark.conf.spark.sql.session.timeZone"]
