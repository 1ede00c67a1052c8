"""How is a run asked to change? A file for each request, and its answer beside it; from elsewhere its desk is asked."""

from __future__ import annotations

import json as encoding
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli.away import Away
from weft.cli.held import Held
from weft.cli.output import WRONG_INPUT, fail, note

ANSWER_S_MAX = 300.0
LOOK_S = 0.1
OF_CHANGES = ("at_s", "by", "wish", "reason", "state", "why", "pause_ms")

Timeout = Annotated[float, typer.Option(metavar="S", min=0, help="How long to wait for the answer.")]


def ask(
    found: Held, file: Path, request: dict[str, Any], timeout: float = ANSWER_S_MAX,
    keys: Sequence[str] = OF_CHANGES, waits_for: str = "a batch boundary",
) -> dict[str, Any]:  # fmt: skip
    """Ask a run for a change and wait for its answer; exit 1 where none comes, or it lacks something."""
    from weft.bodies.live.wanted import wanted_of

    try:
        wanted = wanted_of(request)
    except ValueError as error:
        fail(f"{file}: that cannot be asked: {error}", WRONG_INPUT)
    if isinstance(found, Away):
        answer = found.change(wanted, timeout, waits_for)
    else:
        answer = _by_file(found, file, request, timeout, waits_for)
    missing = [word for word in keys if word not in answer]
    if missing:
        fail(f"{file}: the answer lacks {', '.join(missing)}; {found.command('status')} shows how things are now")
    return answer


def _by_file(found: Held, file: Path, request: dict[str, Any], timeout: float, waits_for: str) -> dict[str, Any]:
    """Leave a request in the state of a run on this machine."""
    folder = found.folder / "requests"
    folder.mkdir(exist_ok=True)
    key = f"{time.time_ns()}"
    aside = folder / f".{key}"
    aside.write_text(encoding.dumps(request))
    aside.rename(folder / f"{key}.json")
    return _wait(found, folder / f"{key}.answer.json", timeout, file, waits_for)


def _wait(found: Held, path: Path, timeout: float, file: Path, waits_for: str) -> dict[str, Any]:
    asked_s = time.monotonic()
    told = False
    while not path.exists():
        waited_s = time.monotonic() - asked_s
        if not found.alive():
            fail(f"{file}: the run ended before it answered")
        if waited_s >= timeout:
            fail(f"{file}: no answer after {waited_s:.0f} s; {found.command('logs')} tells what goes on")
        if waited_s > 2 and not told:
            told = True
            note(f"waiting for {waits_for}")
        time.sleep(LOOK_S)
    answer: Any = None
    with suppress(ValueError, TypeError):
        answer = encoding.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    if not isinstance(answer, dict):
        fail(f"{path}: the answer cannot be read; {found.command('status')} shows where things are now")
    return answer


def pause(pause_ms: float | None) -> str:
    """The longest pause that a change made, in words."""
    if pause_ms is None:
        return "; no record has come since to what had to pause"
    return f"; the others paused for {pause_ms:.0f} ms at most" if pause_ms else "; nothing else had to pause"
