"""Operators move while records flow, and every record arrives exactly once."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bodies.live.moving import OPERATORS, SITES, delivered, differing, expected, make, seeds_asked
from weft.bodies.live.run import Options, Run
from weft.spark.session.starting import PUT_BY_SPARK

pytestmark = pytest.mark.spark


def run_with_moves(
    folder: Path, seed: int, records: int, rate_per_s: int, moves: int
) -> tuple[Any, dict[str, Any], list[str]]:
    """A run to its end while operators move at random moments; the deployment, the summary, why others do not move."""
    deployment = make(folder, seed, records, rate_per_s)
    rng = random.Random(seed)
    run = Run(deployment, folder / ".weft", Options(until_done=True))
    refused: list[str] = []

    def mover() -> None:
        while run.phase != "running":
            time.sleep(0.05)
            if run.phase in ("stopped", "failed"):
                return
        impossible = (("keep", "nowhere"), ("missing", "b"), ("keep", run.placement.home("plain.keep")))
        refused.extend(run.move("plain", operator, site).why for operator, site in impossible)
        span_s = records / rate_per_s
        for moment in sorted(rng.uniform(0, span_s) for _ in range(moves)):
            while run.flowed_s() < moment and run.phase == "running":
                time.sleep(0.02)
            if run.phase != "running":
                return
            query, _, operator = rng.choice(OPERATORS).partition(".")
            run.move(query, operator, rng.choice(SITES))

    thread = threading.Thread(target=mover, daemon=True)
    thread.start()
    summary = run.go()
    thread.join(10)
    return deployment, summary, refused


@pytest.mark.parametrize("seed", [1])
def test_every_record_arrives_once_while_operators_move(seed: int, spark: Any, tmp_path: Path) -> None:
    deployment, summary, refused = run_with_moves(tmp_path, seed, records=1500, rate_per_s=150, moves=6)
    made = [move for move in summary["moves"] if "state" not in move]
    assert made, f"no move was made: {summary['moves']}"
    found = differing(delivered(spark, deployment), expected(spark, deployment))
    assert found == {}, f"seed {seed}: {summary['moves']}"
    assert refused[0].startswith("there is no site nowhere; there are: a, b, c")
    assert "it has: keep, shape, small" in refused[1]
    assert refused[2].endswith("already")
    known = {*PUT_BY_SPARK, *spark.sparkContext.environment}
    sources = spark._jsparkSession.sessionState().dataSourceManager()
    for name in ("weft_log", "weft_rate"):
        put = set(sources.lookupDataSource(name).dataSourceCls().envVars())
        assert put == known, "a key that readers at work were not told of breaks those that start beside them"


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_asked(1000, 1200))
def test_every_record_arrives_once_through_twenty_moves(seed: int, spark: Any, tmp_path: Path) -> None:
    deployment, summary, _ = run_with_moves(tmp_path, seed, records=50_000, rate_per_s=1000, moves=20)
    found = differing(delivered(spark, deployment), expected(spark, deployment))
    assert found == {}, f"seed {seed}: {summary['moves']}"
