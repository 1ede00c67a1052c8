"""What is a run to go on from, and what is refused before it starts? Its file, its options, and the state as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.bodies.live import journal
from weft.bodies.live.calibration import known_costs
from weft.bodies.live.identity import identity
from weft.bodies.live.last_run import last_measured
from weft.bodies.live.rates import kept_rates
from weft.bodies.live.resuming import CLOSING, Removal, Resuming
from weft.bodies.live.state import CannotRun, State, why_not_delivered
from weft.model import CrashAt, Deployment, PartitionAt, Placement
from weft.plan import PLANNERS, NoPlacement, counting_hops, place
from weft.plan.observing.measured import with_measured, with_series
from weft.spark.channels.kinds import MIRROR
from weft.spark.fragments.outputs import claims_of
from weft.spark.kafka.client import KafkaTrouble
from weft.spark.kafka.jars import NoJars
from weft.spark.kafka.topics import check_topics
from weft.spark.storage.disk import Damaged
from weft.spec import beside_state


@dataclass(frozen=True, slots=True)
class Options:
    """How a run was asked for."""

    seconds: float | None = None
    until_done: bool = False
    fresh: bool = False
    state: Path | None = None
    measured: bool = True  # off only to find out what measuring costs
    file: Path | None = None  # which the deployment was read from
    apart: bool = False  # sites are processes that others start, and share no folder with the desk


def refuse_house(deployment: Deployment, embedded: bool, apart: bool = False) -> None:
    """Refuse what needs sites in processes of their own, or sites that share no folder, or sites that do."""
    if apart:
        refuse_apart(deployment)
    mirrored = deployment.channels.uses(MIRROR)
    if mirrored and embedded:
        raise CannotRun("channels: `mirror` is for sites in processes of their own: use --processes")
    if not mirrored and any(isinstance(happening, PartitionAt) for happening in deployment.scenario):
        raise CannotRun(
            "scenario: live, `partition` is for sites that share no folder: `channels: {kind: mirror}` and --processes"
        )


def refuse_apart(deployment: Deployment) -> None:
    """Refuse a deployment that sites without a common folder cannot run; CannotRun says what is missing."""
    lacking = []
    if deployment.desk is None:
        lacking.append("`desk`, where the desk listens")
    if deployment.keys is None:
        lacking.append("`keys`, the folder that `weft keys` made")
    lacking += [f"`address` of site {site.name}" for site in deployment.sites if site.address is None]
    if deployment.channels.kind != MIRROR:
        lacking.append("`channels: {kind: mirror}`")
    for query in deployment.queries:
        lacking += [f"`site` of the sink of {query.name}" for sink in query.sinks if sink.site is None]
    if lacking:
        raise CannotRun(f"--apart is for sites that share no folder; the file does not say {', '.join(lacking)}")
    if any(isinstance(happening, CrashAt) for happening in deployment.scenario):
        raise CannotRun("--apart: a desk cannot kill processes of other machines; leave `crash` out of the scenario")
    if deployment.control.share is not None:
        raise CannotRun("--apart: sites of other machines do not know what queries share; leave out `control.share`")
    late = [f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators if one.late]
    if late:
        raise CannotRun(f"--apart: late records of {late[0]} have no site to be kept at; leave out its `late`")


class Opening:
    """What stands before a run: all is looked at before anything is touched."""

    def __init__(self, deployment: Deployment, state: State, options: Options) -> None:
        self.deployment = deployment
        self.state = state
        self.options = options
        self.notes: list[str] = []

    def refuse(self) -> Placement:
        """Refuse all that can be refused without Spark; where everything is to run."""
        if self.options.until_done:
            endless = [source.name for source in self.deployment.sources if source.facts.endless]
            if endless:
                raise CannotRun(f"--until-done never ends with the endless source {', '.join(endless)}: use --seconds")
        if self.deployment.control.place.policy not in PLANNERS:
            raise CannotRun(f"policy {self.deployment.control.place.policy} is not there yet")
        for message in beside_state(self.deployment, str(self.state.path)):
            raise CannotRun(message)
        for claim in claims_of(self.deployment, self.state.folders) if not self.options.apart else ():
            # What is on its way lies beside the folder itself.
            why_not = why_not_delivered(claim.path, claim.hidden) if claim.has_path else None
            if why_not:
                raise CannotRun(
                    f"sink of {claim.sink}: {claim.path}: {why_not}; choose another folder, or let it be written"
                )
        try:
            return place(counting_hops(self._as_measured(), known_costs()[0].hop_ms))
        except NoPlacement as error:
            raise CannotRun(str(error)) from error

    def _as_measured(self) -> Deployment:
        """What to plan by: costs and selectivities of the last run where the file has none, as `weft plan` shows it."""
        known, taken = with_measured(self.deployment, last_measured(self.state.path))
        if self.deployment.control.place.series:
            known, series = with_series(known, kept_rates(self.state))
            taken = (*taken, *series)
        if self.options.fresh or not (self.state.path / journal.FILE).exists():  # else what runs stays where it is
            self.notes = [*(note for note in self.notes if note not in taken), *taken]
        return known

    def _refuse_without_kafka(self) -> None:
        """Refuse topics that are not there, a broker that does not answer, and jars that cannot be had."""
        try:
            self.notes += check_topics(self.deployment)
        except (KafkaTrouble, NoJars) as error:
            raise CannotRun(str(error)) from error

    def would_remove(self) -> Removal:
        """What starting over would remove; CannotRun where it must not."""
        self.refuse()
        with _refused():
            self.state.check_place()
            return self._resuming().removal()

    def _resuming(self) -> Resuming:
        parts = identity(self.deployment)
        return Resuming(self.state, self.deployment, parts, self.options.file, not self.options.apart)

    def look(self) -> Placement:
        """Refuse what can be refused before the state is taken; where everything is to run."""
        placement = self.refuse()
        self._refuse_without_kafka()
        with _refused():
            self._resuming().look(self.options.fresh)
        return placement

    def resume(self, runs: bool = False) -> dict[str, Any] | None:
        """Take up the state as it was left, or start over; a finished run gives its summary again.

        Where sites run on (`runs`) nothing is looked at but whether it is the same file.
        """
        resuming = self._resuming()
        if runs:
            with _refused():
                resuming.join(self.options.fresh)
            return None
        with _refused():
            resuming.look(self.options.fresh)
            if self.options.fresh:
                resuming.start_over()
            already = resuming.open()
        if already is None and not self.options.until_done and self.state.read(CLOSING) is not None:
            raise CannotRun(
                f"{self.state.path} holds a run that was coming to its end, and has begun to close its windows: "
                "finish it with --until-done, or use --fresh to start over"
            )
        self.notes += resuming.notes
        return already


@contextmanager
def _refused() -> Iterator[None]:
    """What is damaged or disagrees is refused like any other wrong input."""
    try:
        yield
    except Damaged as error:
        raise CannotRun(str(error)) from error
