"""Predicted against measured: what `weft run --twin` sets side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.run import Options, Run
from weft.cli.placing import placed
from weft.cli.predicted import PREDICTED_HEAD, compared, predicted, predicted_rows

FILE = """
weft: 1
sites: [{name: a}, {name: b}]
links: [{from: a, to: b}]
sources:
  - {name: made, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT", arrivals: {kind: constant, rate_per_s: 100}}
queries:
  - name: q
    operators:
      - {name: few, from: [made], sql: "SELECT * FROM made WHERE n % 2 = 0", site: a, selectivity: 0.5}
      - {name: here, from: [few], sql: "SELECT * FROM few", site: b, selectivity: 1}
    sink: {from: here, format: parquet, path: out}
"""


def test_ratios_are_of_predicted_over_measured_and_what_is_missing_is_a_dash(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    before = placed(tmp_path / "weft.yaml", weft.spec.load(tmp_path / "weft.yaml"), None)
    found = compared(before, {"q": {"p50": 500.0, "p95": 1000.0}}, flowed_s=60.0)["q"]
    for by in ("plan", "twin"):
        assert found["ratio"][by]["p50"] == pytest.approx(found[by]["p50"] / 500.0, abs=0.001)
    assert found["plan"]["p50"] == pytest.approx(found["twin"]["p50"], rel=0.25)
    rows = predicted_rows(compared(before, {"q": None}, 60.0))
    assert len(rows[0]) == len(PREDICTED_HEAD)
    assert rows[0][-1] == "- - - -"
    assert compared(before, {}, 0.0) == {}


@pytest.mark.spark
def test_a_run_is_measured_after_its_start_and_its_batches_are_kept(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(FILE)
    file = tmp_path / "weft.yaml"
    before = placed(file, weft.spec.load(file), None)
    run = Run(weft.spec.load(file), tmp_path / ".weft" / "weft.yaml", Options(seconds=12.0))
    summary = run.go()
    assert summary["placement"] == before.placement.as_json()
    whole, later = summary["queries"]["q"]["latency_ms"], summary["queries"]["q"]["after_start_ms"]
    told = predicted(before, summary)["q"]
    assert later is None or later["max"] <= whole["max"]
    assert told["measured"] == (None if later is None else {key: later[key] for key in ("p50", "p95")})
    assert told["plan"]["p50"] > 0
    after = placed(file, weft.spec.load(file), None)
    assert "the plan in force" in after.placed_by
    assert after.placement.homes == before.placement.homes
    if any(one["batches"] > 3 for one in summary["fragments"].values()):
        assert after.costs.factors
