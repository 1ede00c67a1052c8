"""A query that reads streams of another, over three sites, while operators of both move: every record once."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import FILE, delivered, differing, expected, make
from weft.bodies.live.run import Options, Run
from weft.bodies.live.valid import valid
from weft.model import Deployment, Operator, Query, Sink, Watermark

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


def moved_about(deployment: Deployment, folder: Path, moves: tuple[tuple[float, str, str], ...]) -> dict[str, Any]:
    """The summary of a whole run while operators move."""
    run = Run(deployment, folder / ".weft", Options(until_done=True))

    def move() -> None:
        while run.phase != "running" and run.phase not in ("stopped", "failed"):
            time.sleep(0.05)
        for moment, stream, to in moves:
            while run.flowed_s() < moment and run.phase == "running":
                time.sleep(0.02)
            if run.phase == "running":
                run.move(*stream.split("."), to)

    thread = threading.Thread(target=move, daemon=True)
    thread.start()
    summary = run.go()
    thread.join(10)
    return summary


def test_results_are_those_of_batch_while_operators_of_both_move(spark: Any, tmp_path: Path) -> None:
    rules = "def both(good, high):\n    return good.where('v > 90').unionByName(high.where('v > 95'))\n"
    (tmp_path / "between_rules.py").write_text(rules)
    deployment = make(tmp_path, 5, 1200, 150, text=f"{HEAD}queries:{SOUTH}{NORTH}")
    summary = moved_about(deployment, tmp_path, MOVES)
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


ALONE = """
  - name: north
    operators:
      - {name: good, from: [left, right],
         sql: "SELECT * FROM left WHERE v > 3 UNION ALL SELECT * FROM right WHERE v > 3"}
      - {name: shape, from: [good], sql: "SELECT upper(k) k, v FROM good"}
    sink: {from: shape, format: parquet, path: out/shape}
"""
WEST = """
  - name: west
    operators:
      - {name: low, from: [right], sql: "SELECT ts, k, v FROM right WHERE v < 60"}
    sink: {from: low, format: parquet, path: out/low}
"""
PICK = "SELECT ts, k, v FROM north.good WHERE v > 40 UNION ALL SELECT ts, k, v FROM west.low"
SUM = "SELECT window(ts, '1 minute') w, sum(v) s, count(*) n FROM pick GROUP BY 1"
MERGED_MOVES = ((0.5, "both.pick", "b"), (1.2, "north.good", "c"), (2.0, "west.low", "a"), (2.8, "both.minutes", "c"))


def test_the_queries_of_two_files_and_one_that_reads_both_give_what_batch_gives(spark: Any, tmp_path: Path) -> None:
    north = make(tmp_path, 6, 600, 150, text=f"{HEAD}queries:{ALONE}")
    west = make(tmp_path, 6, 600, 150, text=f"{HEAD}queries:{WEST}")
    pick = Operator("pick", ("north.good", "west.low"), sql=PICK)
    minutes = Operator("minutes", ("pick",), sql=SUM, watermarks=(Watermark("30 seconds"),))
    both = Query("both", (pick, minutes), (Sink("minutes", "parquet", "out/minutes"),))
    merged = replace(north, queries=(both, *west.queries, *north.queries))
    summary = moved_about(merged, tmp_path, MERGED_MOVES)
    made = [move for move in summary["moves"] if "state" not in move]
    assert len({move["query"] for move in made}) >= 2, summary["moves"]
    wanted = expected(spark, valid(merged))
    assert all(wanted.values())
    assert differing(delivered(spark, merged), wanted) == {}, summary["moves"]
