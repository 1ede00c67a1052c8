"""Balancing in the twin: a balancer at every site of a tree, told what operators took since it last looked.

What a balancer takes over, the desk moves: it ends the operator cleanly and starts it at its new site. A move that does
not come about is asked for again. What reads or feeds an operator that a scenario moves stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.records import key_of
from weft.model import Balance, Deployment, MoveAt, Placement
from weft.plan.dataflow.rates import cost_ms
from weft.protocol import Effect
from weft.protocol.balancing import (
    BalanceLimits,
    Balancer,
    Begin,
    Check,
    Memory,
    Part,
    Remember,
    Start,
    Stop,
    Stopped,
    Streams,
)

NS_PER_S = 1_000_000_000
MARK = "balance:"
CPU_UNITS = 1_000_000  # microseconds of work a second, at capacity 1
MEMORY_KB_MAX = 1 << 40  # of a site that names no memory


class Loads(Protocol):
    """What balancing needs of a record plane."""

    def arrived(self, operator: tuple[str, str]) -> int: ...


Ask = Callable[[str, str, str], None]
"""Asks the desk for a move: operator, site, reason."""


class Balancing:
    """The balancers of a deployment."""

    def __init__(
        self, balance: Balance, deployment: Deployment, placement: Placement, carrier: Carrier, loads: Loads, ask: Ask
    ) -> None:
        self.balance, self.deployment = balance, deployment
        self._period_ns = round(balance.period_s * NS_PER_S)
        self.carrier, self.loads, self.ask = carrier, loads, ask
        self.parent = {site.name: site.parent or "" for site in deployment.sites}
        self.tree = {site for site, up in self.parent.items() if up or site in self.parent.values()}
        self._keys = {stream: key_of(stream) for stream in placement.homes}
        self.homes = dict(placement.homes)
        self._places, self.streams = self._read(placement)
        self._memories = {site: self._memory(site) for site in self.tree}
        self._arrived: dict[str, int] = {}
        for site in sorted(self.tree):
            self._add(site)
        carrier.at(self._period_ns, self._look)

    def _read(self, placement: Placement) -> tuple[dict[str, str], Streams]:
        """Where operators, sources and sinks are, and which read which; what cannot move is pinned."""
        places = {f"source {source.name}": source.site for source in self.deployment.sources} | self.homes
        inputs: dict[str, tuple[str, ...]] = {f"source {source.name}": () for source in self.deployment.sources}
        pinned = set(inputs)
        moved = {what.move.partition(".")[0] for what in self.deployment.scenario if isinstance(what, MoveAt)}
        for query in self.deployment.queries:
            inside = {operator.name for operator in query.operators}
            for operator in query.operators:
                name = f"{query.name}.{operator.name}"
                read = [f"{query.name}.{one}" if one in inside else f"source {one}" for one in operator.from_]
                inputs[name] = tuple(read)
                many = len(placement.sites_of(name)) > 1
                if operator.site or many or query.name in moved or self.homes[name] not in self.tree:
                    pinned.add(name)
            for at, sink in enumerate(query.sinks):
                if sink.site is not None:
                    name = f"sink {query.name} {at}"
                    places[name], inputs[name] = sink.site, (f"{query.name}.{sink.from_}",)
                    pinned.add(name)
        return places, Streams(inputs, frozenset(pinned))

    def _above(self, site: str) -> Iterator[str]:
        while site:
            yield site
            site = self.parent[site]

    def _memory(self, site: str) -> Memory:
        here = {name: self._load(name, 0) for name, home in sorted(self._places.items()) if home == site}
        below = {}
        for name, home in self._places.items():
            way = list(self._above(home))
            if site in way[1:]:
                below[name] = way[way.index(site) - 1]
        return Memory(here, {name: MARK + child for name, child in below.items()})

    def _add(self, site: str, looked: bool = True) -> None:
        children = tuple(sorted(MARK + child for child, up in self.parent.items() if up == site))
        up = MARK + self.parent[site] if self.parent[site] else ""
        machine = Balancer(MARK + site, up, children, self.streams, self._memories[site], self._limits(site), looked)
        self.carrier.add(machine)
        self.carrier.feed(machine.name, Begin())

    def _limits(self, site: str) -> BalanceLimits:
        told = self.deployment.site(site)
        memory_kb = round(told.memory_mb * 1024) if told.memory_mb else MEMORY_KB_MAX
        each = {"cpu": round(told.capacity * CPU_UNITS), "memory": memory_kb}
        marks = (round(1000 * mark) for mark in (self.balance.low, self.balance.target, self.balance.high))
        return BalanceLimits(tuple(each[one] for one in self._resources()), *marks)

    def _resources(self) -> tuple[str, ...]:
        return ("cpu", "memory") if self.balance.measure == "both" else (self.balance.measure,)

    def _load(self, name: str, arrived: int) -> tuple[int, ...]:
        if name not in self._keys:
            return (0,) * len(self._resources())
        query, operator = self._keys[name]
        told = self.deployment.query(query).operator(operator)
        each = {"cpu": round(arrived * cost_ms(told) * 1000 / self.balance.period_s), "memory": round(told.state_kb)}
        return tuple(each[one] for one in self._resources())

    def _look(self) -> None:
        came: dict[str, int] = {}
        for name, key in self._keys.items():
            now = self.loads.arrived(key)
            before = self._arrived.get(name, 0)
            came[name] = now - before if now >= before else now  # counts begin anew after a warm-up
            self._arrived[name] = now
        for site in sorted(self.tree):
            machine = self.carrier.machines.get(MARK + site)
            if isinstance(machine, Balancer):
                parts = tuple(Part(name, self._load(name, came.get(name, 0))) for name in machine.memory.here)
                self.carrier.take(machine.name, Check(parts))
        self.carrier.at(self.carrier.now_ns + self._period_ns, self._look)

    def perform(self, name: str, effect: Effect) -> None:
        """Does what a balancer asks for."""
        site = name.removeprefix(MARK)
        match effect:
            case Remember():
                parent = MARK + self.parent[site] if self.parent[site] else ""
                self._memories[site] = self._memories[site].after(effect, parent)
            case Stop(peer=peer, serial=serial):
                # The desk ends an operator cleanly when it moves it: until then it runs on.
                self.carrier.feed(name, Stopped(peer, serial))
            case Start(operators=operators, giver=giver, reason=reason) if giver:
                self._take(operators, site, giver.removeprefix(MARK), reason.replace(MARK, ""))

    def _take(self, operators: tuple[str, ...], site: str, giver: str, reason: str) -> None:
        """Moves operators so that in between, too, every stream flows upwards: going up, readers go first."""
        order = sorted(operators, key=lambda name: sum(1 for _ in self._upstream(name)))
        for name in order if self.parent[site] == giver else reversed(order):
            self.homes[name] = site
            self.ask(name, site, reason)

    def _upstream(self, name: str) -> Iterator[str]:
        for read in self.streams.inputs[name]:
            yield read
            yield from self._upstream(read)

    def crash(self, site: str) -> None:
        """A site's balancer is gone."""
        self.carrier.lose(MARK + site)

    def restart(self, site: str) -> None:
        """It comes back with what it wrote down."""
        if site in self.tree:
            self._add(site, looked=False)
