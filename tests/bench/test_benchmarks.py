"""Every benchmark has its setting in a file with the reason, treats both sides alike, and starts in its short form."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from benchmarks import _bench
from benchmarks._bench import Setting, load, ratios, spread, turns
from benchmarks.real_time import NO_BROKER

from tests import ROOT
from weft.cli.bench import names

# No Spark, or they start their own.
ALONE = {"twin", "placement", "prediction", "transport", "composing", "processes", "real_time", "runs"}
# A Spark for every run, or for every site; or much as another's. All of `prediction` but its runs: `test_prediction`.
SLOW = {"balance", "prediction", "processes", "real_time", "runs"}


def test_every_benchmark_has_a_setting_with_its_reason_and_every_setting_a_benchmark() -> None:
    assert {path.stem for path in _bench.SETTINGS.glob("*.toml")} == set(names())
    for name in names():
        held = tomllib.loads((_bench.SETTINGS / f"{name}.toml").read_text(encoding="utf-8"))
        assert len(held["reason"].split()) > 10, name
        assert set(held["short"]) <= set(held["setting"]), name
        assert held["short"], name
        module = importlib.import_module(f"benchmarks.{name}")
        assert module.__doc__, name


def test_the_page_says_what_each_benchmark_asks() -> None:
    page = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \| .+\? \|$", page, re.MULTILINE)) == sorted(names())


def test_both_sides_have_as_many_turns_and_are_first_as_often() -> None:
    held = list(turns(["a", "b"], rounds=4, warm=2))
    assert [sum(name == one and counts for _, name, counts in held) for one in "ab"] == [4, 4]
    assert [sum(name == one and not counts for _, name, counts in held) for one in "ab"] == [2, 2]
    first = [next(name for number, name, _ in held if number == round_) for round_ in range(6)]
    assert first.count("a") == first.count("b") == 3


def test_every_round_is_told_and_ratios_are_taken_within_rounds() -> None:
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "least": 1.0, "most": 3.0, "rounds": [3.0, 1.0, 2.0]}
    assert ratios([2.0, 30.0], [1.0, 10.0])["rounds"] == [2.0, 3.0]


def test_aims_are_compared_and_what_was_not_measured_is_not_missed() -> None:
    aims = {"a.median": {"at_least": 1.0}, "b": {"at_most": 2.0}, "c": {"at_least": 1.0}}
    setting = Setting("x", "because", {}, aims)
    assert setting.missed({"a": {"median": 0.99}, "b": 2.0}) == ["a.median"]
    assert setting.missed({"a": {"median": 1.0}, "b": 2.1}) == ["b"]
    assert setting.aim("a.median") == "aim: at least 1"


def test_only_the_setting_of_the_file_is_kept_with_date_and_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.toml").write_text('reason = "r"\n[setting]\nn = 5\n[short]\nn = 1\n')
    monkeypatch.setattr(_bench, "SETTINGS", tmp_path)
    monkeypatch.setattr(_bench, "HISTORY", tmp_path / "history")

    def bench(*words: str) -> Any:
        _bench.go("x", None, lambda setting: {"n": setting["n"]}, lambda setting, found: None, ["--json", *words])
        return json.loads(capsys.readouterr().out)

    assert [bench("--short"), bench("--set", "n=7"), bench("--no-keep")] == [{"n": 1}, {"n": 7}, {"n": 5}]
    assert not (tmp_path / "history").exists()
    bench()
    bench()
    entries = json.loads((tmp_path / "history" / "x.json").read_text())
    assert [entry["found"] for entry in entries] == [{"n": 5}, {"n": 5}]
    assert entries[0]["setting"] == {"n": 5}
    assert entries[0]["commit"]
    assert entries[0]["date"].endswith("UTC")
    with pytest.raises(SystemExit, match="there is no m; there are: n"):
        bench("--set", "m=1")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in names() if name in ALONE]
)
def test_a_benchmark_starts_in_its_short_form(name: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--short", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if NO_BROKER in done.stderr:
        pytest.skip(done.stderr[-200:])
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in names() if name not in ALONE])
def test_a_benchmark_on_spark_starts_in_its_short_form(
    name: str, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the session that is there, which it leaves running."""
    module = importlib.import_module(f"benchmarks.{name}")
    setting = load(name, short=True)
    sides = [module.sides(None), None] if name == "durability" else []
    found = module.measure(*sides, setting)
    module.show(setting, found)
    assert capsys.readouterr().out
    assert spark.range(3).count() == 3
