"""What does Spark need before fragments start? A session, for all sites or for one; analysis and recordings."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from pyspark.sql import SparkSession

from weft.model import Deployment
from weft.model.running import MASTER
from weft.plan.dataflow.arrivals import shape_of
from weft.plan.dataflow.event_times import Times
from weft.plan.network.paths import Path as Way
from weft.spark.channels.folders import Folders
from weft.spark.engine import SparkEngine
from weft.spark.flow_start import open_flows
from weft.spark.fragments.analysis import Analysis, analyse
from weft.spark.fragments.draining import RunSettings
from weft.spark.fragments.outputs import sweep_aside
from weft.spark.fragments.wiring import RunContext
from weft.spark.kafka.connector import needs_connector, with_jars
from weft.spark.kafka.topics import real_time_tasks
from weft.spark.measuring.progress import StageTimes
from weft.spark.measuring.task_times import TaskTimes
from weft.spark.session.lent import Lent, let_go
from weft.spark.session.starting import start_session
from weft.spark.sources import recordings
from weft.spark.sources.streams import read_flows
from weft.spark.storage import temporary

SLOW_PER_S = 3000.0
SITES = "sites"


class RunOptions(Protocol):
    """How a run was asked for."""

    @property
    def until_done(self) -> bool:
        """Whether it ends by itself."""

    @property
    def measured(self) -> bool:
        """Whether records are counted on their way."""


@dataclass(slots=True)
class SparkProcess:
    """A session with everything the fragments of one run share."""

    session: SparkSession
    deployment: Deployment
    folders: Folders
    analysis: Analysis
    totals: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    lent: Lent | None = None
    ui: str | None = None
    times: Times = field(default_factory=lambda: Times({}))
    task_times: TaskTimes | None = None

    def engines(
        self, times: Times, between: Callable[[str, str], Way | None], asked: RunOptions
    ) -> Callable[[str], SparkEngine]:
        """What makes the engine of a site, when it starts and each time it comes back."""
        settings = RunSettings(self.session, times, lambda commit: None, asked.until_done, self.totals)
        stages = StageTimes(self.session)
        if any(site.cap for site in self.deployment.sites):
            self.task_times = TaskTimes(self.session)
        self.times = times

        def engine(site: str) -> SparkEngine:
            context = RunContext(self.deployment, self.folders, self.analysis.schemas, measured=asked.measured)
            if self.task_times is not None:
                context = replace(context, worked_s=self.task_times.worked_s)
            bad = {
                one.name: self.bad[one.name]
                for one in self.deployment.sources
                if one.site == site and one.name in self.bad
            }
            return SparkEngine(site, replace(settings, times=self.times), context, between, stages, bad)

        return engine

    def tried(self, deployment: Deployment) -> Analysis:
        """What Spark says of a deployment that has more queries; BadOperator names the first that it refuses."""
        return analyse(self.session, deployment)

    def learn(self, deployment: Deployment, analysis: Analysis, times: Times) -> None:
        """From now on engines that are made anew know these queries."""
        self.deployment, self.analysis, self.times = deployment, analysis, times

    def alive(self, grace_s: float = 0.0) -> bool:
        """Whether Spark's Java process still runs, given a moment to be gone; one of somebody else is taken to."""
        process = getattr(self.session.sparkContext._gateway, "proc", None)
        if process is None:
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        return process.poll() is None

    def close(self) -> None:
        """Let Spark go, or give it back to whoever brought it, unless it is gone already."""
        if self.alive():
            if self.task_times is not None:
                self.task_times.close()
            let_go(self.session, self.lent)


def start(deployment: Deployment, folders: Folders, factors: dict[str, list[tuple[float, float]]]) -> SparkProcess:
    """Start Spark (or a session beside the one that is there), try every operator, lay down recordings."""
    # Java may have been started in another folder than the one that a relative path starts from.
    folders = replace(folders, state=folders.state.resolve())
    record = folders.state / "temporary"
    temporary.sweep(record)
    lent = Lent.now()
    spark, _ = deployment.shared_spark()
    slow = is_slow(deployment, factors)
    sweep_aside(deployment, folders)
    conf = with_jars(spark.conf) if needs_connector(deployment) else spark.conf
    master = with_threads(spark.master or MASTER, real_time_tasks(deployment))
    # Python processes of a Spark that is there serve all whose paths are the same: one more path, and all start anew.
    modules = [deployment.folder] if lent is None or _calls_functions(deployment) else []
    session = start_session(folders.logs, modules, master, conf, record, slow)
    try:
        found = _prepared(session, deployment, folders, lent, [site.name for site in deployment.sites])
        open_flows(deployment, folders, factors)
        return found
    except BaseException:
        let_go(session, lent)
        raise


def _calls_functions(deployment: Deployment) -> bool:
    return any(operator.call is not None for query in deployment.queries for operator in query.operators)


def with_threads(master: str, tasks: int) -> str:
    """A master of this machine with a thread more for every task that never ends; others are their users' to size."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if found is None or not tasks:
        return master
    cores = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    return f"local[{cores + tasks}]"


def is_slow(deployment: Deployment, factors: Mapping[str, Sequence[tuple[float, float]]]) -> bool:
    """True if records come so slowly, also when sources are at their fastest, that Java has little to compile for."""
    if not all(source.facts.timed and source.arrivals is not None for source in deployment.sources):
        return False
    return (
        sum(
            shape_of(source.arrivals).mean_per_s
            * max((factor for _, factor in factors.get(source.name, [])), default=1.0)
            for source in deployment.sources
            if source.arrivals is not None
        )
        <= SLOW_PER_S
    )


def start_site(deployment: Deployment, site: str, folders: Folders, record: Path) -> SparkProcess:
    """Start the Spark of one site, in a process of its own; try every operator, lay down the site's own recordings."""
    folders = replace(folders, state=folders.state.resolve())
    temporary.sweep(record)
    own = deployment.site(site).spark
    conf = {**deployment.spark.conf, **own.conf}
    conf = with_jars(conf) if needs_connector(deployment) else conf
    master = own.master or deployment.spark.master or f"local[{cores_of(len(deployment.sites))}]"
    master = with_threads(master, real_time_tasks(deployment))
    slow = is_slow(deployment, read_flows(folders.flows)["factors"])
    logs = site_logs(folders, site)
    session = start_session(logs, [deployment.folder], master, conf, record, slow)
    try:
        return _prepared(session, deployment, folders, None, (site,))
    except BaseException:
        session.stop()
        raise


def site_logs(folders: Folders, site: str) -> Path:
    """Where the process of a site and its Spark leave their messages."""
    return folders.logs / SITES / quote(site, safe="")


def cores_of(sites: int) -> int:
    """The cores of this machine that each of so many sites has where its Spark is not said."""
    return max(1, (os.cpu_count() or 1) // sites)


def _prepared(
    session: SparkSession, deployment: Deployment, folders: Folders, lent: Lent | None, sites: Collection[str]
) -> SparkProcess:
    """All that fragments at some sites need before the first of them starts."""
    ui = session.sparkContext.uiWebUrl
    found = SparkProcess(session, deployment, folders, analyse(session, deployment), lent=lent, ui=ui)
    for source in deployment.sources:
        if source.facts.recorded and source.site in sites:
            found.totals[source.name] = recordings.record(session, deployment, source, folders)
            found.bad[source.name] = recordings.bad_in_recording(source, folders)
    return found
