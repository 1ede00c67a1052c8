"""What do the Nexmark queries give? A variant run once, its sinks read back, and the same SQL on batch Spark."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

import weft
from weft.bodies.live.run import Options, Run
from weft.plan.graph import topological
from weft.spark import operators, sources

EXAMPLE = Path(__file__).parents[2] / "examples" / "nexmark"
Rows = Counter[tuple[str, ...]]


def module(name: str) -> ModuleType:
    """A script of the example, as a module of its own name."""
    spec = importlib.util.spec_from_file_location(f"nexmark_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def run(kind: str, folder: Path) -> dict[str, Rows]:
    """Run a variant over the data in a folder to its end; the rows of every query."""
    file = folder / f"{kind}.yaml"
    file.write_text(yaml.safe_dump(module("variant").variant(kind), sort_keys=False))
    deployment = weft.load(file)
    Run(deployment, folder / ".weft", Options(until_done=True, fresh=True)).go()
    return {query.name: _csv_rows(folder / "out" / query.name) for query in deployment.queries}


def batch(spark: Any, folder: Path) -> dict[str, Rows]:
    """The same queries over the same files, by batch Spark."""
    file = folder / "batch.yaml"
    file.write_text(yaml.safe_dump(module("variant").variant("free"), sort_keys=False))
    deployment = weft.load(file)
    found = {}
    for query in deployment.queries:
        frames = {
            source.name: spark.read.schema(sources.struct(source.schema))
            .options(**source.options)
            .csv(sources.path_of(deployment, str(source.path)))
            for source in deployment.sources
        }
        for name in topological(query):
            operator = query.operator(name)
            frames[name] = operators.apply(operator, {one: frames[one] for one in operator.from_}, deployment.folder)
        out = folder / "batch" / query.name
        frames[query.sinks[0].from_].write.csv(str(out))
        found[query.name] = _csv_rows(out)
    return found


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


def _csv_rows(folder: Path) -> Rows:
    lines = [line for path in sorted(folder.glob("*.csv")) for line in path.read_text().splitlines()]
    return Counter(tuple(line.split(",")) for line in lines)
