"""Sites that balance, on Spark: one that is bound to what it can do gives an operator away when its source triples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import delivered, differing, expected, make
from weft.bodies.live.decision_file import kept_decisions
from weft.bodies.live.run import Options, Run

FILE = """
weft: 1
sites:
  - {name: top, capacity: 2}
  - {name: left, capacity: 0.5, cap: true, parent: top}
  - {name: right, parent: top}
links: [{from: left, to: top}, {from: right, to: top}]
sources:
  - {name: left, site: left, format: replay, path: left.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT",
     event_time: ts, arrivals: {kind: constant, rate_per_s: RATE}}
queries:
  - name: keep
    operators:
      - {name: heavy, from: [left], call: "dear:heavy", cost_ms: 0.9, selectivity: 1}
    sink: {from: heavy, format: parquet, path: out/heavy}
  - name: go
    operators:
      - {name: light, from: [left], call: "dear:light", cost_ms: 0.6, selectivity: 1}
    sink: {from: light, format: parquet, path: out/light}
control: {place: {policy: near}, balance: {kind: tree, low: 0.05, target: 0.45, high: 0.6, period_s: 4}}
scenario:
  - {at_s: 8, rate: {left: 3}}
"""
DEAR = """
import time


def _dear(frame, each_s):
    def work(parts):
        for part in parts:
            ends_s = time.perf_counter() + each_s * len(part)
            while time.perf_counter() < ends_s:
                pass
            yield part

    return frame.mapInPandas(work, frame.schema)


def heavy(frame):
    return _dear(frame, 0.0009)


def light(frame):
    return _dear(frame, 0.0006)
"""


@pytest.mark.spark
def test_on_spark_an_overloaded_site_gives_one_operator_to_its_parent_and_results_equal_batch(
    spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "dear.py").write_text(DEAR)
    deployment = make(tmp_path, 1, 6000, 100, text=FILE)
    summary = Run(deployment, tmp_path / ".weft", Options(until_done=True)).go()
    done = [one for one in summary["changes"] if one["state"] == "done"]
    assert done, f"{summary['changes']}, {summary['decisions']}"
    ((by, wish),) = [(one["by"], one["wish"]) for one in done]
    assert by == "balance"
    ((moved, to),) = wish["move"].items()
    # Which of the two goes depends on what batches cost on the machine at hand.
    assert (moved in ("go.light", "keep.heavy"), to) == (True, "top")
    assert re.fullmatch(r"left was at \d+ %, above 60 %|top was at 0 %, below 5 %", done[0]["reason"]), done[0]
    assert done[0]["at_s"] > 8.0, "at a third of the rate it was not asked too much"
    placement = summary["placement"].items()
    placed = {f"{query}.{name}": sites for query, found in placement for name, sites in found.items()}
    assert placed == {"go.light": ["left"], "keep.heavy": ["left"]} | {moved: ["top"]}
    (entry,) = [one for one in kept_decisions(tmp_path / ".weft") if one["state"] == "done"]
    loads = entry["numbers"]["loads"]["left"]["cpu"]
    assert loads["before"] > 0.6
    # How far it falls is the machine's: batches of one that is busy with other work cost more than the operators ask.
    assert loads["before"] > loads["after"]
    assert differing(delivered(spark, deployment), expected(spark, deployment)) == {}
