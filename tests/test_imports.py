"""The import rule: imports go left only, the brain touches nothing outside itself, Spark stays in its folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"

LEFT_OF = {
    "model": set(),
    "spec": {"model"},
    "plan": {"model", "spec"},
    "protocol": {"model", "spec", "plan"},
    "spark": {"model", "spec", "plan", "protocol"},
    "bodies": {"model", "spec", "plan", "protocol", "spark"},
    "lab": {"model", "spec", "plan", "protocol", "spark", "bodies"},
    "cli": {"model", "spec", "plan", "protocol", "spark", "bodies", "lab"},
    "web": {"model", "spec", "plan", "protocol", "spark", "bodies", "lab"},
}
BRAIN = {"model", "plan", "protocol"}
OUTSIDE = {
    "asyncio", "concurrent", "datetime", "glob", "http", "io", "multiprocessing", "os", "pathlib", "pickle", "queue",
    "random", "sched", "secrets", "select", "selectors", "shutil", "signal", "socket", "socketserver", "ssl",
    "subprocess", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
OUTSIDE_CALLS = {"open", "input", "print", "exec", "eval"}
# Generators and seeds arrive as arguments: a generator may be made from a seed, never without one.
SEEDED = {"random.Random", "numpy.random.Generator", "numpy.random.default_rng"}
SEEDED_CALLS = {"Random", "default_rng"}
WITHOUT_SPARK = {"explorer", "twin"}


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Every module a file names, at any depth: `from a import b` names both a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"


def broken(src: Path) -> list[str]:
    """Every breach of the rule in a source tree, as `file:line what`."""
    found = []
    for path in sorted((src / "weft").rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        package = ".".join(parts[:-1])
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for line, why in breaches(tree, parts, package):
            found.append(f"{path.relative_to(src)}:{line} {why}")
    return found


def breaches(tree: ast.AST, parts: tuple[str, ...], package: str) -> Iterator[tuple[int, str]]:
    """What one file does that its folder may not."""
    folder = parts[1]
    if folder not in LEFT_OF:
        if folder not in ("__init__", "__main__"):
            yield 1, f"{folder} is no folder of the layout"
        return
    body = parts[2] if folder == "bodies" and len(parts) > 3 else ""
    for line, name in imported(tree, package):
        names = name.split(".")
        if names[0] == "pyspark" and folder != "spark":
            yield line, f"{folder} imports pyspark"
        if names[0] == "weft" and len(names) > 1 and names[1] in LEFT_OF:
            if names[1] != folder and names[1] not in LEFT_OF[folder]:
                yield line, f"{folder} imports {names[1]}"
            if body in WITHOUT_SPARK and names[1] == "spark":
                yield line, f"{body} imports spark"
            if body and names[1] == "bodies" and len(names) > 2 and names[2] != body:
                yield line, f"body {body} imports body {names[2]}"
        if folder in BRAIN and names[0] in OUTSIDE and name not in SEEDED:
            yield line, f"{folder} imports {names[0]}"
        if folder in BRAIN and name.startswith("numpy.random.") and name not in SEEDED:
            yield line, f"{folder} makes its own chance"
    if folder in BRAIN:
        yield from ((line, f"{folder} calls {name}") for line, name in called(tree))


def called(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every call that reaches outside, or to chance without a seed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in OUTSIDE_CALLS or (name in SEEDED_CALLS and not node.args):
                yield node.lineno, name


def test_every_import_goes_left_and_the_brain_touches_nothing() -> None:
    assert broken(SRC) == []


def modules(src: Path) -> dict[str, Path]:
    """Every module by its name."""
    found = {}
    for path in sorted((src / "weft").rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def cycles(src: Path) -> list[str]:
    """The modules that import one another in a circle, at any depth and for types alone too."""
    known = modules(src)
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        graph[name] = set()
        for _, asked in imported(ast.parse(path.read_text(encoding="utf-8")), package):
            while asked and asked not in known:
                asked = asked.rpartition(".")[0]  # noqa: PLW2901
            if asked not in ("", name, "weft"):
                graph[name].add(asked)
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_another_in_a_circle() -> None:
    assert cycles(SRC) == []


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "weft" / "plan"
    folder.mkdir(parents=True)
    (folder / "x.py").write_text("def f():\n    from weft.plan.y import g")
    (folder / "y.py").write_text("from weft.plan import x")
    assert set(cycles(tmp_path)) == {"weft.plan.x", "weft.plan.y"}


def test_no_two_folders_beside_one_another_import_each_other() -> None:
    reads: dict[str, set[tuple[str, str]]] = {}
    known = modules(SRC)
    folders = {name for name, path in known.items() if path.name == "__init__.py"}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for _, asked in imported(ast.parse(path.read_text(encoding="utf-8")), package):
            for parent in ("weft.plan", "weft.spark", "weft.protocol", "weft.bodies.twin"):
                here, there = (".".join(one.split(".")[: parent.count(".") + 2]) for one in (name, asked))
                if here in folders and there in folders and here != there and here.startswith(f"{parent}."):
                    reads.setdefault(parent, set()).add((here, there))
    both = [pair for pairs in reads.values() for pair in sorted(pairs) if pair[::-1] in pairs]
    assert both == []


def types_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The classes of a file, and the names that it gives to types, each with what tells it from another."""
    for at, node in enumerate(tree.body):
        if isinstance(node, ast.ClassDef):
            yield node.name, f"a class of its own, {at}"
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.lstrip("_")[:1].isupper() and not name.isupper():
                yield name, ast.unparse(node.value)


