"""`weft add` and `weft remove`: let queries come to a running deployment, and go, from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.asking import ANSWER_S_MAX, Timeout, ask, pause
from weft.cli.finding import held
from weft.cli.output import FAILED, WRONG_INPUT, File, Json, State, counted, fail, note, print_json, read, say

if TYPE_CHECKING:
    from weft.model import Deployment, Query

NewQueries = Annotated[
    Path, typer.Argument(metavar="QUERY.yaml", help="A file with one or more `queries`.", show_default=False)
]

Anyway = Annotated[bool, typer.Option("--anyway", help="Queries come though a promise would break.")]


def add(
    file: File,
    queries: NewQueries,
    anyway: Anyway = False,
    timeout: Timeout = ANSWER_S_MAX,
    state: State = None,
    json: Json = False,
) -> None:
    """Let the queries of a file come to a running deployment; the others run on, with a pause that is told, if any.

    Refused, with the numbers, where a promise would break, theirs or one that stands; --anyway lets them come. They
    read their sources from the beginning, and other queries' streams from where they stand. FILE stays as it is: the
    run remembers them, also after a stop, until `weft apply` lets the file alone count.

    \b
    Example:  weft add examples/meters/deployment.yaml examples/meters/peaks.yaml
    """
    from weft.spec import as_plain_queries

    found = held(file, state)
    report, _ = read(file, found.here)
    assert report.deployment is not None
    new = read_queries(queries, as_it_runs(report.deployment, found.files("plan.json")))
    if not found.alive():
        fail(f"{file}: nothing runs there; put the queries into the file, and start it", WRONG_INPUT)
    request = {"add": as_plain_queries(new)} | ({"anyway": True} if anyway else {})
    answer = ask(found, file, request, timeout, waits_for="Spark to try the operators")
    names = ", ".join(query.name for query in new)
    _end(file, answer, f"{names} {'runs' if len(new) == 1 else 'run'} now", f"{names}: not added", json)


def remove(
    file: File,
    query: Annotated[str, typer.Argument(help="The query that goes.", metavar="QUERY", show_default=False)],
    timeout: Timeout = ANSWER_S_MAX,
    state: State = None,
    json: Json = False,
) -> None:
    """Let a query of a running deployment go; its results stay, and so does what others use of it.

    FILE stays as it is: the run remembers it, also after a stop, until `weft apply` lets the file alone count.

    \b
    Example:  weft remove examples/meters/deployment.yaml south
    """
    found = held(file, state)
    if not found.alive():
        fail(f"{file}: nothing runs there; take the query out of the file", WRONG_INPUT)
    answer = ask(found, file, {"remove": query}, timeout)
    _end(file, answer, f"{query} is gone, and its results stay", f"{query}: not removed", json)


def read_queries(path: Path, deployment: Deployment) -> tuple[Query, ...]:
    """The queries of a file that come to a deployment; where it has errors, all on stderr and exit 2."""
    from weft.spec import check_added

    added = check_added(path, deployment)
    for problem in added.errors:
        note(problem.at(added.file))
    if added.errors:
        fail(f"{added.file}: {counted(len(added.errors), 'error')}", WRONG_INPUT)
    for problem in added.warnings:
        note(f"warning: {problem.at(added.file)}")
    return added.queries


def as_it_runs(deployment: Deployment, folder: Path) -> Deployment:
    """The deployment of a file, with what came and went while it ran, as a state folder tells."""
    from weft.cli.placing import in_force

    kept = in_force(folder)
    return deployment if kept is None else kept.beside.applied(deployment)


def _end(file: Path, answer: dict[str, Any], done: str, refused: str, json: bool) -> None:
    if json:
        print_json(answer)
        raise typer.Exit(FAILED if answer["state"] == "refused" else 0)
    if answer["state"] == "refused":
        fail(f"{file}: {refused}: {answer['why']}")
    say(f"{done}{pause(answer['pause_ms'])}")
    for told in str(answer["reason"]).split("; ")[1:]:
        say(f"  {told}")
