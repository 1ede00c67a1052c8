"""One placement: `weft plan`, `weft twin` and `weft run` of the same file and state, and they say which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.cli_files import GOOD, STATE, changed, weft, weft_json, written
from weft.bodies.live import journal
from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import State
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.judging.batch_pieces import fragments_of
from weft.spec import check


def planned_by_run(file: Path) -> dict[str, Any]:
    """The placement that a run decides upon, before Spark starts."""
    deployment = check(file).deployment
    assert deployment is not None
    run = Run(deployment, file.parent / STATE, Options(seconds=1.0))
    return run._opening.refuse().as_json()


def held(file: Path, **homes: str) -> None:
    """Leaves a state in which a run was stopped, with operators elsewhere than the file would put them."""
    deployment = check(file).deployment
    assert deployment is not None
    run = Run(deployment, file.parent / STATE, Options(seconds=1.0))
    placement = run._opening.refuse()
    for name, site in homes.items():
        placement = placement.put(f"hourly_use.{name}", site, "asked for")
    (file.parent / STATE).mkdir(parents=True, exist_ok=True)
    plan = RunningPlan(3, deployment, placement, fragments_of(deployment, placement))
    journal.write(State(file.parent / STATE), plan, {}, {})


def test_plan_twin_and_run_agree(tmp_path: Path) -> None:
    file = written(tmp_path)
    planned = weft_json("plan", file)
    twin = weft_json("twin", file, "--seconds", 5, "--seed", 7)
    assert planned["placement"] == twin["placement"] == planned_by_run(file)
    assert planned["placed_by"] == twin["placed_by"] == "the policy refine"
    assert planned["model"] == twin["model"] == "micro-batch"
    said = weft("twin", file, "--seconds", 5).stdout
    assert "placed by the policy refine" in said
    assert "hourly_use.valid" in said


def test_a_plan_in_force_wins_and_fresh_shows_the_files_own(tmp_path: Path) -> None:
    file = written(tmp_path)
    own = weft_json("plan", file)["placement"]
    held(file, valid="district")
    for command in (("plan",), ("twin", "--seconds", 5)):
        found = weft_json(command[0], file, *command[1:])
        assert found["placement"] == {"hourly_use": {"valid": ["district"], "hourly": ["district"]}}
        assert "the plan in force" in found["placed_by"]
        assert "number 3" in found["placed_by"]
        assert weft_json(command[0], file, *command[1:], "--fresh")["placement"] == own
    assert weft_json("plan", file)["reasons"]["hourly_use"]["valid"] == "asked for"
    assert weft_json("plan", file, "--policy", "near")["placement"] == own


def test_what_the_file_pins_now_goes_there(tmp_path: Path) -> None:
    file = written(tmp_path)
    held(file, valid="district")
    file.write_text(changed("selectivity: 0.5}", "selectivity: 0.5, site: gw-1}"))
    assert weft_json("plan", file)["placement"]["hourly_use"]["valid"] == ["gw-1"]


def test_batches_of_the_last_run_correct_the_costs(tmp_path: Path) -> None:
    file = written(tmp_path)
    before = weft_json("plan", file)["projected"]["hourly_use"]
    held(file)
    lines = {"fragments": {"hourly_use.valid": {"batch_ms": 9_000.0}, "hourly_use.hourly": {"batch_ms": 9_000.0}}}
    (tmp_path / STATE / "measurements.jsonl").write_text(json.dumps(lines) + "\n")
    found = weft_json("plan", file)
    assert "corrected by the batches of the last run" in found["batch_costs"]["from"]
    assert found["projected"]["hourly_use"]["p50_ms"] > 5 * before["p50_ms"]
    assert not found["projected"]["hourly_use"]["admitted"]


def test_people_are_told_p50_and_p95_and_where_costs_are_from(tmp_path: Path) -> None:
    said = weft("plan", written(tmp_path)).stdout
    assert "latency p50 " in said
    assert "costs of batches as shipped" in said


def test_what_is_only_of_the_twin_is_ideal_and_said(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD + "control: {serve: {discipline: slack}}\n")
    assert weft_json("plan", file)["model"] == "ideal"
    assert "by the ideal model" in weft("twin", file, "--seconds", 2).stderr


def test_an_ideal_promise_counts_hops_as_placement_does(tmp_path: Path) -> None:
    # The stream from gw-1 to the district is a hop: 21 ms without it, which would keep a promise of 100.
    file = written(tmp_path, changed("latency_ms: 5000", "latency_ms: 100"))
    projected = weft_json("plan", file, "--ideal")["projected"]["hourly_use"]
    assert projected["latency_ms"] < 100
    assert not projected["admitted"]
