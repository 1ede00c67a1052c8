"""An explorer's world carried by the twin: virtual time, slow and doubled messages, and every claim on the way."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.bodies.twin.storm import MS, Counting
from weft.bodies.explorer.world import View, World
from weft.protocol import Effect, Input, Message, Received

FACT_MS = 400
DELAY_MS = 300
SLOW_MS = 30_000


class Crowd(Counting):
    """One world under one seed; its own faults are how long messages take, and that some come twice."""

    def __init__(self, world: World, seed: int, slow: float = 0.01, twice: float = 0.01) -> None:
        super().__init__(self._delay, self._happens, 0)
        self.world, self.rng, self.slow, self.twice = world, Random(seed), slow, twice
        self.ground: Any = world.ground
        self.under_way = 0
        self.doubled = 0
        self.last_ns: dict[tuple[str, str], int] = {}
        self.reads: dict[str, set[tuple[str, Any]]] = {}
        self.looks = lambda name, fact: None
        for machine in world.machines().values():
            self.add(machine)
        self._ask(set())
        self.at(0, self._fact)

    def run(self) -> int:
        """Goes on until nothing more can happen; then all must be quiet. The steps that it took."""
        while self.next_ns() is not None:
            self.step()
        assert self._holds("quiet", self.world.quiet), f"{self.world.name}: it ends without being quiet"
        return self.steps

    def take(self, name: str, fact: Input) -> None:
        """A machine takes an input; what it may have broken is looked at."""
        before, busy = self.ground, self._busy()
        if isinstance(fact, Received):
            self.under_way -= 1
        super().take(name, fact)
        changed: set[tuple[str, Any]] = {("machine", name), ("flight", None)}
        if self.ground != before:
            changed.add(("ground", None))
        if self._busy() != busy:
            changed.add(("busy", None))
        self._ask(changed)

    def _fact(self) -> None:
        """One of the facts that may come next comes, and others later."""
        choices = list(self.ground.choices())
        if choices:
            chosen = self.rng.choice(choices)
            self.ground = chosen.after
            if chosen.heard:
                self.take(chosen.site, chosen.fact)
            self._ask({("ground", None), ("busy", None)})
        if choices or self.under_way:
            self.at(self.now_ns + round(self.rng.expovariate(1 / FACT_MS) * MS), self._fact)

    def _happens(self, site: str, effect: Effect) -> None:
        self.ground = self.ground.perform(site, effect)

    def _delay(self, sender: str, to: str) -> int:
        """In order between two; now and then one takes long, and all after it with it."""
        most_ms = SLOW_MS if self.rng.random() < self.slow else DELAY_MS
        due_ns = max(self.now_ns + self.rng.randrange(most_ms * MS), self.last_ns.get((sender, to), 0))
        self.last_ns[sender, to] = due_ns
        return due_ns - self.now_ns

    def _send(self, sender: str, to: str, message: Message) -> None:
        again = self.doubled < self.world.double and self.rng.random() < self.twice
        self.doubled += again
        for _ in range(1 + again):
            self.under_way += 1
            super()._send(sender, to, message)

    def _busy(self) -> bool:
        return self.under_way > 0 or any(choice.due for choice in self.ground.choices())

    def _ask(self, changed: set[tuple[str, Any]]) -> None:
        """Claims that looked at something which has changed since are asked again."""
        for claim, holds in self.world.invariants.items():
            if claim not in self.reads or not self.reads[claim].isdisjoint(changed):
                assert self._holds(claim, holds), f"{self.world.name}: {claim}\n" + "\n".join(self.story[-40:])

    def _holds(self, claim: str, holds: Any) -> bool:
        seen = self.reads[claim] = set()

        def look(what: str, which: Any) -> Any:
            seen.add((what, which))
            match what:
                case "machine":
                    return self.machines[which]
                case "busy":
                    return self._busy()
                case "ground":
                    return self.ground
            raise AssertionError(f"no claim of these worlds looks at {what}")

        return bool(holds(View(look)))
