"""Who decides live which wish is carried out when? A controller, in a thread of its own, on the way to the desk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from weft.bodies.live.calibration import known_costs
from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.moves import ADVISED, Asked
from weft.bodies.live.transport import CONTROLLER, Transport
from weft.model import Deployment, Placement
from weft.plan import counting_hops
from weft.protocol.control import ASKED, Advise, AskFor, Controller, Decisions, Decline, Rounds, shifts_of
from weft.protocol.machine import Effect

THE_END = "the run ends"


class Controlling:
    """A controller that every wish passes on its way to the desk; without it wishes would go there directly."""

    def __init__(
        self, deployment: Deployment, running: Callable[[], Placement], transport: Transport, story: Tell,
        advises: bool = False,
    ) -> None:  # fmt: skip
        self.tell_desk: Callable[[Asked], None] = lambda asked: None
        self._running = running
        self._rounds = Rounds(counting_hops(deployment, known_costs()[0].hop_ms), running())
        machine = Controller(CONTROLLER.role, advises=advises)
        self._carrier = Carrier(machine, CONTROLLER, transport, self._perform, story)
        self._waiting: dict[int, Asked] = {}
        self._lock = threading.Lock()
        self._leaving = False

    def start(self) -> None:
        """Begin."""
        self._carrier.start()

    def wish(self, asked: Asked) -> None:
        """Let a wish wait until nothing beside it is being changed."""
        with self._lock:
            wished = self._rounds.wished(asked.wish, self._running())
            if asked.numbers is not None:
                self._rounds.agreed(wished.number, asked.wish, wished.shifts, asked.at_s, asked.numbers, ASKED)
            self._waiting[wished.number] = asked
            asked.told = partial(self._over, wished.number)
        if self._leaving:
            self.leave()
        else:
            self._carrier.feed(wished)

    def log(self, asked: Asked, state: str, why: str = "") -> None:
        """Put what sites have agreed upon, and nobody asks for, into the log of decisions."""
        with self._lock:
            shifts = shifts_of(asked.wish, self._running())
            self._rounds.agreed(None, asked.wish, shifts, asked.at_s, asked.numbers or {}, state, why)

    @property
    def decisions(self) -> Decisions:
        """What rules and sites wished, by which numbers, and what became of it."""
        return self._rounds.decisions

    def know(self, deployment: Deployment) -> None:
        """Judge what touches what by another deployment from now on."""
        with self._lock:
            self._rounds.know(counting_hops(deployment, known_costs()[0].hop_ms))

    def look_after(self) -> None:
        """Let nobody wait for a controller that has failed: what it holds goes on to the desk."""
        if self._carrier.failure is not None:
            for number in list(self._waiting):
                self._hand_on(number)

    def leave(self) -> None:
        """What still waits is not asked for."""
        self._leaving = True
        for number in list(self._waiting):
            self._decline(number, THE_END)

    def stop(self) -> None:
        """Say no more."""
        self._carrier.stop()

    def _over(self, number: int, why_not: str | None) -> None:
        with self._lock:
            fact = self._rounds.over(number, why_not, self._running())
        self._carrier.feed(fact)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case AskFor(number=number):
                self._hand_on(number)
            case Decline(number=number, why=why):
                self._decline(number, why)
            case Advise(number=number, who=who):
                self._decline(number, f"{ADVISED}: {who} changes nothing where `control.advise` is on")

    def _hand_on(self, number: int) -> None:
        asked = self._waiting.pop(number, None)
        if asked is not None:
            self.tell_desk(asked)

    def _decline(self, number: int, why: str) -> None:
        asked = self._waiting.pop(number, None)
        if asked is not None:
            asked.told = lambda why_not: None
            asked.end("refused", why, time.time() * 1000)
            with self._lock:
                self._rounds.decisions.over(number, why)
