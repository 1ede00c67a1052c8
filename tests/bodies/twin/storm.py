"""Balancers in the twin's virtual time, through loss, delay, crashes and changing loads, with claims on the way."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from weft.bodies.explorer.worlds.balancing_ground import Tree
from weft.bodies.twin.control.carrier import Carrier
from weft.protocol import Effect, Input
from weft.protocol.balancing import Balancer, Begin, Check, Memory, Part, Remember, Start, Stop, Stopped

MS = 1_000_000
PERIOD_MS = 5_000


class Counting(Carrier):
    """A carrier that counts steps and has each looked at; it keeps no story but the last lines."""

    steps = 0
    looks: Callable[[str, Input], None]

    def take(self, name: str, fact: Input) -> None:
        """A machine takes an input."""
        if name in self.machines:
            self.steps += 1
        super().take(name, fact)
        self.looks(name, fact)
        del self.story[:-200]


class Storm:
    """One tree under one seed."""

    def __init__(self, case: Tree, seed: int, loss: float = 0.03, crashes_per_s: float = 0.05) -> None:
        self.case, self.rng, self.loss, self.crashes_per_s = case, Random(seed), loss, crashes_per_s
        self.loads = dict(case.loads)
        self.memories: dict[str, Memory] = {site: case.memory(site) for site in case.parent}
        self.runs: dict[str, str] = {}
        self.readers: dict[str, list[str]] = {operator: [] for operator in case.homes}
        for reader, inputs in case.streams.inputs.items():
            for operator in inputs:
                self.readers[operator].append(reader)
        self.last_ns: dict[tuple[str, str], int] = {}
        self.moves = 0
        self.calm = False
        self.carrier = Counting(self._delay_ns, self._perform, 0)
        self.carrier.looks = self._look
        for site in case.parent:
            self._up(site, looked=True)
            self.carrier.at(self.rng.randrange(PERIOD_MS) * MS, lambda site=site: self._check(site))

    def run(self, steps: int) -> None:
        """Takes so many steps; then the weather clears, and everything must come to rest in its place."""
        while self.carrier.steps < steps:
            self.carrier.step()
        self.calm = True
        while self.carrier.next_ns() is not None:
            self.carrier.step()
        assert set(self.runs) == set(self.case.homes), set(self.case.homes) - set(self.runs)
        assert all(row.state == "idle" for site in self.case.parent for row in self._machine(site).rows.values())

    def _machine(self, site: str) -> Any:
        return self.carrier.machines[site]

    def _up(self, site: str, looked: bool) -> None:
        case = self.case
        self.carrier.add(
            Balancer(
                site, case.parent[site], case.children[site], case.streams, self.memories[site], case.limits, looked
            )
        )
        self.carrier.take(site, Begin())

    def _delay_ns(self, sender: str, to: str) -> int | None:
        """Up to a second, now and then up to a minute; in order between two sites."""
        if not self.calm and self.rng.random() < self.loss:
            return None
        most_ms = 60_000 if self.rng.random() < 0.01 else 1_000
        due_ns = max(self.carrier.now_ns + self.rng.randrange(most_ms) * MS, self.last_ns.get((sender, to), 0))
        self.last_ns[sender, to] = due_ns
        return due_ns - self.carrier.now_ns

    def _check(self, site: str) -> None:
        if self.calm:
            return
        rng = self.rng
        if site in self.carrier.machines:
            for operator in rng.sample(sorted(self.memories[site].here), min(2, len(self.memories[site].here))):
                if operator not in self.case.streams.pinned:
                    self.loads[operator] = (rng.randrange(25),)
            parts = tuple(Part(operator, self.loads[operator]) for operator in self._machine(site).memory.here)
            self.carrier.take(site, Check(parts))
            if rng.random() < self.crashes_per_s * PERIOD_MS / 1000:
                self._crash(site)
        self.carrier.at(self.carrier.now_ns + PERIOD_MS * MS, lambda: self._check(site))

    def _crash(self, site: str) -> None:
        self.carrier.lose(site)
        self.runs = {operator: where for operator, where in self.runs.items() if where != site}
        self.carrier.at(self.carrier.now_ns + self.rng.randrange(20_000) * MS, lambda: self._up(site, looked=False))

    def _perform(self, site: str, effect: Effect) -> None:
        match effect:
            case Remember():
                self.memories[site] = self.memories[site].after(effect, self.case.parent[site])
                if effect.verb == "took":
                    self.moves += len(effect.operators)
                    machine = self._machine(site)
                    assert machine.used() <= machine.marks.most, (site, machine.used())
            case Stop(peer, serial, operators):
                machine = self._machine(site)

                def stopped() -> None:
                    if self.carrier.machines.get(site) is machine:
                        for operator in operators:
                            self.runs.pop(operator, None)
                        self.carrier.take(site, Stopped(peer, serial))

                self.carrier.at(self.carrier.now_ns + self.rng.randrange(500) * MS, stopped)
            case Start(operators):
                for operator in operators:
                    assert self.runs.get(operator, site) == site, f"{operator} runs at {self.runs[operator]} and {site}"
                    self.runs[operator] = site
                for operator in operators:
                    self._passes(operator, site)

    def _passes(self, operator: str, site: str) -> None:
        """Every stream flows upwards, as far as both its ends run."""
        for source in self.case.streams.inputs[operator]:
            where = self.runs.get(source, site)
            assert site in self.case.above(where), f"{operator} at {site} reads {source} at {where}"
        for reader in self.readers[operator]:
            where = self.runs.get(reader, site)
            assert where in self.case.above(site), f"{reader} at {where} reads {operator} at {site}"

    def _look(self, site: str, fact: Input) -> None:
        """Disks hold what must last, and every operator has one site that answers for it."""
        machine = self.carrier.machines.get(site)
        if machine is None or self.carrier.steps % 50:
            return
        has = [operator for memory in self.memories.values() for operator in memory.here]
        assert len(has) == len(set(has)), fact
        given = {
            part.operator
            for memory in self.memories.values()
            for giving in memory.giving.values()
            for part in giving.operators
        }
        assert {*has, *given} == set(self.case.homes), fact
