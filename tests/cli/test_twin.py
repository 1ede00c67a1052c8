"""`weft twin`: the contract's JSON, tables for people, a picture, what the last run measured, and clear refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli_files import GOOD, STATE, changed, weft, weft_json, written

# These tests look at what happens where `valid` stays beside its source.
NEAR = "control: {place: {policy: near}}\n"


def test_the_twin_prints_the_contracts_json(tmp_path: Path) -> None:
    found = weft_json("twin", written(tmp_path), "--seconds", 5, "--seed", 1, "--ideal")
    assert list(found)[:6] == ["queries", "sites", "moves", "events", "wall_s", "warnings"]
    assert found["queries"]["hourly_use"]["records_in"] > 900
    assert any("hourly_use.hourly: cost_ms 0.1" in warning for warning in found["warnings"])


def test_the_twin_takes_what_the_last_run_measured(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + NEAR)
    state = tmp_path / STATE
    state.mkdir(parents=True)
    measured = {"hourly_use.hourly": {"cost_ms": 4.0, "selectivity": 0.25}}
    (state / "measurements.jsonl").write_text(json.dumps({"operators": measured}) + "\n")
    found = weft_json("twin", file, "--seconds", 60, "--seed", 1, "--ideal")
    # 100 records a second of 4 ms on a site of capacity 2.
    assert abs(found["sites"]["district"]["utilisation"] - 0.2) < 0.01
    assert not any("assumed" in warning for warning in found["warnings"])


def test_tables_and_a_picture_are_for_people(tmp_path: Path) -> None:
    scenario = "scenario:\n  - {at_s: 1, move: hourly_use.valid, to: district}\n"
    said = weft("twin", written(tmp_path, GOOD + NEAR + scenario), "--seconds", 5, "--plot", tmp_path / "x.svg")
    assert said.exit_code == 0
    assert "hourly_use.valid" in said.stdout
    assert "utilisation" in said.stdout
    picture = (tmp_path / "x.svg").read_text()
    assert "<svg" in picture
    assert weft("twin", written(tmp_path), "--seconds", 1, "--plot", tmp_path / "no" / "x.png").exit_code == 1


def test_a_picture_says_what_was_promised_and_names_moves_beside_it(tmp_path: Path) -> None:
    import matplotlib

    scenario = "scenario:\n  - {at_s: 1, move: hourly_use.valid, to: district}\n"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        file = written(tmp_path, GOOD + NEAR + scenario)
        assert weft("twin", file, "--seconds", 20, "--ideal", "--plot", tmp_path / "x.svg").exit_code == 0
    picture = (tmp_path / "x.svg").read_text()
    assert "20 virtual seconds: mean latency of results" in picture
    assert "hourly_use: promised 5,000 ms" in picture
    assert "1: hourly_use.valid to district" in picture


def test_where_no_record_came_no_picture_is_drawn(tmp_path: Path) -> None:
    file = written(tmp_path, changed("    arrivals: {kind: poisson, rate_per_s: 200}\n", ""))
    said = weft("twin", file, "--seconds", 1, "--plot", tmp_path / "x.png")
    assert said.exit_code == 0
    assert "x.png is not drawn: no record came" in said.stderr
    assert not (tmp_path / "x.png").exists()


def test_advice_is_told_and_stands_in_the_json(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {place: {policy: near}, advise: {period_s: 2, price: 0}}\n")
    found = weft_json("twin", file, "--seconds", 5, "--seed", 1)
    assert "advice" in found
    assert found["advice"][0]["at_s"] == 2.0
    assert "advice" in weft("twin", file, "--seconds", 5, "--seed", 1).stdout


def test_batches_and_disciplines_can_be_written_in_the_file(tmp_path: Path) -> None:
    text = changed("quota: 0.8,", "quota: 0.8, batch: {interval_ms: 500, fixed_ms: 100},")
    file = written(tmp_path, text + "control: {place: {policy: near}, serve: {discipline: slack, drop_late: true}}\n")
    found = weft_json("twin", file, "--seconds", 20)
    assert found["sites"]["gw-1"]["queue_max"] > 80
    assert found["sites"]["gw-1"]["utilisation"] > 0.35
    wrong = written(tmp_path, changed("quota: 0.8,", "batch: {interval_ms: -1},"))
    assert weft("twin", wrong).exit_code == 2


def test_no_source_and_no_capacity_are_wrong_input(tmp_path: Path) -> None:
    for text in (changed("capacity: 2.0", "capacity: 0"), GOOD.replace("sources:", "nothing:")):
        said = weft("twin", written(tmp_path, text))
        assert said.exit_code == 2
        assert "deployment.yaml" in said.stderr


@pytest.mark.parametrize("model", [(), ("--ideal",)])
def test_the_twin_runs_the_placement_that_the_plan_shows(tmp_path: Path, model: tuple[str, ...]) -> None:
    file = written(tmp_path)
    shown = weft_json("plan", file, *model)
    found = weft_json("twin", file, "--seconds", 2, *model)
    assert found["placement"] == shown["placement"]
    assert (found["model"], found["placed_by"]) == (shown["model"], shown["placed_by"])


def test_latency_may_be_counted_from_the_youngest_that_contributed(tmp_path: Path) -> None:
    file = written(tmp_path)
    result = weft("twin", file, "--seconds", 2, "--latency", "nonsense")
    assert (result.exit_code, "latency is emitted or contributing" in result.stderr) == (2, True)
    assert weft("twin", file, "--seconds", 2, "--ideal", "--latency", "contributing").exit_code == 0
