"""Who carries a machine live? One thread per machine: inputs in, effects out, timers on the real clock, the story."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from weft.bodies.live.transport import DESK, Address, Transport, balancer, delays, directory, host
from weft.protocol.balancing import Check, balanced_site, balancer_name
from weft.protocol.machine import (
    CancelTimer,
    Effect,
    Input,
    Machine,
    Received,
    Send,
    SetTimer,
    TimerFired,
    story_line,
)
from weft.protocol.messages import BadMessage, FragmentRunning, StartFragment, decode, encode

THE_DESK = "conductor"
"""The desk's name in its machine and in stories."""

Perform = Callable[[Effect], None]
Tell = Callable[[str], None]
Routine = Callable[[Input, list[Effect]], bool]
"""Whether a step is left out of the story, where it changes no state of what the machine looks after."""


class Peers(NamedTuple):
    """Where those are with whom a machine speaks, by the name that it knows them by, and the other way round."""

    address: Callable[[str], Address]
    name: Callable[[Address], str]


HOSTS = Peers(host, lambda address: address.site)
THE_DESK_ALONE = Peers(lambda name: DESK, lambda address: THE_DESK)
DELAYS = Peers(delays, lambda address: address.site)
DIRECTORIES = Peers(directory, lambda address: address.site or THE_DESK)


def balancers(era: int) -> Peers:
    """The other balancers of an era."""
    return Peers(lambda name: balancer(balanced_site(name), era), lambda address: balancer_name(address.site))


class Carrier:
    """Feeds one machine, one input at a time, and performs its effects in order.

    A machine knows others by name: a host its desk, the desk its hosts by their sites, others as `peers` says.
    """

    def __init__(
        self, machine: Machine, address: Address, transport: Transport, perform: Perform, story: Tell,
        peers: Peers | None = None, routine: Routine | None = None,
    ) -> None:  # fmt: skip
        self.machine = machine
        self.address = address
        self.failure: BaseException | None = None
        self._peers = peers or (HOSTS if address == DESK else THE_DESK_ALONE)
        self._transport = transport
        self._perform = perform
        self._story = story
        self._routine: Routine = routine or _is_routine
        self._inputs: queue.SimpleQueue[Input | None] = queue.SimpleQueue()
        self._timers: dict[str, float] = {}
        self._killed = False
        self._thread = threading.Thread(target=self._run, name=f"carrier-{machine.name}", daemon=True)

    def start(self) -> None:
        """Open the place to messages and begin."""
        self._transport.open(self.address, self._deliver)
        self._thread.start()

    def stop(self) -> None:
        """Take no more inputs; what is under way ends first."""
        self._transport.close(self.address)
        self._inputs.put(None)
        if self._thread.is_alive():  # one that never began has nothing to end
            self._thread.join(timeout=30)

    def kill(self) -> None:
        """Stop without a word: what is queued is lost."""
        self._transport.close(self.address)
        self._killed = True
        self._inputs.put(None)

    def feed(self, fact: Input) -> None:
        """Tell the machine something; returns at once."""
        self._inputs.put(fact)

    def _deliver(self, sender: Address, data: bytes) -> None:
        name = self._peers.name(sender)
        if sender != self._peers.address(name):
            self._story(f"# {self.machine.name} refused a message from {sender}: it does not speak with that")
            return
        try:
            self._inputs.put(Received(name, decode(data)))
        except BadMessage as error:
            self._story(f"# {self.machine.name} refused a message from {sender}: {error}")

    def _run(self) -> None:
        try:
            while (fact := self._next()) is not None and not self._killed:
                self._step(fact)
        except BaseException as error:
            self.failure = error
            self._story(f"# {self.machine.name} stopped: {type(error).__name__}: {error}")

    def _next(self) -> Input | None:
        while True:
            due = min(self._timers.items(), key=lambda item: item[1], default=None)
            wait_s = None if due is None else due[1] - time.monotonic()
            if due is not None and wait_s is not None and wait_s <= 0:
                del self._timers[due[0]]
                return TimerFired(due[0])
            try:
                return self._inputs.get(timeout=wait_s)
            except queue.Empty:
                continue

    def _step(self, fact: Input) -> None:
        before = self.machine.states()
        effects = self.machine.handle(fact)
        if before != self.machine.states() or not self._routine(fact, effects):
            self._story(story_line(int(time.time() * 1000), self.machine.name, fact, effects))
        for effect in effects:
            match effect:
                case Send(to=to, message=message):
                    self._transport.send(self.address, self._peers.address(to), encode(message))
                case SetTimer(name=name, after_ms=after_ms):
                    self._timers[name] = time.monotonic() + after_ms / 1000
                case CancelTimer(name=name):
                    self._timers.pop(name, None)
                case _:
                    self._perform(effect)


def _is_routine(fact: Input, effects: list[Effect]) -> bool:
    """Asking after what runs, and the answer, and looks at loads: left out of the story where nothing comes of it."""
    if isinstance(fact, Check):
        return not effects
    asked = isinstance(fact, TimerFired) or (
        isinstance(fact, Received) and isinstance(fact.message, StartFragment | FragmentRunning)
    )
    return asked and all(
        isinstance(effect, SetTimer)
        or (isinstance(effect, Send) and isinstance(effect.message, StartFragment | FragmentRunning))
        for effect in effects
    )
