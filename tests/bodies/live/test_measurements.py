"""What a run measures: cost and selectivity of operators whose values are known, and the lines it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from weft.bodies.live.last_run import FILE as MEASUREMENTS
from weft.bodies.live.last_run import last_measured, last_observed
from weft.bodies.live.run import Options, Run

SLOW = '''
import time


def slow(df, ms):
    """Takes so many milliseconds for every record, and gives every tenth."""

    def work(batches):
        for batch in batches:
            time.sleep(len(batch) * ms / 1000)
            yield batch[batch["n"] % 10 == 0]

    return df.mapInPandas(work, df.schema)
'''
FILE = """
weft: 1
sites: [{name: a, quota: 0.5}, {name: b}]
links: [{from: a, to: b}]
sources:
  - {name: made, site: a, format: rate, schema: "ts TIMESTAMP, n BIGINT",
     arrivals: {kind: sine, rate_per_s: 160, amplitude: 0.8, period_s: 4}}
queries:
  - name: q
    promise: {latency_ms: 60000}
    operators:
      - {name: quarter, from: [made], sql: "SELECT * FROM made WHERE n % 4 = 0", site: a}
      - {name: slow, from: [quarter], call: "slow_rules:slow", args: {ms: 10.0}, site: b}
    sink: {from: slow, format: parquet, path: out}
"""


BATCHES = 36
SECONDS_MAX = 150


def until_enough(run: Run) -> None:
    """Ends a run when the slow operator has had its batches, however fast the machine is."""
    if run.progress is not None and run.progress.fragment("q.slow")["batches"] >= BATCHES:
        run.stop()


def measured(folder: Path) -> dict[str, Any]:
    """What a run found of its operators."""
    (folder / "slow_rules.py").write_text(SLOW)
    (folder / "weft.yaml").write_text(FILE)
    run = Run(weft.spec.load(folder / "weft.yaml"), folder / ".weft", Options(seconds=SECONDS_MAX))
    operators = run.go(until_enough)["operators"]
    assert isinstance(operators, dict)
    return operators


@pytest.mark.spark
@pytest.mark.long
def test_costs_are_found_where_they_are_known(spark: Any, tmp_path: Path) -> None:
    """On a machine that other work keeps busy, waiting for it is part of the cost that is seen."""
    assert measured(tmp_path)["q.slow"]["cost_ms"] == pytest.approx(10.0, rel=0.15)


@pytest.mark.spark
def test_selectivities_are_found_where_they_are_known_and_lines_are_left(spark: Any, tmp_path: Path) -> None:
    found = measured(tmp_path)
    assert found["q.slow"]["cost_ms"] > 5.0, "it sleeps for ten"
    assert found["q.quarter"]["selectivity"] == pytest.approx(0.25, rel=0.02)
    # quarter gives n = 0, 4, 8, ...: every fifth of those is a multiple of 10.
    assert found["q.slow"]["selectivity"] == pytest.approx(0.2, rel=0.02)

    lines = [json.loads(line) for line in (tmp_path / ".weft" / MEASUREMENTS).read_text().splitlines()]
    assert len(lines) >= 2
    assert set(lines[-1]) == {"at_s", "clock", "operators", "queries", "channels", "sites", "observed", "fragments"}
    seen = last_observed(tmp_path / ".weft")
    assert seen is not None
    [whole] = [line for line in lines if line["observed"]["at_s"] == seen.at_s]  # the last one may be too short
    assert seen.operators["q.quarter"].selectivity == whole["operators"]["q.quarter"]["selectivity"]
    assert 50 < (seen.sources["made"].rate_per_s or 0.0) < 300
    assert lines[-1]["channels"].keys() == {"q.quarter -> q.slow"}
    assert set(lines[-1]["queries"]["q"]["latency_ms"]) >= {"p50", "p95", "p99"}
    site = lines[-1]["sites"]["a"]
    assert site["of_quota"] == pytest.approx(site["utilisation"] / 0.5, abs=2e-4)
    assert last_measured(tmp_path / ".weft")["q", "slow"][0] == found["q.slow"]["cost_ms"]
