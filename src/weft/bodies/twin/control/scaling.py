"""Scaling in the twin: carries an instance machine for every instance of every operator, and feeds it what to do."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.control.changes import Changes
from weft.bodies.twin.outcome.result import Move
from weft.bodies.twin.records import names_of
from weft.model import Deployment, Scale, dataflow
from weft.plan.changing.next_plan import why_impossible
from weft.plan.network.paths import Paths
from weft.protocol import Effect
from weft.protocol.scaling import (
    Activated,
    Create,
    Drain,
    Drained,
    Instance,
    Place,
    ScaleRule,
    Shrink,
    Sizing,
)
from weft.protocol.scaling.any_instance import ACTIVE
from weft.protocol.scaling.instance import SENDS

NS_PER_S = 1_000_000_000
MARK = "scale:"


class ArrivalCounts(Protocol):
    """What scaling needs of a record plane."""

    def arrived(self, operator: tuple[str, str]) -> int: ...


class Scaling:
    """The instances of a deployment; every one that starts or ends is a change of the plan in force."""

    def __init__(
        self,
        scale: Scale,
        deployment: Deployment,
        changes: Changes,
        carrier: Carrier,
        loads: ArrivalCounts,
        moves: list[Move],
        warnings: list[str],
        paths: Paths,
    ) -> None:
        self.carrier, self.loads, self.changes = carrier, loads, changes
        self.moves, self.warnings, self.paths = moves, warnings, paths
        self._period_ns = round(scale.period_s * NS_PER_S)
        self._keys = {stream: names_of(stream) for stream in changes.homes}
        self._sites: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._refused: set[str] = set()
        self._possible: dict[str, tuple[int, list[str]]] = {}
        self._chance = Random("/".join(self._keys))
        rule = ScaleRule(scale.target, scale.high, scale.low, scale.safe)
        self.sizing = Sizing(rule, deployment, self._keys, self._running_at, self._possible_at)
        self._add(deployment)
        for at, name in enumerate(self._keys):
            # Not all at once: each operator looks at its own moment of the period.
            carrier.at(self._period_ns + at * self._period_ns // len(self._keys), partial(self._look, name))

    def _add(self, deployment: Deployment) -> None:
        """A keeper for each operator."""
        flow = dataflow(deployment)
        written = [f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators]
        for stream in written:
            above = tuple(one for one in flow.node(stream).inputs if flow.makes(one))
            below = tuple(sorted((reader.stream for reader in flow.readers(stream)), key=written.index))
            before, after = ({MARK + one: one for one in side} for side in (above, below))
            self.carrier.add(Instance(MARK + stream, Place(stream, above, below), before, after, keeper=True))

    def site(self, machine: str) -> str:
        """Where an instance is."""
        return self._sites.get(machine) or self.changes.homes[machine.removeprefix(MARK)]

    def running(self, operator: str) -> list[str]:
        """The instances of an operator that work on records, the keeper first."""
        return [
            name for name, machine in self.carrier.machines.items()
            if isinstance(machine, Instance) and machine.place.operator == operator and machine.state in SENDS
        ]  # fmt: skip

    def _running_at(self, operator: str) -> list[str]:
        return [self.site(one) for one in self.running(operator)]

    def _possible_at(self, operator: str) -> list[str]:
        """The sites that a further instance of an operator may run at, under the plan in force."""
        plan = self.changes.plan
        number, sites = self._possible.get(operator, (-1, []))
        if number != plan.number:
            every = (site.name for site in plan.deployment.sites)
            sites = [
                one for one in every
                if why_impossible(plan.deployment, plan.placement, operator, one, self.paths) is None
            ]  # fmt: skip
            self._possible[operator] = (plan.number, sites)
        return sites

    def _look(self, operator: str) -> None:
        """Each instance of an operator decides anew."""
        now_ns = self.carrier.now_ns
        self.sizing.saw(operator, self.loads.arrived(self._keys[operator]), now_ns)
        self.carrier.at(now_ns + self._period_ns, partial(self._look, operator))
        if not self.sizing.may_share(operator):
            return
        for name in self.running(operator):
            machine = self.carrier.machines[name]
            assert isinstance(machine, Instance)
            if machine.state != ACTIVE:
                continue
            if name in self._refused:
                self.carrier.take(name, Shrink())
                continue
            decided = self.sizing.decide(operator, self.site(name), machine.keeper, self._chance.random())
            if decided is not None:
                wish, self._why[name] = decided
                self.carrier.take(name, wish)

    def perform(self, name: str, effect: Effect) -> None:
        """Does what an instance asks for."""
        machine = self.carrier.machines[name]
        assert isinstance(machine, Instance)
        match effect:
            case Create(instance=child):
                self._sites[child] = self.sizing.best_site(machine.place.operator)
                self._why[child] = f"one more instance: {self._why[name]}"
                self.carrier.add(Instance(child, machine.place))
            case Activated():
                self._change(name, machine.place.operator, True, self._why[name])
            case Drain() if name in self._refused:
                self.carrier.feed(name, Drained())
            case Drain():
                self._change(name, machine.place.operator, False, f"one instance less: {self._why[name]}")

    def _change(self, name: str, operator: str, more: bool, why: str) -> None:
        """Asks for an instance more or less; one that may not be ends again."""
        site, at_s = self._sites[name], self.carrier.now_ns / NS_PER_S

        def told(why_not: str | None, word: str) -> None:
            if why_not is None:
                way = ("", site) if more else (site, "")
                self.moves.append(Move(*self._keys[operator], *way, at_s, None, why))
            else:
                self.warnings.append(f"{operator} was not scaled at {site} at {at_s:g} s: {why_not}")
                self._refused |= {name} if more else set()
            if not more:
                self.carrier.feed(name, Drained())

        self.changes.scale(operator, site, more, why, told)
