"""What happens? One deployment on Spark, from what is refused at once to the summary at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from weft.bodies.live.advising import Advising
from weft.bodies.live.assembly import assemble
from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import Controlling
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.every import Every
from weft.bodies.live.failing import RunFailed, failed
from weft.bodies.live.measure import Meter
from weft.bodies.live.measurements import Measurements
from weft.bodies.live.moves import Asked, Move
from weft.bodies.live.opening import Opening, Options
from weft.bodies.live.progress import Progress
from weft.bodies.live.resuming import CLOSING, Removal, source_files
from weft.bodies.live.running import Running
from weft.bodies.live.sharing import with_held_sharing
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import STOP, CannotRun, State
from weft.bodies.live.steering import Steering
from weft.bodies.live.story_file import StoryFile
from weft.bodies.live.summary import status_of, summary_of
from weft.bodies.live.transport import InProcess
from weft.bodies.live.valid import valid
from weft.model import Deployment, Placement
from weft.model.wishes import MoveTo, Wish
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.sharing import as_written
from weft.protocol.hosting import Want
from weft.spark import embedded
from weft.spark.engine import SparkEngine
from weft.spark.failures.causes import cause_of
from weft.spark.fragments.outputs import Commit
from weft.spark.measuring.progress import StageTimes

__all__ = ["Options", "Run"]

STATUS_EVERY_S = 1.0
STOP_S_MAX = 60.0
START_S_MAX = 600.0


class Run:
    """One run of a deployment, embedded: all sites in this process, over one local Spark."""

    def __init__(self, deployment: Deployment, state: Path, options: Options) -> None:
        state = Path(state).resolve()
        self.options = options
        self.state = State(state, deployment.store.fsync)
        deployment = with_ordering(valid(as_written(deployment)))
        self.deployment = deployment = with_held_sharing(deployment, self.state, options.fresh)
        self.meter = Meter(deployment)
        self.placement = Placement()
        self.phase = "starting"
        self.done = False  # all was read to the end, with nothing left to go on with
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.started_s = time.monotonic()
        self.flowing_s: float | None = None
        self.stopping_s: float | None = None
        self.spark: embedded.Embedded | None = None
        self.changes: Changes | None = None
        self.progress: Progress | None = None
        self._flowed_before_s = 0.0
        self._over = threading.Event()
        self._desk: DeskBody | None = None
        self._sites: Sites[SparkEngine] | None = None
        self._story: Callable[[str], None] = lambda line: None
        self._opening = Opening(deployment, self.state, options)
        self._steering = Steering(self)
        self._measurements = Measurements(self, self.state.path)
        self._controlling: Controlling | None = None
        self.advising: Advising | None = None

    def go(self, watch: Callable[[Run], None] = lambda run: None) -> dict[str, Any]:
        """Run to the end asked for, and give the summary; `watch` is called now and then, to show how it goes."""
        self.placement = self._opening.look()
        self.state.lock()
        story = None
        try:
            already = self._opening.resume()
            self.notes += self._opening.notes
            if already is not None:
                return already
            story = StoryFile(self.state.path / "story.log")
            self._story = story.write
            for text in self.notes:
                self._story(f"# {text}")
            watch(self)
            self._begin(watch)
            self._wait(watch)
            return self._end(watch)
        except CannotRun:
            raise
        except Exception as error:
            raise failed(self, error, self._failure) from error
        finally:
            # Where a run failed, what cannot be closed either says nothing new.
            with suppress(Exception) if self.phase == "failed" else nullcontext():
                self._close()
            if story is not None:
                story.close()
            self.state.unlock()

    def status(self) -> dict[str, Any]:
        """How it is doing right now."""
        return status_of(self)

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._over.set()

    def would_remove(self) -> Removal:
        """What starting over would remove; CannotRun where it must not."""
        return self._opening.would_remove()

    def note(self, text: str) -> None:
        """Tell whoever watches, and the story, of something that is good to know."""
        self.notes.append(text)
        self._story(f"# {text}")

    def _begin(self, watch: Callable[[Run], None]) -> None:
        parts = assemble(self.deployment, self.placement, self.state, self.meter, self.options, self._committed)
        self.spark, self.changes = parts.spark, parts.changes
        self.changes.clock_s = self.flowed_s
        transport = InProcess()
        self._sites = sites = Sites(self.state, parts.engines, transport, self._story)
        running = Running(self.deployment, sites.engines, lambda: self.fragments, StageTimes(parts.spark.session))
        self.progress = Progress(self.meter, running, self.state)
        for site in self.deployment.sites:
            sites.start(site.name)
        self._desk = desk = DeskBody(self.changes, transport, self._story, self._comes_back)
        if self.deployment.control.advise is not None:
            self.advising = Advising(self.deployment, self.meter, self._in_force, transport, self._story)
        self._controlling = self.advising or Controlling(self.deployment, self._in_force, transport, self._story)
        self._controlling.tell_desk, self.changes.hand_on = desk.tell, self._controlling.wish
        self._controlling.start()
        self.phase = "launching"
        desk.start()
        deadline = time.monotonic() + START_S_MAX
        while not desk.running.wait(0.1) and not self._is_over():
            watch(self)
            self._check_carriers()
            if time.monotonic() > deadline:
                raise RunFailed(f"not all fragments were running after {START_S_MAX:.0f} s")
        if not self._is_over():
            self._flowed_before_s = self.spark.let_flow()
            self._steering.resume(self._flowed_before_s)
            self.flowing_s = time.monotonic()
            self.phase = "running"
            for wish in parts.wishes:
                self.ask(wish)

    def _in_force(self) -> Placement:
        return self.changes.placement if self.changes is not None else self.placement

    def _is_over(self) -> bool:
        return self._over.is_set() or (self._desk is not None and self._desk.over.is_set())

    def _comes_back(self, site: str) -> bool:
        """True if a site is lost, and the scenario has its return in store."""
        return site in self.crashed and self._steering.comes_back(site)

    def _committed(self, commit: Commit) -> None:
        self.meter.committed(commit)
        if self.changes is not None:
            self.changes.committed(commit.fragment, commit.manifest.committed_ms)

    def flowed_s(self) -> float:
        """Seconds that sources have flowed, in earlier starts of this run too."""
        return self._flowed_before_s + (time.monotonic() - self.flowing_s if self.flowing_s else 0.0)

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What runs now."""
        return self.changes.fragments if self.changes else ()

    @property
    def down(self) -> dict[str, str]:
        """Fragments that do not run at the moment, and why."""
        return self._desk.down if self._desk else {}

    @property
    def crashed(self) -> set[str]:
        """Sites that are lost."""
        return self._sites.lost if self._sites else set()

    @property
    def _failure(self) -> str | None:
        return self._desk.failure if self._desk else None

    def ask(self, wish: Wish) -> Asked:
        """Ask for a change; what becomes of it stands in the value returned, in time."""
        assert self.changes is not None, "changes are asked of a run that has begun"
        return self.changes.ask(wish)

    def move(self, query: str, operator: str, to: str, reason: str = "asked for") -> Move:
        """Ask for a move of one operator; what becomes of it stands in the value returned, in time."""
        return self.ask(MoveTo({f"{query}.{operator}": to}, reason)).moves[0]

    def crash(self, site: str) -> None:
        """Lose a site: its agent and all it runs, at once."""
        assert self._sites is not None, "sites are lost by a run that has begun"
        self._sites.crash(site)

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        assert self._sites is not None, "sites come back to a run that has begun"
        assert self._desk is not None
        self._sites.start(site)
        for fragment in self.fragments:
            if fragment.site == site:
                self._desk.tell(Want(fragment.id, site))

    def _check_carriers(self) -> None:
        for part in ([self._desk.carrier] if self._desk else [], self._sites.carriers() if self._sites else []):
            for carrier in part:
                if carrier.failure is not None:
                    why = cause_of(carrier.failure, self.deployment.folder, places=[str(self.state.path)]).text
                    raise RunFailed(f"{carrier.machine.name}: {why}") from carrier.failure

    def _wait(self, watch: Callable[[Run], None]) -> None:
        ends_s = None if self.options.seconds is None else (self.flowing_s or time.monotonic()) + self.options.seconds
        look = Every(STATUS_EVERY_S, self._look)
        while not self._is_over():
            self._over.wait(0.05)
            if ends_s is not None and time.monotonic() >= ends_s:
                break
            look.look()
            self._steering.happen()
            watch(self)

    def _look(self) -> None:
        """Once a second: is all well, how far is it, what is asked for?"""
        assert self.progress is not None
        assert self.spark is not None
        if not self.spark.alive():
            raise RunFailed("Spark has gone")
        self._check_carriers()
        if self.options.measured:
            self.progress.look()
            self._measurements.look()
            if self.advising is not None and self.flowing_s is not None:
                self.advising.look(self.flowed_s(), self.progress, self.crashed)
            self.state.tell("status.json", self.status())
        self.spark.beat()
        self.progress.engine.look_after()
        if self._controlling is not None:
            self._controlling.look_after()
        self._steering.answer()
        if (self.state.path / STOP).exists():
            self._over.set()

    def _end(self, watch: Callable[[Run], None]) -> dict[str, Any]:
        assert self.progress is not None
        assert self.spark is not None
        self.done = done = self._failure is None and self.options.until_done and self.progress.engine.drained()
        self.phase = "stopping"
        self.stopping_s = time.monotonic()
        self.progress.look()
        (self.state.path / STOP).unlink(missing_ok=True)
        assert self._desk is not None
        assert self._controlling is not None
        self._controlling.leave()
        self._desk.leave()
        deadline = time.monotonic() + STOP_S_MAX
        while not self._desk.stopped.wait(0.1) and time.monotonic() < deadline:
            watch(self)
        self.progress.engine.look_after()
        self.progress.look(finally_=True)
        self._measurements.look(finally_=True)
        if self._failure is not None:
            raise RunFailed(self._failure)
        if done:
            self.spark.settle_updates(self.fragments)
        self.phase = "stopped"
        summary = summary_of(self)
        self.state.tell("status.json", self.status())
        if done:
            files = source_files(self.deployment)
            closed = (self.state.read(CLOSING) or {"files": files})["files"]
            self.state.write("finished.json", {"summary": summary, "files": closed})
            if closed != files:
                self.note("files came to the sources when windows were being closed: some may not be in the results")
        return summary

    def _close(self) -> None:
        if self._controlling is not None:
            self._controlling.stop()
        if self._desk is not None:
            self._desk.stop()
        if self.changes is not None:
            self.changes.close()
        for site in self._sites.bodies() if self._sites is not None else ():
            # Without Spark there is nothing left to end in order.
            with nullcontext() if self.spark is None or self.spark.alive() else suppress(Exception):
                site.stop()
        if self.spark is not None:
            self.spark.close()
