"""`weft run`: run a deployment on Spark, show how it goes, and say what came out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import (
    FAILED,
    WRONG_INPUT,
    File,
    Json,
    State,
    fail,
    note,
    print_json,
    print_table,
    read,
    say,
    warnings_of,
)
from weft.cli.tables import FRAGMENT_HEAD, MOVE_HEAD, QUERY_HEAD, fragment_rows, move_rows, query_rows

if TYPE_CHECKING:
    from weft.cli.driving import Drive
    from weft.model import Deployment

JAVA_HINT = "Spark needs Java 17 or later: set JAVA_HOME, or put `java` on the PATH"


def run(
    file: File,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="End after so many seconds of flowing records.")
    ] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="End when every source is read and every channel drained.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: forget the state, and what sinks were given.")
    ] = False,
    state: State = None,
    json: Json = False,
) -> None:
    """Run a deployment on Spark, all sites in this process; the same command resumes what was stopped.

    Without --seconds and --until-done it runs until Ctrl-C, which stops in order; a second Ctrl-C ends at once.

    \b
    Example:  weft run examples/meters/deployment.yaml --until-done --fresh
    """
    if seconds is not None and until_done:
        fail("--seconds and --until-done cannot both say when to end: give one", WRONG_INPUT)
    if seconds is not None and not 0 < seconds < math.inf:
        fail(f"--seconds must be greater than 0, found {seconds:g}", WRONG_INPUT)
    report, deployment = read(file)
    warnings = warnings_of(report)
    for warning in warnings:
        note(f"warning: {warning}")
    from weft.bodies.live.run import Options, Run
    from weft.bodies.live.state import state_folder

    folder = state_folder(file, state)
    made = Run(deployment, folder, Options(seconds, until_done, fresh, state))
    driven, summary = _drive(made, file, json)
    summary["warnings"] = [*warnings, *(one for one in summary.get("warnings", []) if one not in warnings)]
    if json:
        print_json(summary)
    else:
        _print(file, deployment, folder, summary, driven)


def _drive(made: Any, file: Path, json: bool) -> tuple[Drive, dict[str, Any]]:
    from weft.bodies.live.run import RunFailed
    from weft.bodies.live.state import CannotRun
    from weft.cli.driving import Drive
    from weft.cli.streams import Streams
    from weft.spark.operators import BadOperator

    hint = f"`weft logs {file}` tells the story before it, `weft logs {file} --spark` what Spark said"
    with Streams(json) as streams:
        driven = Drive(made, streams)
        try:
            return driven, driven.go()
        except CannotRun as error:
            problem, code = f"{file}: {error}", WRONG_INPUT
        except (RunFailed, BadOperator) as error:
            problem, code = f"{file}: {error}\n{hint}", FAILED
        except Exception as error:
            problem, code = _unexpected(error, streams.heard(), hint), FAILED
            streams.keep(_trace(error))
    fail(problem, code)


def _unexpected(error: Exception, heard: list[str], hint: str) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    if "JAVA_GATEWAY_EXITED" in first or isinstance(error, FileNotFoundError):
        said = [line for line in heard if line.strip() and "incubator" not in line]
        return "\n".join(["Spark could not start:", *(said[-5:] or [first]), JAVA_HINT])
    return f"{type(error).__name__}: {first}\n{hint}"


def _trace(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def _print(file: Path, deployment: Deployment, folder: Path, summary: dict[str, Any], driven: Drive) -> None:
    flowed_s = driven.flowed_s
    summary = {**summary, "backlog": driven.status.get("backlog", {})}
    if flowed_s:
        say(f"{file}: done, records flowed for {flowed_s:.1f} s")
    elif driven.run.phase == "starting":
        say(f"{file}: was done before, this is what came out then; --fresh runs it again")
    else:
        say(f"{file}: stopped before records flowed")
    say("")
    print_table("queries", QUERY_HEAD, query_rows(summary))
    say("")
    print_table("what ran where", FRAGMENT_HEAD, fragment_rows(summary))
    say("")
    if summary["moves"]:
        print_table("moves", MOVE_HEAD, move_rows(summary))
        say("")
    say("results")
    for query in deployment.queries:
        for sink in query.sinks:
            where = "the console" if sink.path is None else Path(deployment.folder, sink.path)
            say(f"  {query.name}: {where} ({sink.format}, {sink.mode})")
    say(f"state and logs: {folder}")
