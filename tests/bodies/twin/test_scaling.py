"""Scaling in the twin: instances come with the load and go with it, and records are none the worse for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weft.bodies.twin import Result, run
from weft.model import Deployment
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


def test_safe_mode_of_the_file_leaves_fewer_records_waiting(tmp_path: Path) -> None:
    # Work of 1.2: chance makes one copy with a probability of 0.26, safe mode makes it at once.
    tight = FILE.replace("target: 0.7, high: 0.8, low: 0.5", "target: 0.95, high: 0.96, low: 0.5")
    tight = tight.replace("r: 3.0", "r: 2.0")

    def latency_ms(text: str) -> float:
        world = deployment(tmp_path, text)
        return float(sum(run(world, seconds=70, seed=seed).queries["q"]["latency_ms"]["mean"] for seed in range(4)))

    assert latency_ms(tight.replace("low: 0.5", "low: 0.5, safe: true")) < latency_ms(tight)
