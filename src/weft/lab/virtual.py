"""A light body in virtual time: machines, messages that take a while over links, and facts at set times."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from weft.protocol import Effect, Input, Machine, Received, Send

Delay = Callable[[Random], float]

LINKS: dict[str, Delay] = {
    "uniform 1-3 ms": lambda rng: rng.uniform(1.0, 3.0),
    "exponential 10 ms": lambda rng: rng.expovariate(0.1),
}


LONG_LINKS: dict[str, Delay] = {
    "exponential 100 ms": lambda rng: rng.expovariate(0.01),
    "exponential 300 ms": lambda rng: rng.expovariate(1 / 300),
}


class Virtual:
    """Carries machines through virtual milliseconds; messages between two arrive in the order sent."""

    def __init__(self, machines: Mapping[str, Machine], delay: Delay, rng: Random) -> None:
        self.machines, self.delay, self.rng = dict(machines), delay, rng
        self.now_ms = 0.0
        self.sent = 0
        self.perform: Callable[[str, Effect], None] = lambda site, effect: None
        self._events: list[tuple[float, int, str, Input]] = []
        self._count = 0
        self._last: dict[tuple[str, str], float] = {}

    def at(self, time_ms: float, site: str, input: Input) -> None:
        """Tells a machine something at a time to come."""
        self._count += 1
        heapq.heappush(self._events, (time_ms, self._count, site, input))

    def tell(self, site: str, input: Input) -> None:
        """Tells a machine something now, and does what it asks for."""
        for effect in self.machines[site].handle(input):
            if isinstance(effect, Send):
                self.sent += 1
                pair = (site, effect.to)
                time_ms = max(self.now_ms + self.delay(self.rng), self._last.get(pair, 0.0))
                self._last[pair] = time_ms
                self.at(time_ms, effect.to, Received(site, effect.message))
            else:
                self.perform(site, effect)

    def run(self, until_ms: float = float("inf")) -> None:
        """Goes on until nothing is left to happen, or up to a time."""
        while self._events and self._events[0][0] <= until_ms:
            self.now_ms, _, site, input = heapq.heappop(self._events)
            self.tell(site, input)


def seeded(*parts: Any) -> Random:
    """A generator for one run, the same on any machine."""
    return Random("/".join(map(str, parts)))
