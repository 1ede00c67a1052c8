"""How is a deployment run from Python? `weft.run`: a file or a value in, the summary out."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from weft.bodies.live.run import Options, Run
from weft.bodies.live.state import state_folder
from weft.bodies.live.valid import valid
from weft.model import Deployment
from weft.spec import load

BUILT_HERE = "python"  # stands for the file where there is none
LOOK_S = 0.2


def run(
    deployment: Deployment | str | os.PathLike[str],
    *,
    state: str | os.PathLike[str] | None = None,
    until_done: bool = False,
    seconds: float | None = None,
    fresh: bool = False,
) -> dict[str, Any]:
    """Run a deployment, or the one in a file, on Spark to the end asked for, else until Ctrl-C; the summary.

    SpecError tells everything that is wrong with the deployment, before anything starts. The state of a file is that of
    `weft run`, so each takes up what the other stopped; that of a deployment lies in its folder.
    """
    if seconds is not None and until_done:
        raise ValueError("seconds and until_done cannot both say when to end: give one")
    if seconds is not None and not 0 < seconds < math.inf:
        raise ValueError(f"seconds must be greater than 0, found {seconds:g}")
    written = Path(deployment) if isinstance(deployment, str | os.PathLike) else None
    if isinstance(deployment, str | os.PathLike):
        deployment = load(deployment)
    file = Path(valid(deployment).folder, BUILT_HERE) if written is None else written
    folder = state_folder(file, None if state is None else Path(state))
    return _carried(Run(deployment, folder, Options(seconds, until_done, fresh, folder, file=written)))


def _carried(made: Run) -> dict[str, Any]:
    """Drive a run; in the main thread Ctrl-C stops it in order, and a second one waits no longer."""
    if threading.current_thread() is not threading.main_thread():
        return made.go()
    ended: list[dict[str, Any] | BaseException] = []
    asked = False

    def carry() -> None:
        try:
            ended.append(made.go())
        except BaseException as error:
            ended.append(error)

    def interrupted(which: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        made.stop()

    # Spark takes Ctrl-C for itself where it is started in the main thread: it would break batches off.
    thread = threading.Thread(target=carry, name="run", daemon=True)
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(LOOK_S)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    [found] = ended
    if isinstance(found, BaseException):
        raise found
    return found
