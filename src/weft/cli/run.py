"""`weft run`: run a deployment on Spark, show how it goes, and say what came out."""

from __future__ import annotations

import math
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.guard import show_trace
from weft.cli.output import (
    FAILED,
    WRONG_INPUT,
    File,
    Json,
    State,
    command,
    fail,
    note,
    print_json,
    print_table,
    read,
    say,
    warnings_of,
)
from weft.cli.placing import level_lines, placed
from weft.cli.predicted import PREDICTED_HEAD, predicted, predicted_rows
from weft.cli.stories import STORIES_HEAD, stories, stories_rows
from weft.cli.tables import (
    FRAGMENT_HEAD,
    MOVE_HEAD,
    QUERY_HEAD,
    change_lines,
    doubled_lines,
    fragment_rows,
    left_out,
    move_rows,
    promise_lines,
    query_rows,
    shared_lines,
)

if TYPE_CHECKING:
    from weft.cli.driving import Drive
    from weft.model import Deployment


def run(
    file: File,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="End after so many seconds of flowing records.")
    ] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="End when every source is read and every channel drained.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Start over: remove this deployment's state and results, by its own records."),
    ] = False,
    twin: Annotated[
        bool,
        typer.Option("--twin", help="Say at the end what plan and twin had predicted and changed, beside what came."),
    ] = False,
    processes: Annotated[
        bool, typer.Option("--processes", help="Every site in a process of its own, with a Spark of its own.")
    ] = False,
    apart: Annotated[
        bool,
        typer.Option(
            "--apart", help="Be the desk alone: sites are started with `weft agent`, on machines that share no folder."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fresh: do not ask before anything is removed.")] = False,
    state: State = None,
    json: Json = False,
) -> None:
    """Run a deployment on Spark, all sites in this process or each in one of its own; said again, it resumes.

    Without --seconds and --until-done it runs until Ctrl-C, which stops in order; a second Ctrl-C ends at once.

    \b
    Example:  weft run examples/meters/deployment.yaml --until-done --fresh
    """
    if seconds is not None and until_done:
        fail("--seconds and --until-done cannot both say when to end: give one", WRONG_INPUT)
    if seconds is not None and not 0 < seconds < math.inf:
        fail(f"--seconds must be greater than 0, found {seconds:g}", WRONG_INPUT)
    if processes and apart:
        fail("--processes starts sites on this machine, --apart waits for those of others: give one", WRONG_INPUT)
    report, deployment = read(file, data=not apart)
    warnings = warnings_of(report)
    for warning in warnings:
        note(f"warning: {warning}")
    from weft.bodies.live.run import Options, Run
    from weft.bodies.live.state import CannotRun, state_folder
    from weft.spark.storage.private import private_files

    private_files()
    folder = state_folder(file, state)
    for line in level_lines(file, deployment, state, fresh):
        note(line)
    before = placed(file, deployment, state, fresh=fresh) if twin else None
    assert report.deployment is not None
    try:
        options = Options(seconds, until_done, fresh, state, file=file, apart=apart)
        made = Run(report.deployment, folder, options, _house(file) if processes or apart else None)
    except CannotRun as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    if fresh and not yes:
        _ask(made, file)
    driven, summary = _drive(made, file, state, json)
    for told in made.notes:
        note(f"note: {told}")
    summary["warnings"] = [*warnings, *(one for one in summary.get("warnings", []) if one not in warnings)]
    if before is not None:
        summary["predicted"] = predicted(before, summary)
        summary["stories"] = stories(before, summary)
    if json:
        print_json(summary)
    else:
        _print(file, state, made.deployment, folder, summary, driven)


def _house(file: Path) -> Any:
    """Who keeps the sites where each is a process."""
    from weft.bodies.live.processes.house import ProcessSites

    return partial(ProcessSites, file=file)


def _ask(made: Any, file: Path) -> None:
    """Show somebody at the terminal what starting over removes, before it does."""
    from weft.bodies.live.state import CannotRun

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    try:
        lines = made.would_remove().lines()
    except CannotRun as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    if not lines:
        return
    note("--fresh removes:")
    for line in lines:
        note(f"  {line}")
    if not typer.confirm("Remove them?", err=True):
        fail(f"{file}: nothing was removed")


def _drive(made: Any, file: Path, state: Path | None, json: bool) -> tuple[Drive, dict[str, Any]]:
    from weft.bodies.live.failing import RunFailed
    from weft.bodies.live.state import CannotRun
    from weft.cli.driving import Drive
    from weft.cli.streams import Streams
    from weft.spark.fragments.operators import BadOperator

    with Streams(json) as streams:
        driven = Drive(made, streams)
        try:
            return driven, driven.go()
        except CannotRun as error:
            failure: Exception = error
            problem, code = f"{file}: {error}", WRONG_INPUT
        except (RunFailed, BadOperator) as error:
            failure, code = error, FAILED
            problem = _failed(f"{file}: {error}", streams.heard(), file, state)
    show_trace(failure)
    fail(problem, code)


def _failed(problem: str, heard: list[str], file: Path, state: Path | None) -> str:
    """What went wrong and where there is more to read; of a Spark that never started, what it said itself."""
    from weft.spark.failures.causes import NO_JAVA

    if NO_JAVA in problem:
        said = [line for line in heard if line.strip() and "incubator" not in line]
        return "\n".join([problem, *said[-5:]])
    story, spark = command("logs", file, state), command("logs", file, state, "--spark")
    return f"{problem}\n{story} tells the story before it, {spark} what Spark said"


def _headline(flowed_s: float, run: Any) -> str:
    """How it ended: only what was read to the end is done."""
    if flowed_s and run.done:
        return f"done, sources flowed for {flowed_s:.1f} s"
    if run.phase == "starting":
        return "was done before, this is what came out then; --fresh runs it again"
    flowed = f"sources flowed for {flowed_s:.1f} s" if flowed_s else "before records flowed"
    return f"stopped; the same command resumes ({flowed})"


def _print_stories(found: dict[str, Any]) -> None:
    """What was changed in the twin, beside what was changed live."""
    if "failed" in found:
        say(f"the twin has no story: {found['failed']}")
    elif found and not found["changes"]:
        say("nothing was changed, neither in the twin nor live")
    elif found:
        print_table(f"changes in the twin ({found['model']} model) and live", STORIES_HEAD, stories_rows(found))
    say("")


def _print(
    file: Path, state: Path | None, deployment: Deployment, folder: Path, summary: dict[str, Any], driven: Drive
) -> None:
    flowed_s = driven.flowed_s
    summary = {**summary, "backlog": driven.status.get("backlog", {})}
    say(f"{file}: {_headline(flowed_s, driven.run)}")
    say("")
    print_table("queries", QUERY_HEAD, query_rows(summary))
    for line in [*left_out(summary), *promise_lines(summary), *doubled_lines(summary), *shared_lines(summary)]:
        say(f"  {line}")
    say("")
    print_table("what ran where", FRAGMENT_HEAD, fragment_rows(summary))
    say("")
    if summary["moves"]:
        print_table("moves", MOVE_HEAD, move_rows(summary))
        say("")
    for line in change_lines(summary):
        say(line)
    if "predicted" in summary:
        print_table("predicted against measured, after the start", PREDICTED_HEAD, predicted_rows(summary["predicted"]))
        say("")
        _print_stories(summary["stories"])
    say("results")
    for query in deployment.queries:
        for sink in query.sinks:
            where: str | Path = "the console" if sink.path is None else Path(deployment.folder, sink.path)
            if sink.facts.has_topic:
                where = f"topic {sink.options.get('topic')}, {'at least once' if sink.at_least_once else 'each once'}"
            say(f"  {query.name}: {where} ({sink.format}, {sink.mode})")
        for operator in query.operators:
            if operator.late is not None:
                where = Path(deployment.folder, operator.late.to)
                say(f"  {query.name}, late for {operator.name}: {where} ({operator.late.format})")
    say(f"state and logs: {folder} ({command('status', file, state)}, {command('logs', file, state)})")
