"""What happens? One deployment on Spark: agents at every site, a conductor that wants their fragments, a meter."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.bodies.live.carrier import Carrier
from weft.bodies.live.measure import Meter
from weft.bodies.live.progress import Progress
from weft.bodies.live.site import SiteBody
from weft.bodies.live.state import CannotRun, State, differences, identity
from weft.bodies.live.transport import InProcess
from weft.model import Deployment, Placement
from weft.plan import PLANNERS, NoPlacement, place
from weft.plan.fragments import Fragment, cut
from weft.plan.paths import Paths
from weft.plan.times import carried_times
from weft.protocol.hosting import (
    AllDone,
    AllRunning,
    AllStopped,
    Conductor,
    FragmentIsDown,
    GaveUp,
    Remember,
    Unwant,
    Want,
)
from weft.protocol.machine import Effect
from weft.spark import embedded
from weft.spark.folders import Folders
from weft.spec import passes_through

CONDUCTOR = "conductor"
STATUS_EVERY_S = 0.5
STOP_S_MAX = 60.0
START_S_MAX = 600.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a run was asked for."""

    seconds: float | None = None
    until_done: bool = False
    fresh: bool = False
    state: Path | None = None


class RunFailed(RuntimeError):
    """Something that runs could not go on; the text says what and why."""


