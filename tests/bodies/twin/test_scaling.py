"""Scaling in the twin: instances come with the load and go with it, and records are none the worse for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weft.bodies.twin import CannotRun, Result, run
from weft.bodies.twin.control.steering import Steering
from weft.bodies.twin.run import prepared
from weft.bodies.twin.setup.options import Options
from weft.model import Deployment, MoveAt, Placement
from weft.spec import load

FILE = """
weft: 1
sites: [{name: s1}, {name: s2}, {name: s3}, {name: s4, capacity: 0.5}]
links:
  - {from: s1, to: s2, delay_ms: 2}
  - {from: s2, to: s3, delay_ms: 2}
  - {from: s3, to: s4, delay_ms: 2}
sources:
  - {name: r, site: s1, format: rate, schema: "ts TIMESTAMP, n BIGINT", event_time: ts,
     arrivals: {kind: poisson, rate_per_s: 100}}
queries:
  - name: q
    operators:
      - {name: light, from: [r], sql: "SELECT * FROM r", cost_ms: 1.0, selectivity: 1}
      - {name: heavy, from: [light], sql: "SELECT * FROM light", cost_ms: 6.0, selectivity: 1}
    sink: {from: heavy, format: parquet, path: out/q}
control:
  scale: {target: 0.7, high: 0.8, low: 0.5, period_s: 5}
scenario:
  - {at_s: 20, rate: {r: 3.0}}
  - {at_s: 70, rate: {r: 0.5}}
