"""What happens? One deployment on Spark: agents at every site, a conductor that wants their fragments, a meter."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.bodies.live.carrier import Carrier
from weft.bodies.live.changes import Changes, Move
from weft.bodies.live.failing import RunFailed, failed
from weft.bodies.live.measure import Meter
from weft.bodies.live.measurements import Measurements
from weft.bodies.live.progress import Progress
from weft.bodies.live.resuming import Removal, Resuming, source_files
from weft.bodies.live.site import SiteBody
from weft.bodies.live.state import STOP, CannotRun, State, identity, why_not_writable
from weft.bodies.live.steering import Steering
from weft.bodies.live.summary import status_of, summary_of
from weft.bodies.live.transport import InProcess
from weft.bodies.live.valid import valid
from weft.model import Deployment, Operator, PartitionAt, Placement, Query
from weft.plan import PLANNERS, NoPlacement, counting_hops, place
from weft.plan.changing.fragments import Fragment, cut
from weft.plan.dataflow.event_times import carried_times, passes_by_sql
from weft.plan.dataflow.graph import stream_of
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.network.paths import Path as Way
from weft.plan.network.paths import Paths
from weft.protocol.hosting import AllDone, AllRunning, AllStopped, FragmentIsDown, GaveUp, Remember, Want
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import Desk, InForce, Leave
from weft.spark import embedded
from weft.spark.failures.causes import cause_of
from weft.spark.fragments.outputs import Commit
from weft.spark.storage.disk import Damaged

CONDUCTOR = "conductor"
STATUS_EVERY_S = 1.0
STOP_S_MAX = 60.0
START_S_MAX = 600.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a run was asked for."""

    seconds: float | None = None
    until_done: bool = False
    fresh: bool = False
    state: Path | None = None
    measured: bool = True  # off only to find out what measuring costs


