"""What does an example give? A copy with its own data, run once, its sinks read, and the same on batch Spark."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.dataset as ds
import yaml

import weft
from tests import ROOT
from weft.bodies.live.run import Options, Run
from weft.model import Deployment, dataflow
from weft.spark.fragments import operators
from weft.spark.sources import streams as sources

EXAMPLES = ROOT / "examples"
Rows = Counter[str]


def module(example: str, name: str = "generate") -> ModuleType:
    """A script of an example, as a module of its own name."""
    spec = importlib.util.spec_from_file_location(f"{example}_{name}", EXAMPLES / example / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def copied(example: str, folder: Path, seconds: float | None = None, **data: Any) -> Deployment:
    """An example in another folder with its data; where `seconds` are given, all records flow and move within them."""
    module(example).fill(folder / "data", **data)
    for script in (EXAMPLES / example).glob("*.py"):
        (folder / script.name).write_bytes(script.read_bytes())
    plain = yaml.safe_load((EXAMPLES / example / "deployment.yaml").read_text(encoding="utf-8"))
    if seconds is not None:
        for source in plain["sources"]:
            lines = len((folder / source["path"]).read_text().splitlines())
            source["arrivals"]["rate_per_s"] = lines / seconds
        for number, happening in enumerate(plain["scenario"], start=1):
            happening["at_s"] = number * seconds / (len(plain["scenario"]) + 1)
    file = folder / "deployment.yaml"
    file.write_text(yaml.safe_dump(plain, sort_keys=False))
    return weft.load(file)


def run(deployment: Deployment) -> dict[str, Any]:
    """Run it to its end; what the run says of itself."""
    return Run(deployment, Path(deployment.folder) / ".weft", Options(until_done=True, fresh=True)).go()


def moved(summary: dict[str, Any]) -> list[str]:
    """The moves of a run; one that was not made says why."""
    moves = summary["moves"]
    return [f"{one['query']}.{one['operator']}: {one.get('why') or 'to ' + one['to']}" for one in moves]


def delivered(deployment: Deployment, under: str = ".") -> dict[str, Rows]:
    """What lies in every sink, by its path, read as anyone would: a plain glob."""
    return {
        str(sink.path): _rows(Path(deployment.folder, under, str(sink.path)), sink.format)
        for query in deployment.queries
        for sink in query.sinks
    }


def batch(spark: Any, deployment: Deployment) -> dict[str, Rows]:
    """The same queries over the same files, by batch Spark, for every sink."""
    flow = dataflow(deployment)
    frames = {
        source.name: spark.read.schema(sources.struct(source.schema))
        .options(**source.options)
        .csv(sources.path_of(deployment, str(source.path)))
        for source in deployment.sources
    }
    for node in flow.nodes:
        given = {name: frames[stream] for name, stream in zip(node.operator.from_, node.inputs, strict=True)}
        frames[node.stream] = operators.apply(node.operator, given, deployment.folder)
    for outlet in flow.outlets:
        out = Path(deployment.folder, "batch", str(outlet.sink.path))
        frames[outlet.stream].write.format(outlet.sink.format).save(str(out))
    return delivered(deployment, "batch")


def differing(found: dict[str, Rows], wanted: dict[str, Rows]) -> dict[str, Any]:
    """Sinks that differ, with some of the rows that are missing or too many."""
    out = {}
    for name, rows in wanted.items():
        missing, extra = rows - found[name], found[name] - rows
        if missing or extra:
            out[name] = (missing.total(), extra.total(), [*list(missing)[:3], *list(extra)[:3]])
    return out


def _rows(folder: Path, kind: str) -> Rows:
    files = sorted(folder.glob(f"*.{kind}"))
    if kind == "csv":
        return Counter(line for path in files for line in path.read_text().splitlines())
    rows = ds.dataset(list(map(str, files))).to_table().to_pylist() if files else []
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)
