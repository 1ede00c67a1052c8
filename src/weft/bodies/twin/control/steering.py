"""What is done to a run of the twin, and who does it? Scenario, agents and desk, between the record plane's events.

Every operator is a fragment of its own. The desk (conductor and mover) stands at the first site of the deployment and
does not crash; hosts crash and restart with their sites. A move pauses its operator from its clean end until it is
launched at the new site, which takes 20 ms a record that waits for it, or where it has state, as long as that takes
over the links; that a site makes ready and carries over what will start there is said and done in no time. What waits
travels along; what is under way to the old site is forwarded. Where sites balance, their balancers ask for moves; where
operators scale, their instances ask for more or fewer. All wishes go through `changes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from weft.bodies.twin.control.balancing import Balancing
from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import CONTROLLER, DESK, Changes
from weft.bodies.twin.control.delays import Delays
from weft.bodies.twin.control.hosting import Hosting
from weft.bodies.twin.control.observing import Advising
from weft.bodies.twin.control.scaling import MARK as SCALE_MARK
from weft.bodies.twin.control.scaling import Scaling as Autoscaling
from weft.bodies.twin.control.wishing import Wishing
from weft.bodies.twin.records import Records, Scaling, TimedWish, names_of
from weft.model import (
    AddAt,
    Control,
    CrashAt,
    Deployment,
    MoveAt,
    PartitionAt,
    Placement,
    RemoveAt,
    RestartAt,
)
from weft.plan import batch_ms, counting_hops
from weft.plan.changing.fragments import each_alone
from weft.plan.changing.running_plan import Rules, first_plan
from weft.protocol import Effect
from weft.protocol.balancing import MARK
from weft.protocol.control import Controller, Rounds, acts, looks_every_s
from weft.protocol.moving import Desk, InForce

NS_PER_S = 1_000_000_000
MOVE_MS_PER_RECORD = 20.0


def steers(deployment: Deployment) -> bool:
    """Whether machines take part: something moves, crashes, comes or goes, sites balance, or a rule acts."""
    moved = any(isinstance(what, MoveAt | CrashAt | RestartAt | AddAt | RemoveAt) for what in deployment.scenario)
    return moved or deployment.control.balance is not None or acts(deployment)


def interrupts(deployment: Deployment) -> bool:
    """Whether something in a deployment may hold an operator or a site in mid-service, or change who serves."""
    return steers(deployment) or deployment.control.scale is not None or looks_every_s(deployment) is not None


class Steering:
    """Acts out a scenario on a record plane; machines take part only where something moves, crashes or restarts."""

    def __init__(
        self,
        deployment: Deployment,
        placement: Placement,
        records: Records,
        capacities: tuple[tuple[float, str, float], ...] = (),
        move_ms_per_record: float = MOVE_MS_PER_RECORD,
        instances: tuple[Scaling, ...] = (),
        begins: tuple[Deployment, Placement] | None = None,
        control: Control | None = None,
        wishes: tuple[TimedWish, ...] = (),
    ) -> None:
        self.records = records
        self.warnings: list[str] = []
        self.balancing: Balancing | None = None
        self.scaling: Autoscaling | None = None
        self.advising: Advising | None = None
        laid_out = tuple(placement.homes)
        balance = deployment.control.balance
        self.steered = steers(deployment) or bool(wishes)
        self._delays = Delays(deployment, move_ms_per_record, self._site_of, lambda: self.carrier.now_ns)
        self.carrier = Carrier(self._delays.message_ns, self._perform, self._delays.start_ns() if self.steered else 0)
        whole, (deployment, placement) = deployment, begins or (deployment, placement)
        looks = looks_every_s(deployment) is not None
        hops = counting_hops(deployment, batch_ms(deployment)) if looks else deployment
        self.rounds = Rounds(hops, placement)
        self.carrier.add(Controller(CONTROLLER, advises=deployment.control.advise is not None))
        self.changes = Changes(
            deployment, placement, records, self.carrier, self.rounds, lambda: self._rules, self._delays.state_ns
        )
        self.hosting = Hosting(self.carrier, self.changes, records, self._delays, self.warnings)
        self.wishing = Wishing(
            self.carrier, self.changes, self.hosting, self.rounds, control or whole.control, laid_out, self.warnings
        )
        self.changes.grant = self.wishing.grant
        for at_s, site, capacity in capacities:
            self._at(at_s, partial(records.set_capacity, site, capacity))
        for at_s, verb, operator, site in instances:
            self._at(at_s, partial(self.wishing.scale, operator, site, verb == "start"))
        for at_s, wish in wishes:
            self._at(at_s, self.wishing.wished(at_s, wish))
        for what in whole.scenario:
            self._plan(what)
        if self.steered:
            for stream in laid_out:
                records.hold(names_of(stream), False)
            self.changes.plan = first_plan(deployment, placement, self._rules)
            self.hosting.begin(whole.sites)
        elif instances or deployment.control.scale is not None:
            self.carrier.add(Desk(DESK))
            self.changes.plan = first_plan(deployment, placement, self._rules)
            self.carrier.take(DESK, InForce(0, ()))  # all operators run already, and no agent looks after them
        if balance is not None:
            self.balancing = Balancing(balance, deployment, placement, self.carrier, records, self.wishing.move)
            self.wishing.balancing = self.balancing
        if (scale := deployment.control.scale) is not None:
            self.scaling = Autoscaling(
                scale, deployment, self.changes, self.carrier, records, self.wishing.moves, self.warnings,
                self._delays.paths,
            )  # fmt: skip
        if looks:
            self.advising = Advising(self.rounds, self)

    @cached_property
    def _rules(self) -> Rules:
        return Rules(each_alone, self._delays.paths, instances=True)

    def up(self, site: str) -> bool:
        """True if a site is not lost."""
        return self.hosting.up(site)

    def running(self) -> Placement:
        """Where operators run now."""
        return self.changes.plan.placement

    def message_ns(self, sender: str, to: str) -> int | None:
        """How long a message takes; None where it is lost."""
        return self._delays.message_ns(sender, to)

    def run(self, until_ns: int) -> None:
        """Runs both planes up to a moment; what is steered at a moment comes before its events."""
        while (due_ns := self.carrier.next_ns()) is not None and due_ns < until_ns:
            if due_ns > self.records.now_ns:
                self.records.advance(due_ns)
            self.carrier.step()
        self.records.advance(until_ns)

    def _at(self, at_s: float, do: Callable[[], None]) -> None:
        self.carrier.at(round(at_s * NS_PER_S), do)

    def _plan(self, what: object) -> None:
        match what:
            case MoveAt() | AddAt() | RemoveAt():
                self._at(what.at_s, self.wishing.happening(what))
            case CrashAt(at_s=at_s, crash=site):
                self._at(at_s, lambda: self._crash(site))
            case RestartAt(at_s=at_s, restart=site):
                self._at(at_s, lambda: self._restart(site))
            case PartitionAt(at_s=at_s, partition=(one, other), for_s=for_s):
                until_ns = round((at_s + for_s) * NS_PER_S)
                self._at(at_s, lambda: self._cut(one, other, until_ns))

    def _cut(self, one: str, other: str, until_ns: int) -> None:
        self.records.cut(one, other, until_ns)
        self._delays.cut(one, other, until_ns)

    def _crash(self, site: str) -> None:
        if self.up(site):
            self.hosting.crash(site)
            if self.balancing is not None:
                self.balancing.crash(site)

    def _restart(self, site: str) -> None:
        if not self.up(site):
            self.hosting.restart(site)
            if self.balancing is not None:
                self.balancing.restart(site)
            self.hosting.want_again()

    def _site_of(self, machine: str) -> str:
        if self.scaling is not None and machine.startswith(SCALE_MARK):
            return self.scaling.site(machine)
        return machine.removeprefix(MARK)

    def _perform(self, site: str, effect: Effect) -> None:
        if site == CONTROLLER and self.advising is not None:
            self.advising.perform(site, effect)
        if self.changes.perform(effect):
            return
        parts = {MARK: self.balancing, SCALE_MARK: self.scaling}
        part = parts.get(site.partition(":")[0] + ":") or self.hosting
        part.perform(site, effect)
