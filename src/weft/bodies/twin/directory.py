"""What would a directory of many sites cost? Its machines in virtual time: who is found, and how many messages go.

Nothing else of the twin takes part: a directory sees no records. Sites come, leave and crash as they are told to.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from typing import Any

from weft.protocol.directory import Beat, Begin, Directory, End, Found, Levels, Limits, Loaded, OffersAre, Seek
from weft.protocol.words import CancelTimer, Effect, Input, Received, Send, SetTimer, TimerFired

DELAY_MS = (1.0, 30.0)


class ManySites:
    """The directories of many sites, from one seed."""

    def __init__(
        self, seed: int, limits: Limits | None = None, levels: Levels | None = None, beat_ms: float = 10_000.0
    ) -> None:
        self.now_ms = 0.0
        self.sent: Counter[str] = Counter()
        """Messages by kind, those to sites that are gone too."""
        self.found: dict[int, Found] = {}
        self.up: dict[str, Directory] = {}
        self._rng = random.Random(seed)
        self._limits, self._levels, self._beat_ms = limits or Limits(), levels or Levels(), beat_ms
        self._lives: Counter[str] = Counter()
        self._events: list[tuple[float, int, str, int, Input]] = []
        self._order = 0
        self._timers: dict[tuple[str, str], int] = {}
        self._arrivals: dict[tuple[str, str], float] = {}

    def join(self, site: str, others: tuple[str, ...]) -> None:
        """A site comes, or comes back, and knows of others."""
        self._lives[site] += 1
        self.up[site] = Directory(site, self._lives[site], self._limits, self._levels)
        self._later(self._rng.uniform(0.0, self._beat_ms), site, Beat())
        self.tell(site, Begin(others))

    def leave(self, site: str) -> None:
        """A site leaves in order."""
        self.tell(site, End())
        del self.up[site]

    def crash(self, site: str) -> None:
        """A site is gone without a word."""
        del self.up[site]

    def offers(self, site: str, names: tuple[str, ...]) -> None:
        """What a site makes now."""
        self.tell(site, OffersAre(names))

    def loaded(self, site: str, load: float) -> None:
        """How loaded a site is now."""
        self.tell(site, Loaded(load))

    def seek(self, site: str, number: int, name: str) -> None:
        """Somebody asks; what is found stands in `found`, in time."""
        self.tell(site, Seek(number, name))

    def updates(self) -> int:
        """Messages sent because a load had left its level, by the sites that are up."""
        return sum(machine.updates for machine in self.up.values())

    def run(self, for_ms: float) -> None:
        """Lets time pass."""
        end_ms = self.now_ms + for_ms
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, order, site, life, input = heapq.heappop(self._events)
            if site not in self.up or (life and life != self._lives[site]):
                continue
            if isinstance(input, TimerFired):
                if self._timers.get((site, input.name)) != order:
                    continue  # cancelled, or set anew
                del self._timers[site, input.name]
            if isinstance(input, Beat):
                self._later(self._beat_ms, site, input)
            self.tell(site, input)
        self.now_ms = end_ms

    def tell(self, site: str, input: Input) -> None:
        """A machine takes one step."""
        for effect in self.up[site].handle(input):
            self._perform(site, effect)

    def _perform(self, site: str, effect: Effect) -> None:
        match effect:
            case Send(to=to, message=message):
                self.sent[type(message).__name__] += 1
                at_ms = self.now_ms + self._rng.uniform(*DELAY_MS)
                # What one site says to another arrives in order.
                at_ms = self._arrivals[site, to] = max(at_ms, self._arrivals.get((site, to), 0.0))
                self._push(at_ms, to, 0, Received(site, message))
            case SetTimer(name=name, after_ms=after_ms):
                self._timers[site, name] = self._later(after_ms, site, TimerFired(name))
            case CancelTimer(name=name):
                self._timers.pop((site, name), None)
            case Found(number=number):
                self.found[number] = effect

    def _later(self, after_ms: float, site: str, input: Input) -> int:
        return self._push(self.now_ms + after_ms, site, self._lives[site], input)

    def _push(self, at_ms: float, site: str, life: int, input: Input) -> int:
        self._order += 1
        heapq.heappush(self._events, (at_ms, self._order, site, life, input))
        return self._order


def load_updates(
    levels: int, sites: int = 30, steps: int = 300, top: float = 10.0, seed: int = 1, pull: float = 0.3
) -> dict[str, Any]:
    """Load updates for so many levels, loads wandering about as run queues do (Synergy Fig. 3.25, in shape).

    Each site offers one stream, of which one copy is held, as published. Loads go towards a mean that itself
    changes, by a share `pull` of what is lacking at every step: with 1 they jump, as those do that one component makes.
    """
    many = ManySites(seed, Limits(copies=1), Levels(levels, top))
    names = tuple(f"site{number}" for number in range(sites))
    rng = random.Random(seed)
    for name in names:
        many.join(name, names)
    many.run(60_000.0)
    for name in names:
        many.offers(name, (f"stream of {name}",))
    loads, means = dict.fromkeys(names, 0.0), dict.fromkeys(names, 2.0)
    told = 0
    for _ in range(steps):
        for name in names:
            if rng.random() < 1 / 60:
                means[name] = rng.choice((0.5, 2.0, 6.0, 12.0))
            loads[name] = max(0.0, loads[name] + pull * (means[name] - loads[name]) + rng.gauss(0.0, 0.15))
            level = many.up[name].level
            many.loaded(name, loads[name])
            told += many.up[name].level != level
        many.run(1_000.0)
    return {"levels": levels, "changes": told, "messages": many.updates(), "looks": sites * steps}
