"""How does a file become a deployment? Text, then nodes, then values, then meaning; problems of all stages together."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from weft.model import AddAt, Deployment
from weft.spec.added import with_scenario_queries
from weft.spec.keys import DEPLOYMENT, VERSION
from weft.spec.meaning import check_meaning
from weft.spec.problems import Problem, Problems, Report, SpecError, join
from weft.spec.reads import with_named_reads
from weft.spec.shapes import found
from weft.spec.tree import Composer, Node, Unreadable, lines_of, node_of, text_of


def load(path: str | os.PathLike[str]) -> Deployment:
    """The deployment a file describes; SpecError tells everything that is wrong with it."""
    report = check(path)
    if report.deployment is None:
        raise SpecError(report.file, report.errors)
    return report.deployment


def check(path: str | os.PathLike[str], data: bool = True) -> Report:
    """What is wrong with a deployment file, and the deployment where nothing is.

    Without `data` the files that sources read need not be here.
    """
    file = str(path)
    composer = Composer()
    try:
        root = composer.compose(text_of(Path(path)))
    except Unreadable as error:
        return Report(file, None, (*composer.problems, error.problem))
    lines, blocks = lines_of(root)
    problems = Problems(lines, list(composer.problems))
    deployment = _read(root, str(Path(path).parent), problems)
    if deployment is not None:
        problems.settle()
        deployment = with_scenario_queries(deployment, problems)
        check_meaning(deployment, problems, blocks, data)
    errors = tuple(sorted(problems.errors, key=lambda problem: problem.line or 0))
    return Report(file, None if errors else deployment, errors, tuple(problems.warnings))


def validate(deployment: Deployment, data: bool = True) -> tuple[list[Problem], list[Problem]]:
    """The errors and warnings of a deployment built in Python; without `data` its sources' files need not be here."""
    problems = Problems()
    again = DEPLOYMENT.read(node_of(DEPLOYMENT.plain(deployment)), "", problems)
    again = dataclasses.replace(again, folder=getattr(deployment, "folder", "."))
    again = _with_coming(again, deployment)
    _check_tuples(deployment, again, "", problems)
    problems.settle()
    check_meaning(with_named_reads(again), problems, frozenset(), data)
    return problems.errors, problems.warnings


def _with_coming(again: Deployment, given: Deployment) -> Deployment:
    """What the scenario's files brought when they were read."""
    came = getattr(given, "scenario", None)
    if not isinstance(came, tuple) or len(again.scenario) != len(came):
        return again  # what is wrong with it is told by others
    both = zip(again.scenario, came, strict=True)
    return dataclasses.replace(again, scenario=tuple(one if isinstance(one, AddAt) else read for read, one in both))


def _check_tuples(given: Any, read: Any, path: str, problems: Problems) -> None:
    """Reports text or a list where the model holds a tuple: a file may say `from: a`, Python must say `("a",)`."""
    if isinstance(read, tuple):
        if not isinstance(given, tuple):
            problems.error(path, f"must be a tuple, found a {type(given).__name__}; write (...,)")
            return
        for index, (one, other) in enumerate(zip(given, read, strict=False)):
            _check_tuples(one, other, f"{path}[{index}]", problems)
    elif dataclasses.is_dataclass(read) and type(given) is type(read):
        for field in dataclasses.fields(read):
            inner = join(path, field.name.rstrip("_"))
            _check_tuples(getattr(given, field.name), getattr(read, field.name), inner, problems)


def as_plain(deployment: Deployment) -> dict[str, Any]:
    """A deployment as its file would say it, defaults left out."""
    plain: dict[str, Any] = {"weft": VERSION} | DEPLOYMENT.plain(deployment)
    return plain


def _read(root: Node, folder: str, problems: Problems) -> Deployment | None:
    if not isinstance(root.value, dict):
        problems.error("file", f"must be a mapping that begins with `weft: {VERSION}`, found {found(root)}", root.line)
        return None
    # A place for what is said once and meant several times, with YAML's anchors.
    body = {name: inner for name, inner in root.value.items() if not name.startswith("x-")}
    version = body.pop("weft", None)
    if version is None:
        problems.error("weft", f"is missing; write `weft: {VERSION}`, the version of the file's form", root.line)
    elif version.value != VERSION or not isinstance(version.value, int) or isinstance(version.value, bool):
        problems.error("weft", f"must be {VERSION}, the version this Weft reads, found {found(version)}", version.line)
    deployment: Deployment = DEPLOYMENT.read(Node(body, root.line), "", problems)
    return with_named_reads(dataclasses.replace(deployment, folder=folder))
