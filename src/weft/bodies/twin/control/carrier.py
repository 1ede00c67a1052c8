"""Who carries machines in virtual time? Messages over least-delay paths, timers, facts; and the story of it all."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from weft.protocol import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Message,
    Received,
    Send,
    SetTimer,
    TimerFired,
    story_line,
)
from weft.protocol.change_messages import MESSAGES

NS_PER_MS = 1_000_000
Perform = Callable[[str, Effect], None]
Delay = Callable[[str, str], int | None]


class Carrier:
    """Feeds machines one input at a time, in the order of virtual time and then of when it was asked for."""

    def __init__(self, delay_ns: Delay, perform: Perform, now_ns: int) -> None:
        self.machines: dict[str, Machine] = {}
        self.story: list[str] = []
        self.now_ns = now_ns
        self._delay_ns = delay_ns
        self._perform = perform
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0
        self._timers: dict[tuple[str, str], int] = {}
        self._lives: dict[str, int] = {}

    def at(self, time_ns: int, do: Callable[[], None]) -> None:
        """Does something at a moment."""
        heapq.heappush(self._queue, (time_ns, self._asked, do))
        self._asked += 1

    def next_ns(self) -> int | None:
        """When something is due next."""
        return self._queue[0][0] if self._queue else None

    def step(self) -> None:
        """Does what is due next."""
        self.now_ns, _, do = heapq.heappop(self._queue)
        do()

    def add(self, machine: Machine) -> None:
        """A machine begins, or begins anew."""
        self.machines[machine.name] = machine
        self._lives[machine.name] = self._lives.get(machine.name, 0) + 1

    def lose(self, name: str) -> None:
        """A machine is gone with its timers; messages to it are lost."""
        self.machines.pop(name, None)
        self._timers = {key: setting for key, setting in self._timers.items() if key[0] != name}

    def feed(self, name: str, fact: Input, after_ns: int = 0) -> None:
        """Tells a machine something, unless it is lost before that."""
        life = self._lives.get(name)

        def tell() -> None:
            if self._lives.get(name) == life:
                self.take(name, fact)

        self.at(self.now_ns + after_ns, tell)

    def take(self, name: str, fact: Input) -> None:
        """A machine takes an input, and its effects are performed in order."""
        machine = self.machines.get(name)
        if machine is None:
            return
        effects = machine.handle(fact)
        self.story.append(story_line(self.now_ns / NS_PER_MS, name, fact, effects))
        for effect in effects:
            match effect:
                case Send(to=to, message=message):
                    self._send(name, to, message)
                case SetTimer(name=timer, after_ms=after_ms):
                    self._set(name, timer, after_ms)
                case CancelTimer(name=timer):
                    self._timers.pop((name, timer), None)
                case _:
                    self._perform(name, effect)

    def _send(self, sender: str, to: str, message: Message) -> None:
        delay_ns = 0 if isinstance(message, MESSAGES) else self._delay_ns(sender, to)
        if delay_ns is not None:
            self.at(self.now_ns + delay_ns, lambda: self.take(to, Received(sender, message)))

    def _set(self, name: str, timer: str, after_ms: int) -> None:
        setting = self._timers[name, timer] = self._asked

        def fire() -> None:
            if self._timers.get((name, timer)) == setting:
                del self._timers[name, timer]
                self.take(name, TimerFired(timer))

        self.at(self.now_ns + after_ms * NS_PER_MS, fire)
