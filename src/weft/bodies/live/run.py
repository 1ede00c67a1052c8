"""What happens? One deployment on Spark, from what is refused at once to the summary at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from weft.bodies.live.adding import Adding
from weft.bodies.live.advising import Advising
from weft.bodies.live.assembly import assemble
from weft.bodies.live.balancing.desk import DeskBalancing
from weft.bodies.live.beside import Beside
from weft.bodies.live.changes import Changes
from weft.bodies.live.controlling import THE_END, Controlling
from weft.bodies.live.decision_file import DecisionFile
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.directory.finding import Finding
from weft.bodies.live.embedded import EmbeddedSites
from weft.bodies.live.every import Every
from weft.bodies.live.failing import RunFailed, failed
from weft.bodies.live.feedback.desk import DeskFeedback
from weft.bodies.live.house import House
from weft.bodies.live.measure import Meter
from weft.bodies.live.measurements import Measurements
from weft.bodies.live.moves import Asked, Move
from weft.bodies.live.opening import Opening, Options, refuse_house
from weft.bodies.live.processes.roll import running
from weft.bodies.live.progress import Progress
from weft.bodies.live.reports import Reports
from weft.bodies.live.resuming import CLOSING, Removal, keep_parts, note_closing, source_files
from weft.bodies.live.sharing import held_by, to_run
from weft.bodies.live.site import cut_of
from weft.bodies.live.state import STOP, CannotRun, State
from weft.bodies.live.steering import Steering
from weft.bodies.live.story_file import StoryFile
from weft.bodies.live.summary import status_of, summary_of
from weft.model import Deployment, Placement, sink_name
from weft.model.wishes import By, MoveTo, Wish
from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.real_time import real_time_notes
from weft.plan.dataflow.sharing import as_written, is_on
from weft.protocol.control import Decisions, looks_every_s
from weft.protocol.hosting import Want
from weft.protocol.reporting import Committed, Event
from weft.spark.failures.causes import cause_of
from weft.spark.sources import flowing
from weft.spark.sources.taken import changed_notes

__all__ = ["Options", "Run"]

STATUS_EVERY_S = 1.0
STOP_S_MAX = 60.0
START_S_MAX = 600.0
FIRST_BATCHES_S_MAX = 30.0
HEARD_S_MAX = 5.0

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
        self._adding = Adding(self, deployment.control)
        self._followed: int | None = None
        self.deployment = deployment = to_run(deployment, self.state, options.fresh)
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
        self._house: Housing = EmbeddedSites if house is None else house
        self.changes: Changes | None = None
        self.progress: Progress | None = None
        self._flowed_before_s = 0.0
        self._over = threading.Event()
        self._desk: DeskBody | None = None
        self._reports: Reports | None = None
        self._story: Callable[[str], None] = lambda line: None
        self._opening = Opening(deployment, self.state, options)
        self._steering = Steering(self)
        self._measurements = Measurements(self, self.state.path)
        self._controlling: Controlling | None = None
        self.advising: Advising | None = None
        self.finding: Finding | None = None
        self._balancing: DeskBalancing | None = None
        self._feedback: DeskFeedback | None = None

    def go(self, watch: Callable[[Run], None] = lambda run: None) -> dict[str, Any]:
        """Run to the end asked for, and give the summary; `watch` is called now and then, to show how it goes."""
        refuse_house(self.deployment, self._house is EmbeddedSites)
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
        self.sites = sites = self._house(self.deployment, self.state, self.options, self._story)
        transport = sites.transport
        facts = sites.open(self._is_over)
        self.changes, wishes = assemble(self.deployment, self.placement, self.state, facts, self._beside)
        self.changes.clock_s = self.flowed_s
        self._reports = Reports(transport, self._heard, partial(note_closing, self.state, self.deployment), self._story)
        self._reports.start()
        if is_on(self.deployment):
            self.finding = Finding(transport, self._story)
            self.finding.start()
        self.progress = Progress(self.meter, lambda: self.fragments, self._reports.inbox, self.state, self._committed)
        sites.start()
        self._desk = desk = DeskBody(self.changes, transport, self._story, self._comes_back)
        if looks_every_s(self.deployment) is not None:
            self.advising = Advising(self.deployment, self.meter, self._in_force, transport, self._story, sites.machine)
            self.advising.grant = self.changes.ask
        self._controlling = self.advising or Controlling(self.deployment, self._in_force, transport, self._story)
        self._controlling.decisions.note = DecisionFile(self.state.path).write
        if (balance := self.deployment.control.balance) is not None:
            advises = self.deployment.control.advise is not None
            self._balancing = DeskBalancing(
                balance, self.changes, self._controlling, self._reports, lambda text: self._story(f"# {text}"), advises
            )
        if self.deployment.control.relief is not None:
            self._feedback = DeskFeedback(self.changes, self._reports)
        self._controlling.tell_desk, self.changes.hand_on = desk.tell, self._controlling.wish
        self._controlling.start()
        self.phase = "launching"
        found = self._found()
        desk.start(found)
        deadline = time.monotonic() + START_S_MAX
        while not desk.running.wait(0.1) and not self._is_over():
            watch(self)
            self._reports.look()
            self._check()
            desk.bring_back(self.crashed)
            if time.monotonic() > deadline:
                why = (
                    "; ".join(f"{name}: {reason}" for name, reason in sorted(self.down.items())) or "no reason is known"
                )
                raise RunFailed(f"not all fragments were running after {START_S_MAX:.0f} s ({why})")
        self._wait_for_first_batches(watch)
        if not self._is_over():
            # What runs on has flowed meanwhile: then the clock goes on, too.
            goes_on = flowing.flowed_s(self.state.folders) if found else None
            self._flowed_before_s = flowing.let_flow(self.state.folders) if goes_on is None else goes_on
            self._steering.resume(self._flowed_before_s)
            self.flowing_s = time.monotonic()
            self.phase = "running"
            for wish in wishes:
                self.ask(wish)

    def _found(self) -> tuple[tuple[str, int], ...]:
        """What runs already as the plan in force has it, each under its epoch."""
        assert self.changes is not None
        assert self.sites is not None
        found = []
        for fragment in self.fragments:
            cut = cut_of(fragment, self.changes.generations.get(fragment.id, 0))
            runs = self.sites.runs_of(fragment.site)
            found += [(one.fragment, one.epoch) for one in runs if (one.fragment, one.cut) == (fragment.id, cut)]
        return tuple(found)

    def _wait_for_first_batches(self, watch: Callable[[Run], None]) -> None:
        """Let every fragment be through with its first batch, which is slow, before sources begin to flow."""
        assert self.progress is not None
        assert self._reports is not None
        assert self._desk is not None
        deadline = time.monotonic() + FIRST_BATCHES_S_MAX
        while self.options.measured and not self.progress.begun() and not self._is_over():
            self._over.wait(0.05)
            watch(self)
            self._reports.look()
            self._check()
            self._desk.bring_back(self.crashed)
            if time.monotonic() > deadline:
                self.note(f"not all fragments were through with a first batch after {FIRST_BATCHES_S_MAX:.0f} s")
                return

    def _heard(self, site: str, life: str, event: Event, now_ms: float) -> None:
        assert self.progress is not None
        self.progress.hear(site, life, event, now_ms)

    @property
    def decisions(self) -> Decisions | None:
        """What rules and sites that balance wished; None where none may."""
        if self._controlling is None or (self.advising is None and self._balancing is None):
            return None
        return self._controlling.decisions

    def _in_force(self) -> Placement:
        return self.changes.placement if self.changes is not None else self.placement

    def _is_over(self) -> bool:
        return self._over.is_set() or (self._desk is not None and self._desk.over.is_set())

    def _comes_back(self, site: str, silent: bool) -> bool:
        """True if a site is silent or lost, and may be heard of again, or the scenario has its return in store."""
        assert self.sites is not None
        lost = site in self.crashed
        return ((silent or lost) and self.sites.comes_back(site)) or (lost and self._steering.comes_back(site))

    def _committed(self, commit: Committed) -> None:
        if self.changes is not None:
            self.changes.committed(commit.fragment, commit.committed_ms)

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
        return self.sites.lost if self.sites else set()

    @property
    def _failure(self) -> str | None:
        return self._desk.failure if self._desk else None

    def add(
        self, plain: Mapping[str, Any], names: tuple[str, ...], reason: str = "asked for", by: By = "person",
        anyway: bool = False,
    ) -> Asked:  # fmt: skip
        """Let queries come, given in plain values; what becomes of them stands in the value returned, in time."""
        return self._adding.add(plain, names, reason, by, anyway)

    def know(self, deployment: Deployment) -> None:
        """Count and tell of the queries of a deployment from now on."""
        self.deployment = self.meter.deployment = deployment
        self._measurements.know(deployment)
        if self._controlling is not None:
            self._controlling.know(deployment)

    def forget(self, queries: Sequence[str]) -> None:
        """Count anew what queries of these names do."""
        self.meter.forget(queries)
        if self.progress is not None:
            self.progress.forget(queries)

    def _follow(self) -> None:
        """Know the queries of the plan in force, once no change is under way; the record of the run has them, too."""
        assert self.changes is not None
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
        assert self.sites is not None, "sites are lost by a run that has begun"
        assert self._reports is not None
        self.sites.crash(site)
        self._reports.inbox.lose(site)

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Two sites cannot speak for a while."""
        assert self.sites is not None, "sites are cut off from one another in a run that has begun"
        self.sites.partition(one, other, for_s)

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        assert self.sites is not None, "sites come back to a run that has begun"
        assert self._desk is not None
        self.sites.restart(site)
        for fragment in self.fragments:
            if fragment.site == site:
                self._desk.tell(Want(fragment.id, site))

    def _check(self) -> None:
        """RunFailed where the desk's machines have failed, or what sites stand on is gone."""
        assert self.sites is not None
        self.sites.check()
        carrier = self._desk.carrier if self._desk else None
        if carrier is not None and carrier.failure is not None:
            why = cause_of(carrier.failure, self.deployment.folder, places=[str(self.state.path)]).text
            raise RunFailed(f"{carrier.machine.name}: {why}") from carrier.failure

    def _wait(self, watch: Callable[[Run], None]) -> None:
        ends_s = None if self.options.seconds is None else (self.flowing_s or time.monotonic()) + self.options.seconds
        look = Every(STATUS_EVERY_S, self._look)
        assert self._reports is not None
        while not self._is_over():
            self._over.wait(0.05)
            self._reports.look()
            if ends_s is not None and time.monotonic() >= ends_s:
                break
            look.look()
            self._adding.look()
            self._follow()
            self._steering.happen()
            watch(self)

    def _look(self) -> None:
        """Once a second: is all well, how far is it, what is asked for?"""
        assert self.progress is not None
        assert self._desk is not None
        self._check()
        self._desk.bring_back(self.crashed)
        if self.options.measured:
            self.progress.look()
            self._measurements.look()
            if self.finding is not None and self.changes is not None:
                self.finding.look(self.changes.in_force.deployment, self.crashed)
            if self.advising is not None and self.flowing_s is not None:
                self.advising.look(self.flowed_s(), self.progress, self.crashed)
            if self._balancing is not None and self.flowing_s is not None:
                self._balancing.look()
            if self._feedback is not None and self.flowing_s is not None:
                self._feedback.look()
            self.state.tell("status.json", self.status())
        flowing.beat(self.state.folders)
        if self._controlling is not None:
            self._controlling.look_after()
        self._steering.answer()
        if (self.state.path / STOP).exists():
            self._over.set()

    def _end(self, watch: Callable[[Run], None]) -> dict[str, Any]:
        assert self.progress is not None
        assert self._reports is not None
        assert self._desk is not None
        assert self._controlling is not None
        self.done = done = self._all_done()
        self.phase = "stopping"
        self.stopping_s = time.monotonic()
        self._reports.look()
        self.progress.look()
        (self.state.path / STOP).unlink(missing_ok=True)
        self._adding.leave(THE_END)
        self._controlling.leave()
        self._desk.leave()
        deadline = time.monotonic() + STOP_S_MAX
        while not self._desk.stopped.wait(0.1) and time.monotonic() < deadline:
            watch(self)
            self._reports.look()
        silent = self._reports.ask({site.name for site in self.deployment.sites} - self.crashed)
        if silent and self._failure is None:
            self.note(f"{', '.join(sorted(silent))} did not tell all that was measured: some numbers are too low")
        self._follow()
        self.progress.look()
        self._measurements.look(finally_=True)
        if self._failure is not None:
            raise RunFailed(self._failure)
        self._tell_changed_files()
        if done:
            self._settle()
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

    def _tell_changed_files(self) -> None:
        """Say which users' files have grown since they were read: what was added to them is in no result."""
        assert self.changes is not None
        generations, folders = self.changes.generations, self.state.folders
        paths = [folders.checkpoint(one.id, generations.get(one.id, 0)) for one in self.fragments]
        for text in changed_notes(paths, self.state.path):
            if text not in self.notes:
                self.note(text)

    def _all_done(self) -> bool:
        """True if all was read to the end, by the desk's machines, and no site's last report says otherwise.

        The machines count every fragment in force, each in its present epoch: one that has drained while one before it
        has not counts for nothing. A change under way, or a fragment that failed since, takes back what they said.
        """
        assert self.progress is not None
        assert self._reports is not None
        assert self._desk is not None
        if self._failure is not None or not self.options.until_done or not self._desk.all_done:
            return False
        deadline = time.monotonic() + HEARD_S_MAX
        while self.progress.undrained() and time.monotonic() < deadline:
            time.sleep(0.02)
            self._reports.look()
        return self._desk.all_done and not self.progress.undrained()

    def _settle(self) -> None:
        """Leave the last values in sinks of update mode: where what writes them has run."""
        assert self._reports is not None
        updated = {
            sink_name(query, sink)
            for query in self.deployment.queries
            for sink in query.sinks
            if sink.mode == "update" and sink.path is not None
        }
        homes: dict[str, tuple[str, ...]] = {}
        for fragment in self.fragments:
            names = tuple(name for name in fragment.sinks if name in updated)
            if names:
                homes[fragment.site] = (*homes.get(fragment.site, ()), *names)
        for site, why in self._reports.settle(homes).items():
            raise RunFailed(f"the sinks of site {site} hold all results, but not yet only the last of each key: {why}")

    def _close(self) -> None:
        self._adding.stop()
        if self._controlling is not None:
            self._controlling.stop()
        if self._desk is not None:
            self._desk.stop()
        if self.changes is not None:
            self.changes.close()
        if self.sites is not None:
            self.sites.close()
        if self._reports is not None:
            self._reports.stop()
        if self.finding is not None:
            self.finding.stop()
