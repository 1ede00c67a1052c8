"""What happens? One deployment on Spark, from what is refused at once to the summary at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from weft.bodies.live.advising import Advising
from weft.bodies.live.assembly import assemble
from weft.bodies.live.beginning import runs_already, wait_for_first_batches, wait_until_all_run
from weft.bodies.live.beside import Beside
from weft.bodies.live.changes import Changes
from weft.bodies.live.directory.finding import Finding
from weft.bodies.live.embedded import EmbeddedSites
from weft.bodies.live.ending import end
from weft.bodies.live.every import Every
from weft.bodies.live.failing import RunFailed, failed
from weft.bodies.live.house import House
from weft.bodies.live.meter import Meter
from weft.bodies.live.moves import Asked, Move
from weft.bodies.live.opening import Opening, Options, refuse_house
from weft.bodies.live.parts import Parts
from weft.bodies.live.processes.roll import running
from weft.bodies.live.progress import Progress
from weft.bodies.live.resuming import Removal, keep_parts
from weft.bodies.live.sharing import held_by, to_run
from weft.bodies.live.state import STOP, CannotRun, State
from weft.bodies.live.story_file import StoryFile
from weft.bodies.live.summary import status_of
from weft.model import Deployment, Placement
from weft.model.wishes import By, MoveTo, Wish
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.real_time import real_time_notes
from weft.plan.dataflow.sharing import as_written
from weft.protocol.control import Decisions
from weft.protocol.hosting import Want
from weft.spark.failures.causes import cause_of
from weft.spark.sources import flowing

__all__ = ["Options", "Run"]

STATUS_EVERY_S = 1.0

Housing = Callable[[Deployment, State, Options, Callable[[str], None]], House]
"""Makes who keeps the sites: of a deployment, its state, how it was asked for, and who writes the story."""


class Run:
    """One run of a deployment: the desk's side of it. It knows sites by what they say; who keeps them is its house."""

    def __init__(self, deployment: Deployment, state: Path, options: Options, house: Housing | None = None) -> None:
        state = Path(state).resolve()
        self.options = options
        self.state = State(state, deployment.store.fsync, deployment.channels)
        held = None if options.fresh else held_by(self.state)
        self._beside = Beside() if held is None else held.beside.of_file(as_written(deployment))
        self._control = deployment.control
        self._followed: int | None = None
        self.deployment = deployment = to_run(deployment, self.state, options.fresh, not options.apart)
        self.meter = Meter(deployment)
        self.placement = Placement()
        self.phase = "starting"
        self.done = False  # all was read to the end, with nothing left to go on with
        self.warnings: list[str] = []
        self.notes: list[str] = [*real_time_notes(deployment), *self._beside.notes()]
        self.started_s = time.monotonic()
        self.flowing_s: float | None = None
        self.stopping_s: float | None = None
        self.sites: House | None = None
        self.parts: Parts | None = None
        self._house: Housing = EmbeddedSites if house is None else house
        self._flowed_before_s = 0.0
        self._over = threading.Event()
        self._story: Callable[[str], None] = lambda line: None
        self._opening = Opening(deployment, self.state, options)

    def go(self, watch: Callable[[Run], None] = lambda run: None) -> dict[str, Any]:
        """Run to the end asked for, and give the summary; `watch` is called now and then, to show how it goes."""
        refuse_house(self.deployment, self._house is EmbeddedSites, self.options.apart)
        self.placement = self._opening.look()
        self.state.lock()
        story = None
        try:
            already = self._opening.resume(bool(running(self.state.path)))
            self.notes += self._opening.notes
            if already is not None:
                return already
            story = StoryFile(self.state.path / "story.log")
            self._story = story.write
            for text in self.notes:
                self._story(f"# {text}")
            watch(self)
            parts = self._begin(partial(watch, self))
            self._wait(parts, partial(watch, self))
            return end(self, parts, self.options.until_done, partial(watch, self))
        except CannotRun:
            raise
        except Exception as error:
            raise failed(self, error, self.parts.desk.failure if self.parts is not None else None) from error
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

    def _begin(self, watch: Callable[[], None]) -> Parts:
        self.sites = sites = self._house(self.deployment, self.state, self.options, self._story)
        facts = sites.open(self._is_over)
        changes, wishes = assemble(self.deployment, self.placement, self.state, facts, self._beside)
        self.parts = parts = Parts(self, sites, changes, self._control, self._story)
        parts.start()
        self.phase = "launching"
        found = runs_already(changes, sites)
        parts.desk.start(found)
        look = partial(self._look_on, parts, watch)
        wait_until_all_run(parts.desk, self._is_over, look)
        if self.options.measured:
            wait_for_first_batches(parts.progress, self._rest, look, self.note)
        if not self._is_over():
            # What runs on has flowed meanwhile: then the clock goes on, too.
            goes_on = flowing.flowed_s(self.state.folders) if found else None
            self._flowed_before_s = flowing.let_flow(self.state.folders) if goes_on is None else goes_on
            parts.steering.resume(self._flowed_before_s)
            self.flowing_s = time.monotonic()
            self.phase = "running"
            for wish in wishes:
                self.ask(wish)
        return parts

    def _look_on(self, parts: Parts, watch: Callable[[], None]) -> None:
        """What is done while fragments begin."""
        watch()
        parts.reports.look()
        self._check(parts)
        parts.desk.bring_back(self.crashed)

    def _rest(self) -> bool:
        """Wait a moment; true if it is over."""
        self._over.wait(0.05)
        return self._is_over()

    def _is_over(self) -> bool:
        return self._over.is_set() or (self.parts is not None and self.parts.desk.over.is_set())

    def flowed_s(self) -> float:
        """Seconds that sources have flowed, in earlier starts of this run too."""
        return self._flowed_before_s + (time.monotonic() - self.flowing_s if self.flowing_s else 0.0)

    @property
    def changes(self) -> Changes | None:
        """The plan in force, and what changes it; None before there is one."""
        return None if self.parts is None else self.parts.changes

    @property
    def progress(self) -> Progress | None:
        """How far each fragment is; None before there are any."""
        return None if self.parts is None else self.parts.progress

    @property
    def advising(self) -> Advising | None:
        """What tells rules of what was measured; None where there are none."""
        return None if self.parts is None else self.parts.advising

    @property
    def finding(self) -> Finding | None:
        """What asks the directory; None where there is none."""
        return None if self.parts is None else self.parts.finding

    @property
    def decisions(self) -> Decisions | None:
        """What rules and sites that balance wished; None where none may."""
        return None if self.parts is None else self.parts.decisions

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What runs now."""
        return () if self.parts is None else self.parts.changes.fragments

    @property
    def down(self) -> dict[str, str]:
        """Fragments that do not run at the moment, and why."""
        return {} if self.parts is None else self.parts.desk.down

    @property
    def crashed(self) -> set[str]:
        """Sites that are lost."""
        return self.sites.lost if self.sites else set()

    def add(
        self, plain: Mapping[str, Any], names: tuple[str, ...], reason: str = "asked for", by: By = "person",
        anyway: bool = False,
    ) -> Asked:  # fmt: skip
        """Let queries come, given in plain values; what becomes of them stands in the value returned, in time."""
        assert self.parts is not None, "queries come to a run that has begun"
        return self.parts.adding.add(plain, names, reason, by, anyway)

    def know(self, deployment: Deployment) -> None:
        """Count and tell of the queries of a deployment from now on."""
        assert self.parts is not None, "queries come to a run that has begun"
        self.deployment = self.meter.deployment = deployment
        self.parts.measurements.know(deployment)
        self.parts.controlling.know(deployment)

    def forget(self, queries: Sequence[str]) -> None:
        """Count anew what queries of these names do."""
        self.meter.forget(queries)
        if self.progress is not None:
            self.progress.forget(queries)

    def follow(self) -> None:
        """Know the queries of the plan in force, once no change is under way; the record of the run has them, too."""
        assert self.changes is not None, "a run has a plan once it has begun"
        plan = self.changes.in_force
        # Until a change is over, what may come is known, too: it may be in force at any moment.
        if plan.number == self._followed or any(one.state == "asked" for one in list(self.changes.asked.values())):
            return
        self._followed = plan.number
        keep_parts(self.state, plan.deployment)
        before = {query.name for query in self.deployment.queries}
        self.forget(sorted(before - {query.name for query in plan.deployment.queries}))
        if plan.deployment.queries != self.deployment.queries:
            self.know(plan.deployment)

    def ask(self, wish: Wish) -> Asked:
        """Ask for a change; what becomes of it stands in the value returned, in time."""
        assert self.changes is not None, "changes are asked of a run that has begun"
        return self.changes.ask(wish)

    def move(self, query: str, operator: str, to: str, reason: str = "asked for") -> Move:
        """Ask for a move of one operator; what becomes of it stands in the value returned, in time."""
        return self.ask(MoveTo({f"{query}.{operator}": to}, reason)).moves[0]

    def crash(self, site: str) -> None:
        """Lose a site: its agent and all it runs, at once."""
        assert self.parts is not None, "sites are lost by a run that has begun"
        self.parts.sites.crash(site)
        self.parts.reports.inbox.lose(site)

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Two sites cannot speak for a while."""
        assert self.sites is not None, "sites are cut off from one another in a run that has begun"
        self.sites.partition(one, other, for_s)

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        assert self.parts is not None, "sites come back to a run that has begun"
        self.parts.sites.restart(site)
        for fragment in self.fragments:
            if fragment.site == site:
                self.parts.desk.tell(Want(fragment.id, site))

    def _check(self, parts: Parts) -> None:
        """RunFailed where the desk's machines have failed, or what sites stand on is gone."""
        parts.sites.check()
        carrier = parts.desk.carrier
        if carrier.failure is not None:
            why = cause_of(carrier.failure, self.deployment.folder, places=[str(self.state.path)]).text
            raise RunFailed(f"{carrier.machine.name}: {why}") from carrier.failure

    def _wait(self, parts: Parts, watch: Callable[[], None]) -> None:
        ends_s = None if self.options.seconds is None else (self.flowing_s or time.monotonic()) + self.options.seconds
        look = Every(STATUS_EVERY_S, partial(self._look, parts))
        while not self._is_over():
            self._over.wait(0.05)
            parts.reports.look()
            if ends_s is not None and time.monotonic() >= ends_s:
                break
            look.look()
            parts.adding.look()
            self.follow()
            parts.steering.happen()
            watch()

    def _look(self, parts: Parts) -> None:
        """Once a second: is all well, how far is it, what is asked for?"""
        self._check(parts)
        parts.desk.bring_back(self.crashed)
        if self.options.measured:
            parts.progress.look()
            parts.measurements.look()
            if parts.finding is not None:
                parts.finding.look(parts.changes.in_force.deployment, self.crashed)
            if parts.advising is not None and self.flowing_s is not None:
                parts.advising.look(self.flowed_s(), parts.progress, self.crashed)
            if parts.balancing is not None and self.flowing_s is not None:
                parts.balancing.look()
            if parts.feedback is not None and self.flowing_s is not None:
                parts.feedback.look()
            self.state.tell("status.json", self.status())
        flowing.beat(self.state.folders)
        parts.controlling.look_after()
        parts.steering.answer()
        if (self.state.path / STOP).exists():
            self._over.set()

    def _close(self) -> None:
        if self.parts is not None:
            self.parts.close()
        elif self.sites is not None:
            self.sites.close()