def test_no_name_of_a_class_or_a_type_has_two_meanings_in_one_folder() -> None:
    found: dict[tuple[Path, str], dict[str, str]] = {}
    for path in modules(SRC).values():
        for name, meaning in types_in(ast.parse(path.read_text(encoding="utf-8"))):
            meant = meaning if not meaning.startswith("a class") else f"{meaning} of {path.name}"
            found.setdefault((path.parent, name), {})[meant] = path.name
    assert {key: list(files.values()) for key, files in found.items() if len(files) > 1} == {}


@pytest.mark.parametrize(
    ("file", "code", "why"),
    [
        ("model/x.py", "from weft.spec import load", "model imports spec"),
        ("plan/x.py", "import weft.protocol.machine", "plan imports protocol"),
        ("protocol/deep/x.py", "from weft import spark", "protocol imports spark"),
        ("protocol/x.py", "from ..bodies import live", "protocol imports bodies"),
        ("protocol/x.py", "import time", "protocol imports time"),
        ("protocol/x.py", "from os import path", "protocol imports os"),
        ("plan/x.py", "def f():\n    import random", "plan imports random"),
        ("plan/x.py", "from random import Random\nrng = Random()", "plan calls Random"),
        ("plan/x.py", "from numpy.random import normal", "plan makes its own chance"),
        ("model/x.py", "open('x')", "model calls open"),
        ("cli/x.py", "def f():\n    from pyspark.sql import SparkSession", "cli imports pyspark"),
        ("bodies/live/x.py", "import pyspark", "bodies imports pyspark"),
        ("bodies/twin/x.py", "from weft.spark import channels", "twin imports spark"),
        ("bodies/explorer/worlds/x.py", "from weft.spark.channels import Log", "explorer imports spark"),
        ("bodies/live/x.py", "from weft.bodies import twin", "body live imports body twin"),
        ("bodies/live/x.py", "from ..explorer import run", "body live imports body explorer"),
        ("web/x.py", "from weft.cli import main", "web imports cli"),
        ("helpers/x.py", "", "helpers is no folder of the layout"),
    ],
)
def test_a_planted_breach_is_found(tmp_path: Path, file: str, code: str, why: str) -> None:
    path = tmp_path / "weft" / file
    path.parent.mkdir(parents=True)
    path.write_text(code, encoding="utf-8")
    assert [one.split(" ", 1)[1] for one in broken(tmp_path)] == [why]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("plan/x.py", "from random import Random\nfrom weft.model import Site\nrng = Random(1)"),
        ("spark/x.py", "from pyspark.sql import DataFrame\nimport time\nfrom weft.protocol import Machine"),
        ("bodies/live/x.py", "from weft.spark import channels\nfrom weft.bodies.live.clock import now"),
        ("bodies/live/x.py", "from . import clock"),
        ("cli/x.py", "from weft.bodies.explorer import explore\nfrom weft.lab import rows"),
        ("__init__.py", "__version__ = '1'"),
    ],
)
def test_what_is_allowed_passes(tmp_path: Path, file: str, code: str) -> None:
    path = tmp_path / "weft" / file
    path.parent.mkdir(parents=True)
    path.write_text(code, encoding="utf-8")
    assert broken(tmp_path) == []