class Run:
    """One run of a deployment, embedded: all sites in this process, over one local Spark."""

    def __init__(self, deployment: Deployment, state: Path, options: Options) -> None:
        state = Path(state).resolve()
        self.deployment = deployment = with_ordering(valid(deployment))
        self.options = options
        self.state = State(state, deployment.store.fsync)
        self.meter = Meter(deployment)
        self.placement = Placement()
        self.changes: Changes | None = None
        self.phase = "starting"
        self.done = False  # all was read to the end, with nothing left to go on with
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.down: dict[str, str] = {}
        self.started_s = time.monotonic()
        self.flowing_s: float | None = None
        self.stopping_s: float | None = None
        self._flowed_before_s = 0.0
        self.sites: dict[str, SiteBody] = {}
        self.spark: embedded.Embedded | None = None
        self.progress: Progress | None = None
        self._running = threading.Event()
        self._over = threading.Event()
        self._stopped = threading.Event()
        self._failure: str | None = None
        self._story: Callable[[str], None] = lambda line: None
        self._transport = InProcess()
        self._desk: Carrier | None = None
        self._epochs: dict[str, dict[str, int]] = {}
        self._memory = threading.Lock()
        self.crashed: set[str] = set()
        self._steering = Steering(self)
        self._measurements = Measurements(self, self.state.path)

    def go(self, watch: Callable[[Run], None] = lambda run: None) -> dict[str, Any]:
        """Run to the end asked for, and give the summary; `watch` is called now and then, to show how it goes."""
        self._refuse_early()
        resuming = self._resuming()
        with _refused():
            resuming.look(self.options.fresh)
        self.state.lock()
        story = None
        try:
            already = self._resume(resuming)
            if already is not None:
                return already
            story = open(self.state.path / "story.log", "a", encoding="utf-8", buffering=1)  # noqa: SIM115
            self._story = _line_writer(story)
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
            with suppress(OSError):
                if story is not None:
                    story.close()
            self.state.unlock()

    def status(self) -> dict[str, Any]:
        """How it is doing right now."""
        return status_of(self)

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._over.set()

    def _refuse_early(self) -> None:
        """All that can be refused without Spark is refused before it starts."""
        if self.options.until_done:
            endless = [source.name for source in self.deployment.sources if source.facts.endless]
            if endless:
                raise CannotRun(f"--until-done never ends with the endless source {', '.join(endless)}: use --seconds")
        if self.deployment.control.place.policy not in PLANNERS:
            raise CannotRun(f"policy {self.deployment.control.place.policy} is not there yet")
        if any(isinstance(happening, PartitionAt) for happening in self.deployment.scenario):
            raise CannotRun("scenario: `partition` is not there yet live; there are: move, rate, crash, restart")
        for query in self.deployment.queries:
            for sink in query.sinks:
                where = None if sink.path is None else Path(self.deployment.folder, sink.path).expanduser().absolute()
                why_not = None if where is None else why_not_writable(where)
                if why_not:
                    raise CannotRun(f"sink of {query.name}: {where}: {why_not}")
        try:
            self.placement = place(counting_hops(self.deployment))
        except NoPlacement as error:
            raise CannotRun(str(error)) from error

    def would_remove(self) -> Removal:
        """What starting over would remove; CannotRun where it must not."""
        self._refuse_early()
        with _refused():
            self.state.check_place()
            return self._resuming().removal()

    def _resuming(self) -> Resuming:
        return Resuming(self.state, self.deployment, identity(self.deployment, self.placement.as_json()))

    def _resume(self, resuming: Resuming) -> dict[str, Any] | None:
        """Take up the state as it was left, or start over; a finished run gives its summary again."""
        with _refused():
            resuming.look(self.options.fresh)
            if self.options.fresh:
                resuming.start_over()
            already = resuming.open()
        self.notes += resuming.notes
        return already

    def note(self, text: str) -> None:
        """Tell whoever watches, and the story, of something that is good to know."""
        self.notes.append(text)
        self._story(f"# {text}")

    def _begin(self, watch: Callable[[Run], None]) -> None:
        self.spark = embedded.start(self.deployment, self.state.folders, self._factors())
        analysis = self.spark.analysis
        for name, bad in self.spark.bad.items():
            self.meter.bad["recording", name] = bad

        def stateful(query: Any, operator: Any) -> bool:
            return f"{query.name}.{operator.name}" in analysis.stateful

        def passes(query: Query, operator: Operator, name: str, column: str) -> bool:
            # Without state a function of several streams can only unite them: it is as far as the slowest.
            if operator.call is not None and len(operator.from_) > 1:
                return column.partition(".")[0] in analysis.schemas[stream_of(query, name)].names
            return passes_by_sql(query, operator, name, column)

        fragments = cut(self.deployment, self.placement, stateful, passes)
        times = carried_times(self.deployment, stateful, passes)
        paths = Paths(self.deployment)

        def way(stream: str, site: str) -> Way | None:
            return paths.between(engine.homes[stream], site)

        engine = self.spark.engine(fragments, times, way, self._committed, self.options)
        self.changes = Changes(self.deployment, self.state, engine, (stateful, passes))
        self.changes.clock_s = self.flowed_s
        self.changes.begin(self.placement, fragments)
        self.progress = Progress(self.meter, engine, self.state)
        self._epochs = self.state.read("epochs.json") or {}
        for site in self.deployment.sites:
            self._start_site(site.name)
        desk = Desk(CONDUCTOR, self._epochs.get(CONDUCTOR))
        self._desk = Carrier(desk, self._transport, self._perform, self._story)
        self.changes.feed = self._desk.feed
        self._desk.start()
        self.phase = "launching"
        self._tell(InForce(self.changes.number, self.changes.starts()))
        deadline = time.monotonic() + START_S_MAX
        while not self._running.wait(0.1) and not self._over.is_set():
            watch(self)
            self._check_carriers()
            if time.monotonic() > deadline:
                raise RunFailed(f"not all fragments were running after {START_S_MAX:.0f} s")
        if not self._over.is_set():
            self._flowed_before_s = self.spark.let_flow()
            self._steering.resume(self._flowed_before_s)
            self.flowing_s = time.monotonic()
            self.phase = "running"

    def _start_site(self, name: str) -> None:
        assert self.progress is not None
        remembered = self._epochs.get(name, {})
        body = SiteBody(name, remembered, self._remember, self.progress.engine, self._transport, self._story)
        self.sites[name] = body
        body.start()

    def _tell(self, fact: Input) -> None:
        assert self._desk is not None
        self._desk.feed(fact)

    def _remember(self, machine: str, fragment: str, epoch: int) -> None:
        with self._memory:
            self._epochs.setdefault(machine, {})[fragment] = epoch
            self.state.write("epochs.json", self._epochs)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Remember):
            self._remember(CONDUCTOR, effect.fragment, effect.epoch)
        elif self.changes is None or not self.changes.perform(effect):
            self._hear(effect)

    def _committed(self, commit: Commit) -> None:
        self.meter.committed(commit)
        if self.changes is not None:
            self.changes.committed(commit)

    def flowed_s(self) -> float:
        """Seconds that sources have flowed, in earlier starts of this run too."""
        return self._flowed_before_s + (time.monotonic() - self.flowing_s if self.flowing_s else 0.0)

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What runs now."""
        return self.changes.fragments if self.changes else ()

    def move(self, query: str, operator: str, to: str, reason: str = "asked for") -> Move:
        """Ask for a move; what becomes of it stands in the value returned, in time."""
        assert self.changes is not None, "moves are asked of a run that has begun"
        return self.changes.ask(query, operator, to, reason)

    def crash(self, site: str) -> None:
        """Lose a site: its agent and all it runs, at once."""
        self.crashed.add(site)
        self.sites.pop(site).crash()

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        self._start_site(site)
        self.crashed.discard(site)
        for fragment in self.fragments:
            if fragment.site == site:
                self._tell(Want(fragment.id, site))

    def _factors(self) -> dict[str, list[tuple[float, float]]]:
        factors: dict[str, list[tuple[float, float]]] = {}
        for happening in self.deployment.scenario:
            for source, factor in getattr(happening, "rate", {}).items():
                factors.setdefault(source, []).append((happening.at_s, factor))
        return factors

    def _hear(self, effect: Effect) -> None:
        match effect:
            case AllRunning():
                self._running.set()
                self.down.clear()
            case AllDone():
                self._running.set()
                self._over.set()
            case AllStopped():
                self._stopped.set()
            case FragmentIsDown(fragment=fragment, reason=reason):
                self.down[fragment] = reason
            case GaveUp(fragment=fragment, reason=reason):
                home = next((one.site for one in self.fragments if one.id == fragment), None)
                if home in self.crashed and self._steering.comes_back(home):
                    self.down[fragment] = reason
                elif self.phase not in ("stopping", "stopped"):
                    self._failure = f"{fragment}: {reason}"
                    self._over.set()

    def _check_carriers(self) -> None:
        for carrier in (self._desk, *(site.carrier for site in self.sites.values())):
            if carrier is not None and carrier.failure is not None:
                why = cause_of(carrier.failure, self.deployment.folder, places=[str(self.state.path)]).text
                raise RunFailed(f"{carrier.machine.name}: {why}") from carrier.failure

    def _wait(self, watch: Callable[[Run], None]) -> None:
        assert self.progress is not None
        assert self.spark is not None
        ends_s = None if self.options.seconds is None else (self.flowing_s or time.monotonic()) + self.options.seconds
        next_status = 0.0
        while not self._over.wait(0.05):
            now = time.monotonic()
            if ends_s is not None and now >= ends_s:
                break
            if now >= next_status:
                next_status = now + STATUS_EVERY_S
                if not self.spark.alive():
                    raise RunFailed("Spark has gone")
                self._check_carriers()
                if self.options.measured:
                    self.progress.look()
                    self._measurements.look()
                    self.state.tell("status.json", self.status())
                self.spark.beat()
                self.progress.engine.look_after()
                self.progress.engine.nudge()
                self._steering.answer()
                if (self.state.path / STOP).exists():
                    break
            self._steering.happen()
            watch(self)

    def _end(self, watch: Callable[[Run], None]) -> dict[str, Any]:
        assert self.progress is not None
        assert self.spark is not None
        self.done = done = (
            self._failure is None
            and self.options.until_done
            and all(run.drained() for run in self.progress.engine.runs.values())
        )
        self.phase = "stopping"
        self.stopping_s = time.monotonic()
        self.progress.look()
        (self.state.path / STOP).unlink(missing_ok=True)
        self._tell(Leave())
        deadline = time.monotonic() + STOP_S_MAX
        while not self._stopped.wait(0.1) and time.monotonic() < deadline:
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
            self.state.write("finished.json", {"summary": summary, "files": source_files(self.deployment)})
        return summary

    def _close(self) -> None:
        if self._desk is not None:
            self._desk.stop()
        if self.changes is not None:
            self.changes.close()
        for site in self.sites.values():
            # Without Spark there is nothing left to end in order.
            with nullcontext() if self.spark is None or self.spark.alive() else suppress(Exception):
                site.stop()
        if self.spark is not None:
            self.spark.close()


@contextmanager
def _refused() -> Iterator[None]:
    """What is damaged or disagrees is refused like any other wrong input."""
    try:
        yield
    except Damaged as error:
        raise CannotRun(str(error)) from error


def _line_writer(file: Any) -> Callable[[str], None]:
    lock = threading.Lock()

    def write(line: str) -> None:
        # A disk without room is told by who cannot do without it.
        with lock, suppress(OSError):
            if not file.closed:
                file.write(line + "\n")

    return write
