"""What do the Nexmark queries give? A variant run once, its sinks read back, and the same SQL on batch Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import weft
from tests.examples import example_rows
from weft.model import Deployment

Rows = Counter[tuple[str, ...]]


def module(name: str) -> ModuleType:
    """A script of the example."""
    return example_rows.module("nexmark", name)


def run(kind: str, folder: Path) -> dict[str, Rows]:
    """Run a variant over the data in a folder to its end; the rows of every query."""
    deployment = _written(kind, folder)
    example_rows.run(deployment)
    return _by_query(example_rows.delivered(deployment))


def batch(spark: Any, folder: Path) -> dict[str, Rows]:
    """The same queries over the same files, by batch Spark."""
    return _by_query(example_rows.batch(spark, _written("free", folder)))


def expected(folder: Path) -> dict[str, Rows]:
    """The rows that the recorded set expects, words apart from columns."""
    return {
        path.name.split(".")[0]: Counter(tuple(line.split()) for line in path.read_text().splitlines() if line.strip())
        for path in sorted(folder.glob("q*.expected.txt"))
    }


def as_words(rows: Rows) -> Rows:
    """Rows as the expected ones are written: times with a space and no trailing zeros, words apart."""
    out: Rows = Counter()
    for row, count in rows.items():
        out[tuple(word for cell in row for word in _plain(cell).split())] += count
    return out


def _plain(cell: str) -> str:
    if len(cell) == 24 and cell[10] == "T" and cell.endswith("Z"):
        return cell[:-1].replace("T", " ").removesuffix(".000")
    return cell


def _written(kind: str, folder: Path) -> Deployment:
    file = folder / f"{kind}.yaml"
    file.write_text(yaml.safe_dump(module("variant").variant(kind), sort_keys=False))
    return weft.load(file)


def _by_query(sinks: dict[str, Counter[str]]) -> dict[str, Rows]:
    """Rows as cells, by the name of the query that its sink is called after."""
    return {
        Path(sink).name: Counter({tuple(line.split(",")): count for line, count in lines.items()})
        for sink, lines in sinks.items()
    }
