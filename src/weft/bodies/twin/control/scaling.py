"""Scaling in the twin: an instance machine for every instance of every operator, each deciding alone from its own load.

An instance's capacity is what its site leaves to it: capacity times quota, less what other operators take there. A new
instance goes to the site that has most left. Instances share an operator's records in turn, so each gets the same. Only
operators that may share are scaled: without state, window or a site of their own, and not read through a queue that
blocks. Where sites crash, nothing is scaled: instances are taken not to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.outcome.result import Move
from weft.bodies.twin.records import key_of
from weft.model import CrashAt, Deployment, Operator, Placement, Query, Scale
from weft.plan.dataflow.rates import cost_ms
from weft.protocol import Effect
from weft.protocol.scaling import (
    Activated,
    Create,
    Drain,
    Drained,
    Grow,
    Instance,
    Place,
    ScaleRule,
    Shrink,
    copies,
)
from weft.protocol.scaling.instance import ACTIVE, SENDS

NS_PER_S = 1_000_000_000
MARK = "scale:"

Change = Callable[[str, str], None]
"""Starts or stops an instance of an operator at a site."""


class Loads(Protocol):
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
        loads: Loads,
        homes: dict[str, str],
        start: Change,
        stop: Change,
        moves: list[Move],
    ) -> None:
        self.rule = ScaleRule(scale.target, scale.high, scale.low)
        self.deployment, self.carrier, self.loads, self.homes = deployment, carrier, loads, homes
        self.start, self.stop, self.moves = start, stop, moves
        self._period_ns = round(scale.period_s * NS_PER_S)
        self._keys = {stream: key_of(stream) for stream in placement.homes}
        self._sites: dict[str, str] = {}
        self._why: dict[str, str] = {}
        self._rates: dict[str, float] = {}
        self._arrived: dict[str, tuple[int, int]] = {}
        self._chance = Random("/".join(self._keys))
        for query in deployment.queries:
            self._add(query)
        for at, name in enumerate(self._keys):
            # Not all at once: each operator looks at its own moment of the period.
            carrier.at(self._period_ns + at * self._period_ns // len(self._keys), partial(self._look, name))

    def _add(self, query: Query) -> None:
        """A keeper for each operator of a query."""
        own = {operator.name: f"{query.name}.{operator.name}" for operator in query.operators}
        ups = {own[one.name]: tuple(own[up] for up in one.from_ if up in own) for one in query.operators}
        downs = {name: tuple(down for down, read in ups.items() if name in read) for name in ups}
        for name, above in ups.items():
            before, after = ({MARK + one: one for one in side} for side in (above, downs[name]))
            self.carrier.add(Instance(MARK + name, Place(name, above, downs[name]), before, after, keeper=True))

    def site(self, machine: str) -> str:
        """Where an instance is."""
        return self._sites.get(machine) or self.homes[machine.removeprefix(MARK)]

    def running(self, operator: str) -> list[str]:
        """The instances of an operator that work on records, the keeper first."""
        return [
            name for name, machine in self.carrier.machines.items()
            if isinstance(machine, Instance) and machine.place.operator == operator and machine.state in SENDS
        ]  # fmt: skip

    def scales(self, operator: str) -> bool:
        """Whether an operator's records may be shared."""
        told = self._operator(operator)
        crashes = any(isinstance(what, CrashAt) for what in self.deployment.scenario)
        query, name = self._keys[operator]
        readers = self.deployment.query(query).consumers(name)
        blocked = any(one.queue is not None and one.queue.when_full == "block" for one in readers)
        return not (told.site or told.window or told.state_kb or crashes or blocked)

    def _operator(self, name: str) -> Operator:
        query, operator = self._keys[name]
        return self.deployment.query(query).operator(operator)

    def _load(self, operator: str) -> float:
        """What one instance of an operator was asked for since it last looked, in seconds of work a second."""
        return self._rates.get(operator, 0.0) * cost_ms(self._operator(operator)) / 1000.0

    def _left(self, site: str, operator: str = "") -> float:
        """What a site leaves to one instance of an operator."""
        told = self.deployment.site(site)
        taken = sum(
            self._load(name) * sum(self.site(one) == site for one in self.running(name))
            for name in self._keys if name != operator
        )  # fmt: skip
        beside = sum(self.site(one) == site for one in self.running(operator)) if operator else 1
        return (told.capacity * told.quota - taken) / max(1, beside)

    def _look(self, operator: str) -> None:
        """Each instance of an operator decides anew."""
        now_ns = self.carrier.now_ns
        arrived = self.loads.arrived(self._keys[operator])
        before, then_ns = self._arrived.get(operator, (0, 0))
        self._arrived[operator] = (arrived, now_ns)
        came = arrived - before if arrived >= before else arrived  # counts begin anew after a warm-up
        self._rates[operator] = came * NS_PER_S / max(1, now_ns - then_ns)
        self.carrier.at(now_ns + self._period_ns, partial(self._look, operator))
        if not self.scales(operator):
            return
        load = self._load(operator)
        for name in self.running(operator):
            machine = self.carrier.machines[name]
            assert isinstance(machine, Instance)
            if machine.state != ACTIVE:
                continue
            own = self._left(self.site(name), operator)
            room = max((self._left(site.name) for site in self.deployment.sites), default=0.0)
            made = copies(self.rule, load, own, self._chance.random(), machine.keeper, room if room > 0 else None)
            used = f"utilisation {load / own:.2f}" if own > 0 else "no capacity left"
            if made > 0 and room > 0:
                # One at a time: where the next would go is seen only when this one runs.
                self._why[name] = f"{used}, above {self.rule.high:g}"
                self.carrier.take(name, Grow(1))
            elif made < 0:
                self._why[name] = f"{used}, below {self.rule.low:g}"
                self.carrier.take(name, Shrink())

    def perform(self, name: str, effect: Effect) -> None:
        """Does what an instance asks for."""
        machine = self.carrier.machines[name]
        assert isinstance(machine, Instance)
        match effect:
            case Create(instance=child):
                self._sites[child] = max(self.deployment.sites, key=lambda site: self._left(site.name)).name
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
