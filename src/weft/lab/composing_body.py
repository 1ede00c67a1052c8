"""A body for composing in virtual time: keepers and composers, messages that take as long as links, and a directory.

The directory answers at once from what runs, as one that is never stale would; how long asking takes is counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

from weft.plan.composing.points import Network
from weft.protocol.composing import (
    Admitted,
    Ask,
    Composer,
    ComposerLimits,
    End,
    Find,
    Found,
    Gone,
    Hosts,
    Instance,
    Keeper,
    KeeperLimits,
    Refused,
    Run,
)
from weft.protocol.composing.words import Probe
from weft.protocol.machine import CancelTimer, Effect, Input, Machine, Received, Send, SetTimer, TimerFired

DESK = ":"
"""A composer is called by its site and this, so that it is told from the keeper of that site."""


class Reply(NamedTuple):
    """What became of a request: when it was asked and answered, and the answer."""

    asked_us: int
    answered_us: int
    answer: Admitted | Refused


class Body:
    """Carries the machines of many sites; times in microseconds."""

    def __init__(
        self, capacities: Mapping[str, int], network: Network, hosts: Mapping[str, tuple[str, ...]],
        others: Callable[[str], tuple[str, ...]] = lambda site: (), find_us: int = 0, probe_us: int = 0,
        composer: ComposerLimits | None = None, keeper: KeeperLimits | None = None,
        kind: type[Keeper] = Keeper,
    ) -> None:  # fmt: skip
        self.network, self.hosts, self.others = network, dict(hosts), others
        self.find_us, self.probe_us, self.limits = find_us, probe_us, composer
        self.machines: dict[str, Machine] = {
            name: kind(name, capacity, network, keeper) for name, capacity in capacities.items()
        }
        self.now_us = 0
        self.probes = self.messages = 0
        self.words: dict[str, Reply] = {}
        self.asked: dict[str, int] = {}
        self.streams: dict[str, dict[str, Instance]] = {}
        self._events: list[tuple[int, int, str, Input, int]] = []
        self._count = 0
        self._timers: dict[tuple[str, str], int] = {}

    def keepers(self) -> list[Keeper]:
        """All keepers."""
        return [one for one in self.machines.values() if isinstance(one, Keeper)]

    def composer(self, site: str) -> str:
        """The composer of a site, which begins when it is first needed."""
        name = f"{site}{DESK}"
        if name not in self.machines:
            self.machines[name] = Composer(name, self.network, self.limits)
        return name

    def ask(self, site: str, ask: Ask, at_us: int) -> None:
        """A query is asked for at a site."""
        self.asked[ask.request] = at_us
        self.at(at_us, self.composer(site), ask)

    def at(self, time_us: int, name: str, input: Input, timer: int = -1) -> None:
        """A machine is told something at a time."""
        self._count += 1
        heapq.heappush(self._events, (time_us, self._count, name, input, timer))

    def run(self, until_us: int | None = None) -> None:
        """Goes on until nothing is left to happen, or up to a time."""
        events, machines, timers = self._events, self.machines, self._timers
        while events and (until_us is None or events[0][0] <= until_us):
            self.now_us, _, name, input, timer = heapq.heappop(events)
            if timer >= 0:
                held = (name, input.name)  # type: ignore[attr-defined]
                if timers.get(held) != timer:
                    continue
                del timers[held]
            for effect in machines[name].handle(input):
                if type(effect) is Send:
                    self._send(name, effect)
                elif type(effect) is SetTimer:
                    self._count += 1
                    timers[name, effect.name] = self._count
                    self.at(self.now_us + effect.after_ms * 1_000, name, TimerFired(effect.name), self._count)
                elif type(effect) is CancelTimer:
                    timers.pop((name, effect.name), None)
                else:
                    self._perform(name, effect)

    def _send(self, name: str, effect: Send) -> None:
        self.messages += 1
        start, end = name.rstrip(DESK), effect.to.rstrip(DESK)
        delay_us = self.network.delay_us(start, end) if start != end else 0
        if type(effect.message) is Probe:
            self.probes += 1
            delay_us += self.probe_us
        self.at(self.now_us + delay_us, effect.to, Received(name, effect.message))

    def _perform(self, name: str, effect: Effect) -> None:
        match effect:
            case Find():
                self.at(self.now_us + self.find_us, name, self.found(effect, name.rstrip(DESK)))
            case Run(instance=instance):
                if instance.stream:
                    self.streams.setdefault(instance.stream, {})[instance.name] = instance
            case End(instance=instance):
                self.streams.get(instance.stream, {}).pop(instance.name, None)
            case Admitted(request=request) | Refused(request=request):
                self.words[request] = Reply(self.asked[request], self.now_us, effect)
            case Gone(request=request):
                self.words.pop(request, None)

    def found(self, find: Find, site: str) -> Found:
        """What the directory says."""
        made = tuple(one for stream in find.streams for _, one in sorted(self.streams.get(stream, {}).items()))
        hosts = tuple(Hosts(does, self.hosts[does]) for does in find.does if does in self.hosts)
        return Found(find.request, find.serial, made, hosts, self.others(site))

    def left_behind(self) -> list[str]:
        """What keepers keep that neither runs nor belongs to an admitted query."""
        admitted = {one.answer.request for one in self.words.values() if isinstance(one.answer, Admitted)}
        return [
            f"{keeper.name}: {key} {row.state}"
            for keeper in self.keepers() for key, row in keeper.rows.items()
            if row.state != "held" or row.attempt.rpartition("#")[0] not in admitted
        ]  # fmt: skip
