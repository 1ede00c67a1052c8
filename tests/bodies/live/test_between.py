"""A query that reads streams of another, over three sites, while operators of both move: every record once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import FILE, delivered, differing, expected, make
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark

HEAD = FILE[: FILE.index("queries:")]
# The reading query stands first: the order of the file does not count.
SOUTH = """
  - name: south
    operators:
      - {name: high, from: [north.good], sql: "SELECT good.ts, k, v FROM north.good WHERE v > 40"}
      - {name: met, from: [high, right], watermark: 30 seconds,
         sql: "SELECT h.ts, h.k, h.v, r.v rv FROM high h JOIN right r ON h.k = r.k
               AND r.ts BETWEEN h.ts - INTERVAL 2 SECONDS AND h.ts + INTERVAL 2 SECONDS"}
      - {name: fives, from: [north.sums], watermark: 0 seconds,
         sql: "SELECT window(w, '5 minutes') w5, sum(s) s, sum(n) n FROM north.sums GROUP BY 1"}
      - {name: large, from: [north.good, high], call: "between_rules:both"}
    sink:
      - {from: met, format: parquet, path: out/met}
      - {from: fives, format: parquet, path: out/fives}
      - {from: large, format: parquet, path: out/large}
"""
NORTH = """
  - name: north
    operators:
      - {name: all, from: [left, right], sql: "SELECT * FROM left UNION ALL SELECT * FROM right"}
      - {name: good, from: [all], sql: "SELECT * FROM all WHERE v > 3"}
      - {name: sums, from: [good], watermark: 30 seconds,
         sql: "SELECT window(ts, '1 minute') w, k, sum(v) s, count(*) n FROM good GROUP BY 1, 2"}
      - {name: shape, from: [good], sql: "SELECT upper(k) k, v FROM good"}
    sink: {from: shape, format: parquet, path: out/shape}
"""
MOVES = (
    (0.5, "north.good", "c"), (1.2, "south.high", "b"), (2.0, "north.sums", "b"), (2.8, "south.fives", "a"),
    (3.6, "north.all", "c"), (4.2, "south.high", "c"), (5.0, "north.good", "a"), (6.0, "south.met", "a"),
)  # fmt: skip


def test_results_are_those_of_batch_while_operators_of_both_move(spark: Any, tmp_path: Path) -> None:
    rules = "def both(good, high):\n    return good.where('v > 90').unionByName(high.where('v > 95'))\n"
    (tmp_path / "between_rules.py").write_text(rules)
    deployment = make(tmp_path, 5, 1200, 150, text=f"{HEAD}queries:{SOUTH}{NORTH}")
    run = Run(deployment, tmp_path / ".weft", Options(until_done=True))
    asked = []

    def move() -> None:
        while run.phase != "running" and run.phase not in ("stopped", "failed"):
            time.sleep(0.05)
        for moment, stream, to in MOVES:
            while run.flowed_s() < moment and run.phase == "running":
                time.sleep(0.02)
            if run.phase == "running":
                asked.append(run.move(*stream.split("."), to))

    thread = threading.Thread(target=move, daemon=True)
    thread.start()
    summary = run.go()
    thread.join(10)
    made = [move for move in summary["moves"] if "state" not in move]
    assert {move["query"] for move in made} == {"north", "south"}, summary["moves"]
    wanted = expected(spark, deployment)
    assert all(wanted.values())
    assert differing(delivered(spark, deployment), wanted) == {}, summary["moves"]
    # What both read is read once from the sources; the reading query counts from there.
    assert summary["queries"]["south"]["records_in"] == summary["queries"]["north"]["records_in"]
    reads = {name: one["reads"] for name, one in summary["fragments"].items()}
    assert "north.sums" in reads["south.fives"]
    assert summary["fragments"]["north.sums"]["queries"] == ["north"]
