"""`weft stop`: end a run in order, from another terminal."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from weft.cli.finding import held
from weft.cli.output import File, State, fail, note, say

STOP_S_MAX = 120.0
LOOK_S = 0.1


def stop(
    file: File,
    timeout: Annotated[float, typer.Option(metavar="S", min=0, help="How long to wait for its end.")] = STOP_S_MAX,
    state: State = None,
) -> None:
    """Stop a running deployment in order and wait for its end; `weft run` later resumes it.

    \b
    Example:  weft stop examples/meters/deployment.yaml
    """
    found = held(file, state)
    if not found.runs():
        say(f"{file}: nothing runs there")
        return
    found.ask_to_stop()
    asked_s = time.monotonic()
    told = False
    while found.runs():
        waited_s = time.monotonic() - asked_s
        if waited_s >= timeout:
            running = ", ".join(str(pid) for pid in found.pids())
            fail(f"{file}: process {running} was asked to stop, but still runs after {waited_s:.0f} s")
        if waited_s > 2 and not told:
            told = True
            note("waiting until what is under way is committed")
        found.rest(LOOK_S)
    found.stopped()
    say(f"{file}: stopped after {time.monotonic() - asked_s:.1f} s")