"""


def deployment(folder: Path, text: str = FILE) -> Deployment:
    path = folder / "weft.yaml"
    path.write_text(text)
    return load(path)


def changes(result: Result) -> list[tuple[str, bool, bool]]:
    return [(move.operator, 20 < move.at_s < 70, move.to != "") for move in result.moves]


def test_instances_come_with_the_load_and_go_with_it(tmp_path: Path) -> None:
    world = deployment(tmp_path)
    scaled = run(world, seconds=110, seed=1)
    fixed = run(replace(world, control=replace(world.control, scale=None)), seconds=110, seed=1)
    made = changes(scaled)
    assert made.count(("heavy", True, True)) >= 2, "1.8 of work a second wants several"
    starts, stops = (sum(one[2] == to for one in made if one[0] == "heavy") for to in (True, False))
    assert starts == stops, "0.3 wants one"
    assert scaled.queries["q"]["latency_ms"]["p99"] < fixed.queries["q"]["latency_ms"]["p99"] / 2
    assert scaled.queries["q"]["records_in"] - scaled.queries["q"]["records_out"] <= 5, "but for those under way"
    assert "above 0.8" in scaled.moves[0].reason


def test_what_keeps_state_or_has_a_site_is_not_scaled(tmp_path: Path) -> None:
    for pin in ("state_kb: 10", "site: s2"):
        world = deployment(tmp_path, FILE.replace("cost_ms: 6.0,", f"cost_ms: 6.0, {pin},"))
        assert all(move.operator != "heavy" for move in run(world, seconds=40, seed=1).moves)


NS = 1_000_000_000


def steered(world: Deployment, homes: dict[str, str], seconds: float, **more: Any) -> Steering:
    """A run up to a moment, to be looked into."""
    placement = Placement(homes)
    plane = prepared(world, placement, seconds, 1, Options(steady=False))
    steering = Steering(world, placement, plane, **more)
    steering.run(round(seconds * NS))
    return steering


def unscaled(folder: Path, **more: Any) -> Deployment:
    world = deployment(folder)
    return replace(world, control=replace(world.control, scale=None), scenario=(), **more)


def test_every_instance_that_runs_stands_in_the_plan_in_force(tmp_path: Path) -> None:
    at_s1 = {"q.light": "s1", "q.heavy": "s1"}
    begun = steered(deployment(tmp_path), at_s1, 60.0)
    plan = begun.changes.plan
    assert plan.number >= 2, "each instance is a change"
    for stream, others in plan.placement.instances.items():
        assert begun.records.instances(tuple(stream.split("."))) == ("s1", *others)  # type: ignore[attr-defined]
    assert len(plan.placement.instances["q.heavy"]) >= 2
    ended = steered(deployment(tmp_path), at_s1, 110.0)
    assert ended.changes.plan.placement.instances == {}


def test_an_instance_that_may_not_be_is_refused_in_the_words_of_the_door(tmp_path: Path) -> None:
    island = deployment(tmp_path, FILE.replace("  - {from: s3, to: s4, delay_ms: 2}\n", ""))
    plain = replace(island, control=replace(island.control, scale=None))
    placement = Placement({"q.light": "s1", "q.heavy": "s1"})
    told = run(plain, placement, seconds=3, instances=((1.0, "start", "q.heavy", "s4"),))
    assert told.warnings == ["at 1 s: it reads light: no path of links leads from s1 to s4"]
    assert told.operator_rows[1]["instances"] == 1
    scaled = run(island, placement, seconds=60, seed=1)
    assert scaled.moves
    assert all(move.to != "s4" for move in scaled.moves), "nobody asks for the impossible"
    assert scaled.warnings == []


def test_instances_that_were_asked_for_are_told_and_stand_in_the_placement_at_the_end(tmp_path: Path) -> None:
    come = ((1.0, "start", "q.heavy", "s2"), (1.5, "start", "q.heavy", "s3"), (2.0, "stop", "q.heavy", "s2"))
    placement = Placement({"q.light": "s1", "q.heavy": "s1"})
    told = run(unscaled(tmp_path), placement, seconds=3, instances=come).as_json()  # type: ignore[arg-type]
    assert [(one["operator"], one["from"], one["to"], one["at_s"]) for one in told["moves"]] == [
        ("heavy", "", "s2", 1.0), ("heavy", "", "s3", 1.5), ("heavy", "s2", "", 2.0),
    ]  # fmt: skip
    assert {one["reason"] for one in told["moves"]} == {"asked for by the scenario"}
    assert told["placement_at_end"] == {"q": {"light": ["s1"], "heavy": ["s1", "s3"]}}
    assert "placement_at_end" not in run(unscaled(tmp_path), placement, seconds=3).as_json(), "nothing has changed"


def test_an_instance_that_was_asked_for_needs_room_as_a_move_does(tmp_path: Path) -> None:
    world = unscaled(tmp_path)
    small = replace(world, sites=(*world.sites[:3], replace(world.sites[3], capacity=0.1)))
    placement = Placement({"q.light": "s1", "q.heavy": "s1"})
    told = run(small, placement, seconds=3, instances=((1.0, "start", "q.heavy", "s4"),))
    [warning] = told.warnings
    assert warning.startswith("at 1 s: s4 has no room: 0 ms/s planned there and 300 ms/s more"), "half of 600 ms/s"
    assert (told.moves, told.operator_rows[0]["instances"]) == ([], 1)


def test_a_run_begins_with_one_instance_of_each_operator(tmp_path: Path) -> None:
    several = Placement({"q.light": "s1", "q.heavy": "s1"}, instances={"q.heavy": ("s2",)})
    with pytest.raises(CannotRun, match="a run begins with one instance of"):
        run(unscaled(tmp_path), several, seconds=3)


def test_an_instance_that_is_asked_for_during_a_move_waits_for_its_end(tmp_path: Path) -> None:
    world = unscaled(tmp_path)
    [query] = world.queries
    light, heavy = query.operators
    world = replace(
        world, queries=(replace(query, operators=(light, replace(heavy, state_kb=100.0))),),
        links=tuple(replace(link, bandwidth_kbps=800.0) for link in world.links),
        scenario=(MoveAt(1.0, "q.heavy", "s2"),),
    )  # fmt: skip
    steering = steered(
        world, {"q.light": "s1", "q.heavy": "s1"}, 8.0,
        instances=((1.2, "start", "q.heavy", "s3"), (1.3, "stop", "q.heavy", "s3"), (1.4, "start", "q.heavy", "s1")),
    )  # fmt: skip
    assert (steering.changes.homes["q.heavy"], steering.warnings) == ("s2", [])
    assert steering.changes.plan.placement.instances == {"q.heavy": ("s1",)}
    assert steering.records.instances(("q", "heavy")) == ("s2", "s1")  # type: ignore[attr-defined]
    waited = [line for line in steering.carrier.story if " controller ChangeMade(" in line]
    assert len(waited) == 4
    assert "AskFor(" in waited[0], "what touches the same was held back until the move was over"


def test_a_move_leaves_further_instances_where_they_are(tmp_path: Path) -> None:
    world = unscaled(tmp_path)
    world = replace(world, scenario=(MoveAt(2.0, "q.heavy", "s2"),))
    come = ((1.0, "start", "q.heavy", "s2"), (4.0, "stop", "q.heavy", "s2"))
    steering = steered(world, {"q.light": "s1", "q.heavy": "s1"}, 3.0, instances=come)
    assert steering.records.instances(("q", "heavy")) == ("s2", "s2")  # type: ignore[attr-defined]
    assert steering.changes.plan.placement.instances == {"q.heavy": ("s2",)}
    steering.run(5 * NS)
    assert steering.changes.plan.placement.instances == {}
    assert steering.records.instances(("q", "heavy")) == ("s2",)  # type: ignore[attr-defined]


def test_safe_mode_of_the_file_leaves_fewer_records_waiting(tmp_path: Path) -> None:
    # Work of 1.2: chance makes one copy with a probability of 0.26, safe mode makes it at once.
    tight = FILE.replace("target: 0.7, high: 0.8, low: 0.5", "target: 0.95, high: 0.96, low: 0.5")
    tight = tight.replace("r: 3.0", "r: 2.0")

    def latency_ms(text: str) -> float:
        world = deployment(tmp_path, text)
        return float(sum(run(world, seconds=70, seed=seed).queries["q"]["latency_ms"]["mean"] for seed in range(4)))

    assert latency_ms(tight.replace("low: 0.5", "low: 0.5, safe: true")) < latency_ms(tight)
