"""How does a run end? In order: all is stopped and heard, sinks hold what they must, and the summary is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import THE_END
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.parts import Parts
from weft.bodies.live.reports import Reports
from weft.bodies.live.resuming import CLOSING, source_files
from weft.bodies.live.state import STOP
from weft.bodies.live.summary import summary_of
from weft.bodies.live.view import RunView
from weft.model import Deployment, sink_name
from weft.spark.sources.taken import changed_notes

STOP_S_MAX = 60.0
HEARD_S_MAX = 5.0


def end(run: RunView, parts: Parts, until_done: bool, watch: Callable[[], None]) -> dict[str, Any]:
    """End a run in order, and give its summary; RunFailed where something had failed, or cannot be finished."""
    run.done = until_done and _all_done(parts)
    run.phase = "stopping"
    run.stopping_s = time.monotonic()
    parts.reports.look()
    parts.progress.look()
    (run.state.path / STOP).unlink(missing_ok=True)
    _stop(run, parts, watch)
    run.follow()
    parts.progress.look()
    parts.measurements.look(finally_=True)
    if parts.desk.failure is not None:
        raise RunFailed(parts.desk.failure)
    _tell_changed_files(run, parts.changes)
    if run.done:
        _settle_sinks(run.deployment, parts.changes, parts.reports)
    run.phase = "stopped"
    summary = summary_of(run)
    run.state.tell("status.json", run.status())
    if run.done:
        _keep_finished(run, summary)
    return summary


def _all_done(parts: Parts) -> bool:
    """True if all was read to the end, by the desk's machines, and no site's last report says otherwise.

    The machines count every fragment in force, each in its present epoch: one that has drained while one before it
    has not counts for nothing. A change under way, or a fragment that failed since, takes back what they said.
    """
    if parts.desk.failure is not None or not parts.desk.all_done:
        return False
    deadline = time.monotonic() + HEARD_S_MAX
    while parts.progress.undrained() and time.monotonic() < deadline:
        time.sleep(0.02)
        parts.reports.look()
    return parts.desk.all_done and not parts.progress.undrained()


def _stop(run: RunView, parts: Parts, watch: Callable[[], None]) -> None:
    """Let every fragment end, and sites tell all they know."""
    parts.adding.leave(THE_END)
    parts.controlling.leave()
    parts.desk.leave()
    deadline = time.monotonic() + STOP_S_MAX
    while not parts.desk.stopped.wait(0.1) and time.monotonic() < deadline:
        watch()
        parts.reports.look()
    silent = parts.reports.ask({site.name for site in run.deployment.sites} - run.crashed)
    if silent and parts.desk.failure is None:
        run.note(f"{', '.join(sorted(silent))} did not tell all that was measured: some numbers are too low")


def _tell_changed_files(run: RunView, changes: Changes) -> None:
    """Say which users' files have grown since they were read: what was added to them is in no result."""
    generations, folders = changes.generations, run.state.folders
    paths = [folders.checkpoint(one.id, generations.get(one.id, 0)) for one in changes.fragments]
    for text in changed_notes(paths, run.state.path):
        if text not in run.notes:
            run.note(text)


def _settle_sinks(deployment: Deployment, changes: Changes, reports: Reports) -> None:
    """Leave the last values in sinks of update mode: where what writes them has run."""
    updated = {
        sink_name(query, sink)
        for query in deployment.queries
        for sink in query.sinks
        if sink.mode == "update" and sink.path is not None
    }
    homes: dict[str, tuple[str, ...]] = {}
    for fragment in changes.fragments:
        names = tuple(name for name in fragment.sinks if name in updated)
        if names:
            homes[fragment.site] = (*homes.get(fragment.site, ()), *names)
    for site, why in reports.settle(homes).items():
        raise RunFailed(f"the sinks of site {site} hold all results, but not yet only the last of each key: {why}")


def _keep_finished(run: RunView, summary: dict[str, Any]) -> None:
    """A finished run gives its summary again; files that it has not read would be refused then."""
    files = source_files(run.deployment)
    closed = (run.state.read(CLOSING) or {"files": files})["files"]
    run.state.write("finished.json", {"summary": summary, "files": closed})
    if closed != files:
        run.note("files came to the sources when windows were being closed: some may not be in the results")
