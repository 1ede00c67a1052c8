"""Scaling in the twin: carries an instance machine for every instance of every operator, and feeds it what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.outcome.result import Move
from weft.bodies.twin.records import names_of
from weft.model import Deployment, Placement, Scale, dataflow
from weft.protocol import Effect
from weft.protocol.scaling import (
    Activated,
    Create,
    Drain,
    Drained,
    Instance,
    Place,
    ScaleRule,
    Sizing,
)
from weft.protocol.scaling.instance import ACTIVE, SENDS

NS_PER_S = 1_000_000_000
MARK = "scale:"

Change = Callable[[str, str], None]
"""Starts or stops an instance of an operator at a site."""


class ArrivalCounts(Protocol):
    """What scaling needs of a record plane."""

    def arrived(self, operator: tuple[str, str]) -> int: ...


class Scaling:
    """The instances of a deployment; `homes` says where first instances are now."""

    def __init__(
        self,
        scale: Scale,
        deployment: Deployment,
        placement: Placement,
        carrier: Carrier,
        loads: ArrivalCounts,
        homes: dict[str, str],
        start: Change,
        stop: Change,
        moves: list[Move],
    ) -> None:
        self.carrier, self.loads, self.homes = carrier, loads, homes
        self.start, self.stop, self.moves = start, stop, moves
        self._period_ns = round(scale.period_s * NS_PER_S)
        self._keys = {stream: names_of(stream) for stream in placement.homes}
        self._sites: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._chance = Random("/".join(self._keys))
        rule = ScaleRule(scale.target, scale.high, scale.low, scale.safe)
        self.sizing = Sizing(rule, deployment, self._keys, lambda name: [self.site(one) for one in self.running(name)])
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
        return self._sites.get(machine) or self.homes[machine.removeprefix(MARK)]

    def running(self, operator: str) -> list[str]:
        """The instances of an operator that work on records, the keeper first."""
        return [
            name for name, machine in self.carrier.machines.items()
            if isinstance(machine, Instance) and machine.place.operator == operator and machine.state in SENDS
        ]  # fmt: skip

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
                self._sites[child] = self.sizing.best_site()
                self._why[child] = f"one more instance: {self._why[name]}"
                self.carrier.add(Instance(child, machine.place))
            case Activated():
                self.start(machine.place.operator, self._sites[name])
                self._note(machine.place.operator, "", self._sites[name], self._why[name])
            case Drain():
                self.stop(machine.place.operator, self._sites[name])
                self._note(machine.place.operator, self._sites[name], "", f"one instance less: {self._why[name]}")
                self.carrier.feed(name, Drained())

    def _note(self, operator: str, before: str, to: str, why: str) -> None:
        self.moves.append(Move(*self._keys[operator], before, to, self.carrier.now_ns / NS_PER_S, None, why))
