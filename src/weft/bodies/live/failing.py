"""How does a run that fails end? With one sentence, told where `weft status` finds it; the whole story in a log."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from weft.bodies.live.view import RunView
from weft.spark.failures.causes import JAVA_GONE, Cause, cause_of, keep
from weft.spark.fragments.operators import BadOperator
from weft.spark.sinks.ownership import RUN_FILE

GONE_S_MAX = 5.0


class RunFailed(RuntimeError):
    """Something that runs could not go on; the text says what and why."""


def failed(run: RunView, error: Exception, known: str | None) -> RunFailed | BadOperator:
    """What to raise in the place of an error; its reason is left in the status, where that can still be written.

    Where a failure is `known` already, the error is but its consequence.
    """
    text = known or _why(run, error)
    has_record = (run.state.path / RUN_FILE).exists()
    if known is None and has_record:
        keep(run.state.folders.logs, "run", Cause(text, True), error.__cause__ or error)
    run.phase = "failed"
    if not has_record:  # what is left in a folder without one would be nobody's
        return error if isinstance(error, BadOperator) else RunFailed(text)
    told = {"phase": run.phase, "at": time.time(), "reason": text}
    with suppress(Exception):
        told = {**run.status(), **told}
    try:
        run.state.tell("status.json", told)
    except OSError:
        # A full disk takes no second file, and what the old one gives up has room for the reason alone.
        with suppress(OSError):
            short = json.dumps({key: told[key] for key in ("phase", "at", "reason")})
            (run.state.path / "status.json").write_text(short, encoding="utf-8")
    return error if isinstance(error, BadOperator) else RunFailed(text)


def _why(run: RunView, error: Exception) -> str:
    lost = isinstance(error, OSError) or "Py4J" in type(error).__name__
    if run.sites is not None and not run.sites.alive(GONE_S_MAX if lost else 0.0):
        return JAVA_GONE
    if isinstance(error, RunFailed | BadOperator):
        return str(error)
    folder = run.deployment.folder
    sinks = [os.path.join(folder, sink.path) for query in run.deployment.queries for sink in query.sinks if sink.path]
    return cause_of(error, folder, run.deployment.sources, [str(run.state.path), *sinks]).text
