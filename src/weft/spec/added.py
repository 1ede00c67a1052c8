"""Which queries does a file bring to a deployment? `queries` as in the deployment's own file, checked along with its.

A problem is told with the line and the field of the file that brings them; what they read, and where their paths start,
is the deployment's.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.model import AddAt, Deployment, Query, RemoveAt
from weft.spec.keys import VERSION
from weft.spec.meaning import check_meaning
from weft.spec.paths import absolute
from weft.spec.problems import Problem, Problems
from weft.spec.query_keys import QUERY
from weft.spec.reads import with_named_reads
from weft.spec.shapes import found
from weft.spec.tables import Items, Key, Table
from weft.spec.tree import Composer, Node, Unreadable, lines_of, node_of, text_of

_INDEXED = re.compile(r"queries\[(\d+)\]")
_NAMED = re.compile(r"queries\[(\d+)\](\.\w+)*(\[\d+\])?( \(line \d+\))?")


@dataclass(frozen=True, slots=True)
class Queries:
    """What a file of queries holds."""

    queries: tuple[Query, ...]


_FILE = Table(Queries, "a file of queries", (Key("queries", Items(QUERY, 1), "what is to be computed", required=True),))


@dataclass(frozen=True, slots=True)
class Added:
    """What a check of queries found; there are none where there are errors."""

    file: str
    queries: tuple[Query, ...] = ()
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def check_added(path: str | os.PathLike[str], deployment: Deployment) -> Added:
    """The queries that a file brings to a deployment, or what is wrong with them."""
    composer = Composer()
    try:
        root = composer.compose(text_of(Path(path)))
    except Unreadable as error:
        return Added(str(path), errors=(*composer.problems, error.problem))
    return _checked(str(path), root, deployment, composer.problems)


def plain_added(plain: Any, deployment: Deployment) -> Added:
    """The queries that plain values, `{"queries": [...]}`, bring to a deployment, or what is wrong with them."""
    return _checked("the request", node_of(plain), deployment, [])


def as_plain_queries(queries: tuple[Query, ...]) -> dict[str, Any]:
    """Queries as their file would say them."""
    plain: dict[str, Any] = _FILE.plain(Queries(queries))
    return plain


def with_scenario_queries(deployment: Deployment, problems: Problems) -> Deployment:
    """A deployment whose scenario holds the queries that its files bring, each read with those that came before."""
    if not any(isinstance(what, AddAt) for what in deployment.scenario):
        return deployment
    so_far, read = replace(deployment, scenario=()), {}
    for index, what in sorted(enumerate(deployment.scenario), key=lambda one: getattr(one[1], "at_s", 0.0)):
        if isinstance(what, RemoveAt):  # its name is free again
            so_far = replace(so_far, queries=tuple(one for one in so_far.queries if one.name != what.remove))
        if not isinstance(what, AddAt):
            continue
        path = absolute(what.add, deployment.folder)
        added = check_added(path, so_far)
        for problem in added.errors:
            line = "" if problem.line is None else f" line {problem.line}:"
            problems.error(f"scenario[{index}].add", f"{what.add}:{line} {problem.field}: {problem.message}")
        read[index] = replace(what, queries=added.queries)
        so_far = replace(so_far, queries=(*so_far.queries, *added.queries))
    happenings = (read.get(index, what) for index, what in enumerate(deployment.scenario))
    return replace(deployment, scenario=tuple(happenings))


def _checked(file: str, root: Node, deployment: Deployment, before: list[Problem]) -> Added:
    if not isinstance(root.value, dict):
        says = f"must be a mapping that holds `queries`, found {found(root)}"
        return Added(file, errors=(*before, Problem(root.line, "file", says)))
    body = dict(root.value)
    version = body.pop("weft", None)
    many = len(deployment.queries)
    own, blocks = lines_of(root)
    problems = Problems(own, list(before))
    if version is not None and version.value != VERSION:
        problems.error("weft", f"must be {VERSION}, the version this Weft reads, found {found(version)}", version.line)
    new = _FILE.read(Node(body, root.line), "", problems).queries
    if not problems.errors:
        whole = replace(deployment, queries=(*deployment.queries, *new), scenario=())
        whole = with_named_reads(whole)
        shifted = Problems({_moved(path, many): line for path, line in own.items()})
        check_meaning(whole, shifted, frozenset(_moved(path, many) for path in blocks))
        problems.errors += _back(deployment, shifted.errors, _others(deployment, shifted.errors, many))
        problems.warnings += _back(deployment, shifted.warnings, None)
        new = whole.queries[many:]
    errors = tuple(sorted(problems.errors, key=lambda problem: problem.line or 0))
    return Added(file, () if errors else new, errors, tuple(problems.warnings))


def _others(deployment: Deployment, errors: list[Problem], many: int) -> set[Problem] | None:
    """What is told of the deployment itself without the new queries; None where nothing is told of it at all."""
    if all(_at(problem.field) >= many for problem in errors):
        return None
    alone = Problems()
    check_meaning(replace(deployment, scenario=()), alone, frozenset())
    return {replace(problem, line=None) for problem in alone.errors}


def _back(deployment: Deployment, found: list[Problem], others: set[Problem] | None) -> list[Problem]:
    """Problems of the new queries, by their places in their own file; of the others only what came with the new."""
    out, many = [], len(deployment.queries)
    for problem in found:
        if _at(problem.field) >= many:
            words = _NAMED.sub(lambda match: _called(deployment, match), problem.message)
            out.append(replace(problem, field=_moved(problem.field, -many), message=words))
        elif others is not None and replace(problem, line=None) not in others:
            out.append(replace(problem, line=None))
    return out


def _called(deployment: Deployment, match: re.Match[str]) -> str:
    """A place that a message names: by the query's name where that is the deployment's, else by its own file."""
    at, many = int(match[1]), len(deployment.queries)
    return f"query {deployment.queries[at].name}" if at < many else _moved(match[0], -many)


def _at(field: str) -> int:
    """The number of the query that a field is of; -1 for others."""
    match = _INDEXED.match(field)
    return int(match[1]) if match else -1


def _moved(path: str, by: int) -> str:
    return _INDEXED.sub(lambda match: f"queries[{int(match[1]) + by}]", path, count=1) if _at(path) >= 0 else path
