"""`weft apply`: bring what runs, or was stopped, to what its file says now; the difference first."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.add import Anyway
from weft.cli.asking import ANSWER_S_MAX, Timeout, ask, pause
from weft.cli.finding import held
from weft.cli.held import Held
from weft.cli.output import FAILED, WRONG_INPUT, File, Json, State, fail, note, print_json, read, say

if TYPE_CHECKING:
    from weft.bodies.live.applying import Between
    from weft.model import Deployment

LATER = "it takes effect with the next start"


def apply(
    file: File,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is made.")] = False,
    anyway: Anyway = False,
    timeout: Timeout = ANSWER_S_MAX,
    state: State = None,
    json: Json = False,
) -> None:
    """Bring a deployment that runs, or was stopped, to what its file says now, keeping all that did not change.

    Shows first what comes, goes, moves and changes, what keeps its state, and what cannot be done and why: then nothing
    is. Queries that would break a promise do not come, unless --anyway. What came and went by `weft add` and
    `weft remove` counts no more than what the file says.

    \b
    Example:  weft apply examples/meters/deployment.yaml --yes
    """
    from weft.bodies.live.applying import between
    from weft.bodies.live.state import CannotRun
    from weft.bodies.live.state import State as Kept
    from weft.spark.storage.disk import Damaged

    found = held(file, state)
    report, _ = read(file, found.here)
    deployment = report.deployment
    assert deployment is not None
    runs = found.alive()
    if not runs and found.runs():
        fail(f"{file}: its sites run on without a desk; start that with {found.command('run', '--processes')}")
    kept = Kept(found.files("run.json", "plan.json"), deployment.store.fsync, deployment.channels)
    try:
        # Of a run elsewhere the state here is a copy, and where its file lies says nothing here.
        difference = between(kept, deployment, runs, file if found.here else None)
    except (CannotRun, Damaged) as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    for line in lines_of(difference, runs):
        note(line)
    if difference.why_not():
        if json:
            print_json({"changes": [], "refused": difference.why_not()})
            raise typer.Exit(FAILED)
        fail(f"{file}: nothing was changed: " + "; ".join(difference.why_not()))
    if difference.added and not runs and not anyway:
        _refuse_broken(file, deployment, difference, state, json)
    asks = difference and not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if asks and not typer.confirm("Make it so?", err=True):
        fail(f"{file}: nothing was changed")
    made = _asked(found, file, difference, timeout, anyway) if runs else _written(kept, deployment, difference, file)
    if json:
        print_json({"changes": made})
    refused = [one for one in made if one["state"] == "refused"]
    if refused:
        if json:
            raise typer.Exit(FAILED)
        fail(f"{file}: {refused[0]['wish']}: {refused[0]['why']}; what was made before it stays")
    if not json:
        _say(file, difference, made, runs)


def _say(file: Path, difference: Between, made: list[dict[str, Any]], runs: bool) -> None:
    if not difference:
        say(f"{file}: what {'runs' if runs else 'was stopped'} is what the file says")
    elif runs:
        longest = [one["pause_ms"] for one in made if one["pause_ms"] is not None]
        say(f"{file}: made{pause(max(longest) if longest else None)}")
    else:
        say(f"{file}: made; {LATER}")


def lines_of(found: Between, runs: bool) -> list[str]:
    """A difference for people: what comes, goes, moves, changes and stays, and what cannot be."""
    lines = [f"+ {query.name}: comes, and reads its sources from their beginning" for query in found.added]
    lines += [f"- {name}: goes; its results stay, and so does what others use of it" for name in found.removed]
    lines += [f"> {stream}: moves from {start} to {to}, with its state" for stream, (start, to) in found.moved.items()]
    for one in found.changed:
        verdict = f"cannot be: {one.why_not}" if one.why_not else "goes on from where it was"
        lines += [f"~ {one.what}: {'; '.join(one.lines)}; {verdict}"]
    lines += [f"! {why}" for why in found.refused]
    if found:
        lines += [f"= {name}: stays as it is, with its state" for name in found.kept]
        lines += [] if runs else ["nothing runs: all of it takes effect with the next start"]
    return lines


def _refuse_broken(file: Path, deployment: Deployment, difference: Between, state: Path | None, json: bool) -> None:
    """Exit 1 where queries that come to a stopped state would break a promise."""
    from weft.cli.placing import placed
    from weft.cli.plan_add import admitted
    from weft.plan.dataflow.ordering import with_ordering
    from weft.plan.dataflow.sharing import with_sharing

    new = {query.name for query in difference.added}
    rest = replace(deployment, queries=tuple(query for query in deployment.queries if query.name not in new))
    before = placed(file, with_sharing(with_ordering(rest)), state)
    _, found = admitted(file, before, rest, difference.added, state)
    if not found.refused:
        return
    if json:
        print_json({"changes": [], "refused": list(found.refused)})
        raise typer.Exit(FAILED)
    fail(f"{file}: nothing was changed: " + "; ".join(found.refused) + "; --anyway lets them come")


def _asked(found: Held, file: Path, difference: Between, timeout: float, anyway: bool) -> list[dict[str, Any]]:
    """Ask a run for all of it, one change after another; the first that is refused is the last."""
    from weft.spec import as_plain_queries

    adds: list[dict[str, Any]] = []
    if difference.added:
        adds.append({"add": as_plain_queries(difference.added), "by": "file"} | ({"anyway": True} if anyway else {}))
    removes: list[dict[str, Any]] = [{"remove": name, "by": "file"} for name in difference.removed]
    homes = {stream: to for stream, (_, to) in difference.moved.items()}
    moves: list[dict[str, Any]] = [{"homes": homes, "by": "file"}] if homes else []
    # Who comes may take the sink of who goes; but something always runs.
    requests = [*removes, *adds, *moves] if difference.kept or difference.changed else [*adds, *removes, *moves]
    made: list[dict[str, Any]] = []
    for request in requests:
        keys = ("change",) if "homes" in request else ("state", "why", "pause_ms")
        answer = ask(found, file, request, timeout, keys)
        made.append(answer.get("change", answer))
        if made[-1]["state"] == "refused":
            break
    return made


def _written(kept: Any, deployment: Deployment, difference: Between, file: Path) -> list[dict[str, Any]]:
    """Let the file alone count for a state that does not run."""
    from weft.bodies.live.applying import make
    from weft.bodies.live.state import CannotRun

    try:
        kept.lock()
        try:
            make(kept, deployment, difference)
        finally:
            kept.unlock()
    except CannotRun as error:
        fail(f"{file}: {error}")
    adds = [{"add": [query.name for query in difference.added]}] if difference.added else []
    moves = {stream: to for stream, (_, to) in difference.moved.items()}
    wishes = [*({"remove": name} for name in difference.removed), *adds, *([{"move": moves}] if moves else [])]
    wishes += [{"change": one.what.removeprefix("operator ")} for one in difference.changed]
    return [
        {"at_s": None, "by": "person", "wish": wish, "reason": "the file says so", "state": "done", "why": LATER,
         "pause_ms": None}
        for wish in wishes
    ]  # fmt: skip
