"""On Spark as in the twin, every record of a source is a result, dropped or filtered where it has one way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import weft.spec
from tests.bodies.live.late_shapes import SOURCES, drawn, lay_down
from weft.bodies.live.run import Options, Run

pytestmark = pytest.mark.spark
SEED = 11


def tree(name: str, rng: random.Random, sizes: dict[str, list[int]]) -> tuple[str, int]:
    """A query of filters and unions down to one sink, and how many records it lets through."""
    values = {source: list(held) for source, held in sizes.items()}
    loose = rng.sample(sorted(values), rng.choice((1, 2)))
    operators: list[str] = []
    while len(loose) > 1 or len(operators) < rng.randrange(1, 4):
        reads = [loose.pop() for _ in range(min(len(loose), rng.choice((1, 2))))]
        divisor, own = rng.randrange(2, 5), f"o{len(operators)}"
        parts = [f"SELECT id, k, ts, v FROM {one} WHERE v % {divisor} <> 1" for one in reads]
        site = rng.choice(("edge", "core"))
        sql = " UNION ALL ".join(parts)
        operators.append(f'{{name: {own}, from: [{", ".join(reads)}], site: {site}, sql: "{sql}"}}')
        # Spark's remainder has the sign of what is divided.
        values[own] = [v for one in reads for v in values[one] if (v % divisor if v >= 0 else -(-v % divisor)) != 1]
        loose.append(own)
    steps = "".join(f"\n      - {one}" for one in operators)
    sink = f"{{from: {loose[0]}, format: parquet, path: out/{name}, site: {rng.choice(('edge', 'core'))}}}"
    return f"  - name: {name}\n    operators:{steps}\n    sink: {sink}\n", len(values[loose[0]])


def test_records_in_are_out_dropped_or_filtered_in_drawn_graphs(spark: Any, folder: Path) -> None:
    rng = random.Random(SEED)
    files = {"left": drawn(5, files=2), "right": drawn(6, files=2)}
    for name, held in files.items():
        lay_down(folder, name, held)
    sizes = {name: [row[3] for rows in held for row in rows] for name, held in files.items()}
    drawn_trees = {f"q{at}": tree(f"q{at}", rng, sizes) for at in range(3)}
    file = folder / "weft.yaml"
    file.write_text(SOURCES + "".join(text for text, _ in drawn_trees.values()))
    told = Run(weft.spec.load(file), folder / ".weft", Options(until_done=True)).go()
    for name, (text, passed) in drawn_trees.items():
        found = told["queries"][name]
        assert found["records_out"] == passed, f"seed {SEED}: {text}"
        told_of = found["records_out"] + found["dropped"] + found["filtered"]
        assert found["records_in"] == told_of, f"seed {SEED}: {text}"
        assert found["filtered"] > 0