class Run:
    """One run of a deployment, embedded: all sites in this process, over one local Spark."""

    def __init__(self, deployment: Deployment, state: Path, options: Options) -> None:
        self.deployment = deployment
        self.options = options
        self.state = State(Folders(state))
        self.meter = Meter(deployment)
        self.placement = Placement()
        self.fragments: tuple[Fragment, ...] = ()
        self.phase = "starting"
        self.warnings: list[str] = []
        self.down: dict[str, str] = {}
        self.started_s = time.monotonic()
        self.flowing_s: float | None = None
        self.sites: dict[str, SiteBody] = {}
        self.spark: embedded.Embedded | None = None
        self.progress: Progress | None = None
        self._running = threading.Event()
        self._over = threading.Event()
        self._stopped = threading.Event()
        self._failure: str | None = None
        self._story: Callable[[str], None] = lambda line: None

    def go(self, watch: Callable[[Run], None] = lambda run: None) -> dict[str, Any]:
        """Run to the end asked for, and give the summary; `watch` is called now and then, to show how it goes."""
        self._refuse_early()
        self.state.lock()
        story = None
        try:
            already = self._resume()
            if already is not None:
                return already
            story = open(self.state.path / "story.log", "a", encoding="utf-8", buffering=1)  # noqa: SIM115
            self._story = _line_writer(story)
            watch(self)
            self._begin(watch)
            self._wait(watch)
            return self._end(watch)
        finally:
            self._close()
            if story is not None:
                story.close()
            self.state.unlock()

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._over.set()

    def _refuse_early(self) -> None:
        """All that can be refused without Spark is refused before it starts."""
        if self.options.until_done:
            endless = [source.name for source in self.deployment.sources if source.format == "rate"]
            if endless:
                raise CannotRun(f"--until-done never ends with the endless source {', '.join(endless)}: use --seconds")
        if self.deployment.control.place.policy not in PLANNERS:
            raise CannotRun(f"policy {self.deployment.control.place.policy} is not there yet")
        for happening in self.deployment.scenario:
            kind = type(happening).__name__.removesuffix("At").lower()
            if kind != "rate":
                raise CannotRun(f"scenario: `{kind}` is not there yet for live runs; there is: rate")
        try:
            self.placement = place(self.deployment)
        except NoPlacement as error:
            raise CannotRun(str(error)) from error

    def _resume(self) -> dict[str, Any] | None:
        """Take up the state as it was left, or start over; a finished run gives its summary again."""
        now = identity(self.deployment, self.placement.as_json())
        if self.options.fresh:
            self.state.clear()
            embedded.clear_sinks(self.deployment)
        before = self.state.read("deployment.json")
        if before is not None:
            changed = differences(before, now)
            if changed:
                lines = "\n  ".join(changed)
                raise CannotRun(f"{self.state.path} holds another deployment:\n  {lines}\nuse --fresh to start over")
        finished = self.state.read("finished.json")
        if finished is not None:
            if finished["files"] != embedded.source_files(self.deployment):
                raise CannotRun(
                    "this run was finished with --until-done, which closed every window, and the sources hold other "
                    "files now: use --fresh to run over all of them"
                )
            return dict(finished["summary"])
        self.state.write("deployment.json", now)
        return None

    def _begin(self, watch: Callable[[Run], None]) -> None:
        self.spark = embedded.start(self.deployment, self.state.folders, self._factors())
        analysis = self.spark.analysis
        for name, bad in self.spark.bad.items():
            self.meter.bad["recording", name] = bad

        def stateful(query: Any, operator: Any) -> bool:
            return f"{query.name}.{operator.name}" in analysis.stateful

        self.fragments = cut(self.deployment, self.placement, stateful, passes_through)
        times = carried_times(self.deployment, stateful, passes_through)
        homes = {stream: fragment.site for fragment in self.fragments for stream in fragment.outputs}
        paths = Paths(self.deployment)
        engine = self.spark.engine(
            self.fragments,
            times,
            lambda stream, site: paths.between(homes[stream], site),
            self.meter.committed,
            self.options.until_done,
        )
        self.progress = Progress(self.meter, engine)
        epochs = self.state.read("epochs.json") or {}
        transport = InProcess()
        lock = threading.Lock()

        def remember(machine: str, fragment: str, epoch: int) -> None:
            with lock:
                epochs.setdefault(machine, {})[fragment] = epoch
                self.state.write("epochs.json", epochs)

        for site in self.deployment.sites:
            body = SiteBody(site.name, epochs.get(site.name, {}), remember, engine, transport, self._story)
            self.sites[site.name] = body
            body.start()

        def perform(effect: Effect) -> None:
            if isinstance(effect, Remember):
                remember(CONDUCTOR, effect.fragment, effect.epoch)
            else:
                self._hear(effect)

        self._conductor = Carrier(Conductor(CONDUCTOR, epochs.get(CONDUCTOR)), transport, perform, self._story)
        self._conductor.start()
        self.phase = "launching"
        for fragment in self.fragments:
            self._conductor.feed(Want(fragment.id, fragment.site))
        deadline = time.monotonic() + START_S_MAX
        while not self._running.wait(0.1) and not self._over.is_set():
            watch(self)
            self._check_carriers()
            if time.monotonic() > deadline:
                raise RunFailed(f"not all fragments were running after {START_S_MAX:.0f} s")
        if not self._over.is_set():
            self.flowing_s = time.monotonic()
            self.spark.let_flow()
            self.phase = "running"

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
                if self.phase not in ("stopping", "stopped"):
                    self._failure = f"{fragment}: {reason}"
                    self._over.set()

    def _check_carriers(self) -> None:
        for carrier in (self._conductor, *(site.carrier for site in self.sites.values())):
            if carrier.failure is not None:
                raise RunFailed(f"{carrier.machine.name}: {carrier.failure}") from carrier.failure

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
                self.progress.look()
                self._check_carriers()
                self.state.write("status.json", self.status())
                self.spark.beat()
                if (self.state.path / "stop").exists():
                    break
            watch(self)

    def _end(self, watch: Callable[[Run], None]) -> dict[str, Any]:
        assert self.progress is not None
        assert self.spark is not None
        done = self._failure is None and self.options.until_done and all(
            run.drained() for run in self.progress.engine.runs.values()
        )
        self.phase = "stopping"
        self.progress.look()
        (self.state.path / "stop").unlink(missing_ok=True)
        for fragment in self.fragments:
            self._conductor.feed(Unwant(fragment.id))
        deadline = time.monotonic() + STOP_S_MAX
        while not self._stopped.wait(0.1) and time.monotonic() < deadline:
            watch(self)
        self.progress.look()
        if self._failure is not None:
            self.phase = "failed"
            self.state.write("status.json", {**self.status(), "reason": self._failure})
            raise RunFailed(self._failure)
        if done:
            self.spark.settle_updates(self.fragments)
        self.phase = "stopped"
        summary = self.summary()
        self.state.write("status.json", self.status())
        if done:
            self.state.write(
                "finished.json", {"summary": summary, "files": embedded.source_files(self.deployment)}
            )
        return summary

    def _close(self) -> None:
        if hasattr(self, "_conductor"):
            self._conductor.stop()
        for site in self.sites.values():
            site.stop()
        if self.spark is not None:
            self.spark.close()

    def status(self) -> dict[str, Any]:
        """What `weft status` shows: the summary so far, and how each fragment is doing."""
        return {
            "phase": self.phase,
            "at": time.time(),
            **self.summary(),
            "rates_per_s": {
                query.name: round(sum(self.meter.rate_per_s(name) for name in self._sinks(query.name)), 1)
                for query in self.deployment.queries
            },
            "backlog": {query.name: self._backlog(query.name) for query in self.deployment.queries},
            "down": self.down,
        }

    def _sinks(self, query: str) -> list[str]:
        return [sink for fragment in self.fragments if fragment.query == query for sink in fragment.sinks]

    def _backlog(self, query: str) -> int:
        return 0 if self.progress is None else self.progress.backlog_of_query(query)

    def summary(self) -> dict[str, Any]:
        """The contract's JSON: as the twin's, measured, plus fragments."""
        fragments = {
            fragment.id: {
                "site": fragment.site,
                "query": fragment.query,
                "operators": list(fragment.operators),
                "stateful": fragment.stateful,
                "reads": list(fragment.inputs),
                "writes": [*fragment.outputs, *(f"sink {name}" for name in fragment.sinks)],
                **(self.progress.fragment(fragment.id) if self.progress else {}),
            }
            for fragment in self.fragments
        }
        return {
            "queries": {query.name: self.meter.query(query) for query in self.deployment.queries},
            "sites": self.progress.sites(self.deployment, self.flowing_s) if self.progress else {},
            "moves": [],
            "events": self.meter.commits,
            "wall_s": round(time.monotonic() - self.started_s, 3),
            "warnings": self.warnings,
            "placement": self.placement.as_json(),
            "fragments": fragments,
        }


def _line_writer(file: Any) -> Callable[[str], None]:
    lock = threading.Lock()

    def write(line: str) -> None:
        with lock:
            if not file.closed:
                file.write(line + "\n")

    return write


def read_json(path: Path) -> Any:
    """A JSON file, None where it is absent."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
