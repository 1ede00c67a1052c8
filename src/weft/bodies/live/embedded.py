"""How do all sites of a run live in one process? Over one local Spark, each with an engine and a pool of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from weft.bodies.live.carrier import Tell
from weft.bodies.live.companions import companions_of
from weft.bodies.live.facts import Facts, facts_of, meanings
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.house import Learned, lacking
from weft.bodies.live.machine_state import MachineLook, machine_as_plain
from weft.bodies.live.opening import Options
from weft.bodies.live.processes.roll import running
from weft.bodies.live.site import Companion, SiteBody
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import CannotRun, State
from weft.bodies.live.transport import InProcess
from weft.model import Deployment, MachineState, rate_changes
from weft.plan.dataflow.event_times import Times, carried_times
from weft.plan.network.paths import Paths
from weft.protocol.agents import RunsHere
from weft.spark import process
from weft.spark.engine import SparkEngine
from weft.spark.failures.causes import cause_of
from weft.spark.fragments.analysis import Analysis
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.operators import BadOperator
from weft.spark.kafka.connector import needs_connector


@dataclass(frozen=True, slots=True)
class Tried:
    """A deployment with queries more, as Spark sees it."""

    deployment: Deployment
    analysis: Analysis
    times: Times
    lacks: str | None = None

    @property
    def facts(self) -> Facts:
        """What planning needs to know of it."""
        return facts_of(self.analysis)


class EmbeddedSites:
    """The sites of a run in this process."""

    def __init__(self, deployment: Deployment, state: State, options: Options, story: Tell) -> None:
        self.deployment = deployment
        self.state = state
        self.options = options
        self.spark: process.SparkProcess | None = None
        self.transport = InProcess()
        self._machine = MachineLook(state.path.parent)
        self._story = story
        self._sites: Sites[SparkEngine] | None = None

    @property
    def lost(self) -> set[str]:
        """Sites that are down."""
        return self._sites.lost if self._sites else set()

    @property
    def runs(self) -> dict[str, FragmentRun]:
        """The latest run of each fragment, for tools that look into this process."""
        found: dict[str, FragmentRun] = {}
        for engine in list(self._sites.engines.values()) if self._sites else ():
            for name, run in list(engine.runs.items()):
                if name not in found or found[name].born < run.born:
                    found[name] = run
        return found

    def open(self, over: Callable[[], bool]) -> Facts:
        """Start Spark and try every operator."""
        others = running(self.state.path)
        if others:
            names = ", ".join(f"{site} in process {pid}" for site, pid in others.items())
            raise CannotRun(
                f"sites of {self.state.path} run in processes of their own ({names}): go on with --processes, "
                "or stop them with `weft stop` first"
            )
        self.spark = process.start(self.deployment, self.state.folders, rate_changes(self.deployment.scenario))
        return facts_of(self.spark.analysis)

    def try_out(self, deployment: Deployment) -> Tried:
        """What Spark says of a deployment with queries more; CannotRun where it says no."""
        assert self.spark is not None, "queries come to a Spark that is there"
        if needs_connector(deployment) and not needs_connector(self.deployment):
            raise CannotRun("it needs Spark's connector to Kafka, which this run was started without: start it again")
        try:
            analysis = self.spark.tried(deployment)
        except BadOperator as error:
            raise CannotRun(str(error)) from error
        times = carried_times(deployment, *meanings(deployment, facts_of(analysis)))
        return Tried(deployment, analysis, times, lacking(self.spark.times, times, self.deployment))

    def learn(self, learned: Learned) -> None:
        """Let all sites know more queries."""
        assert isinstance(learned, Tried)
        assert self.spark is not None
        assert self._sites is not None
        self.deployment = learned.deployment
        self.spark.learn(learned.deployment, learned.analysis, learned.times)
        for engine in list(self._sites.engines.values()):
            engine.learn(learned.deployment, learned.analysis.schemas, learned.times)

    def start(self) -> None:
        """Let all sites take orders."""
        assert self.spark is not None, "sites start on a Spark that is there"
        times = carried_times(self.deployment, *meanings(self.deployment, facts_of(self.spark.analysis)))
        engines = self.spark.engines(times, Paths(self.deployment).between, self.options)

        def companions(body: SiteBody) -> list[Companion]:
            return companions_of(body, lambda: self.deployment, self.state, self.transport, self._story)

        self._sites = Sites(self.state, engines, self.transport, self._story, self.options.measured, companions)
        for site in self.deployment.sites:
            self._sites.start(site.name)

    def runs_of(self, site: str) -> tuple[RunsHere, ...]:
        """Nothing runs at a site before its desk is there."""
        return ()

    def comes_back(self, site: str) -> bool:
        """A site that is lost comes back where somebody lets it."""
        return False

    def about(self, site: str) -> dict[str, Any]:
        """Which process a site is: this one."""
        ui = None if self.spark is None or not self.spark.alive() else self.spark.ui
        told = machine_as_plain(self.machine(site))
        return {"pid": os.getpid(), "address": None, "up": site not in self.lost, "spark_ui": ui, "machine": told}

    def machine(self, site: str) -> MachineState:
        """The machine of this process, which is that of every site."""
        return self._machine.now()

    def partition(self, one: str, other: str, for_s: float) -> None:
        """Sites in one process share all they have."""
        raise CannotRun("sites in one process cannot be cut off from one another")

    def crash(self, site: str) -> None:
        """Lose a site: its agent and all it runs, at once."""
        assert self._sites is not None, "sites are lost by a run that has begun"
        self._sites.crash(site)

    def restart(self, site: str) -> None:
        """A lost site comes back, knowing only the epochs it was to remember."""
        assert self._sites is not None, "sites come back to a run that has begun"
        self._sites.start(site)

    def check(self) -> None:
        """RunFailed where Spark is gone, or who carries a site's host has failed."""
        if self.spark is not None and not self.spark.alive():
            raise RunFailed("Spark has gone")
        for carrier in self._sites.carriers() if self._sites else ():
            if carrier.failure is not None:
                why = cause_of(carrier.failure, self.deployment.folder, places=[str(self.state.path)]).text
                raise RunFailed(f"{carrier.machine.name}: {why}") from carrier.failure

    def alive(self, grace_s: float = 0.0) -> bool:
        """Whether Spark is there, given a moment to be gone."""
        return self.spark is None or self.spark.alive(grace_s)

    def close(self) -> None:
        """End all sites, and let Spark go."""
        for site in self._sites.bodies() if self._sites is not None else ():
            # Without Spark there is nothing left to end in order.
            with nullcontext() if self.alive() else suppress(Exception):
                site.stop()
        if self.spark is not None:
            self.spark.close()
