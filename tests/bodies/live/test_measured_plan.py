"""A run plans by what the last one measured where its file declares nothing, as the other commands do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.cli.cli_files import weft_json
from weft.bodies.live.last_run import FILE as MEASUREMENTS
from weft.bodies.live.run import Options, Run

FILE = """
weft: 1
sites: [{name: a, capacity: 1}, {name: b, capacity: 8}]
links: [{from: a, to: b, delay_ms: 5}]
sources:
  - {name: made, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", arrivals: {kind: constant, rate_per_s: 100}}
queries:
  - name: q
    operators:
      - {name: heavy, from: [made], sql: "SELECT * FROM made"}
    sink: {from: heavy, format: parquet, path: out}
"""
DEAR = {"q.heavy": {"cost_ms": 20.0, "selectivity": 1.0}}


def planned(folder: Path, fresh: bool = False) -> tuple[dict[str, str], list[str]]:
    """Where a run would begin, and what it tells."""
    deployment = weft.spec.load(folder / "weft.yaml")
    run = Run(deployment, folder / ".weft" / "weft.yaml", Options(seconds=1, fresh=fresh))
    run._opening.refuse()
    placement = run._opening.refuse()
    return dict(placement.homes), run._opening.notes


def test_a_run_begins_where_the_plan_says_with_what_was_measured(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    assert planned(tmp_path) == ({"q.heavy": "a"}, [])
    state = tmp_path / ".weft" / "weft.yaml"
    state.mkdir(parents=True)
    (state / MEASUREMENTS).write_text(json.dumps({"operators": DEAR}) + "\n")
    homes, notes = planned(tmp_path, fresh=True)
    assert homes == {"q.heavy": "b"}
    assert notes == ["operator q.heavy: cost_ms 20 and selectivity 1 as the last run measured"], "told once"
    assert weft_json("plan", tmp_path / "weft.yaml")["placement"] == {"q": {"heavy": ["b"]}}


@pytest.mark.spark
def test_a_state_goes_on_where_it_runs_whatever_was_measured_since(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    deployment, state = weft.spec.load(tmp_path / "weft.yaml"), tmp_path / ".weft" / "weft.yaml"
    first = Run(deployment, state, Options(seconds=2)).go()
    (state / MEASUREMENTS).write_text(json.dumps({"operators": DEAR}) + "\n")
    again = Run(deployment, state, Options(seconds=2))
    second = again.go()
    assert again.placement.homes == {"q.heavy": "b"}, "planned anew it would be there"
    assert first["placement"] == second["placement"] == {"q": {"heavy": ["a"]}}
    assert not any("measured" in note for note in again.notes)
