"""Balancing in the twin: carries a balancer at every site of a tree, and tells it what came to operators each period.

What a balancer takes over, the desk moves: it ends the operator cleanly and starts it at its new site.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from weft.bodies.twin.control.carrier import Carrier
from weft.bodies.twin.records import names_of
from weft.model import Balance, Deployment, Placement
from weft.protocol import Effect
from weft.protocol.balancing import (
    MARK,
    BalancedTree,
    Balancer,
    Begin,
    Check,
    Part,
    Remember,
    Start,
    Stop,
    Stopped,
    balanced_site,
    balancer_name,
)
from weft.protocol.counting import came

NS_PER_S = 1_000_000_000


class Loads(Protocol):
    """What balancing needs of a record plane."""

    def arrived(self, operator: tuple[str, str]) -> int: ...


Ask = Callable[[str, str, str], None]
"""Asks the desk for a move: operator, site, reason."""


class Balancing:
    """The balancers of a deployment; `homes` says where each operator is, or will be once the desk has moved it."""

    def __init__(
        self, balance: Balance, deployment: Deployment, placement: Placement, carrier: Carrier, loads: Loads, ask: Ask
    ) -> None:
        self._period_ns = round(balance.period_s * NS_PER_S)
        self.carrier, self.loads, self.ask = carrier, loads, ask
        self._keys = {stream: names_of(stream) for stream in placement.homes}
        self.homes = dict(placement.homes)
        shared = {stream for stream in placement.homes if len(placement.sites_of(stream)) > 1}
        self.tree = BalancedTree(balance, deployment, self.homes, shared)
        self._memories = {site: self.tree.memory(site, balancer_name) for site in self.tree.sites}
        self._arrived: dict[str, int] = {}
        for site in self.tree.sites:
            self._add(site)
        carrier.at(self._period_ns, self._look)

    def _add(self, site: str, looked: bool = True) -> None:
        children = tuple(balancer_name(child) for child in self.tree.children(site))
        memory, limits = self._memories[site], self.tree.limits(site)
        machine = Balancer(balancer_name(site), self._parent(site), children, self.tree.streams, memory, limits, looked)
        self.carrier.add(machine)
        self.carrier.feed(machine.name, Begin())

    def _parent(self, site: str) -> str:
        parent = self.tree.parent(site)
        return balancer_name(parent) if parent else ""

    def _look(self) -> None:
        new: dict[str, int] = {}
        for name, key in self._keys.items():
            now = self.loads.arrived(key)
            new[name] = came(self._arrived.get(name, 0), now)
            self._arrived[name] = now
        for site in self.tree.sites:
            machine = self.carrier.machines.get(balancer_name(site))
            if isinstance(machine, Balancer):
                parts = tuple(Part(name, self.tree.load(name, new.get(name, 0))) for name in machine.memory.here)
                self.carrier.take(machine.name, Check(parts))
        self.carrier.at(self.carrier.now_ns + self._period_ns, self._look)

    def perform(self, name: str, effect: Effect) -> None:
        """Does what a balancer asks for."""
        site = balanced_site(name)
        match effect:
            case Remember():
                self._memories[site] = self._memories[site].after(effect, self._parent(site))
            case Stop(peer=peer, serial=serial):
                # The desk ends an operator cleanly when it moves it: until then it runs on.
                self.carrier.feed(name, Stopped(peer, serial))
            case Start(operators=operators, giver=giver, reason=reason) if giver:
                for operator in self.tree.in_order(operators, balanced_site(giver), site):
                    self.homes[operator] = site
                    self.ask(operator, site, reason.replace(MARK, ""))

    def crash(self, site: str) -> None:
        """A site's balancer is gone."""
        self.carrier.lose(balancer_name(site))

    def restart(self, site: str) -> None:
        """It comes back with what it wrote down."""
        if site in self.tree.sites:
            self._add(site, looked=False)
