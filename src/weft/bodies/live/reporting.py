"""What does a site tell of itself, and do by itself? It measures, reports, and looks after what runs, beside its host.

A report goes out every half second, and at once when a fragment has ended or somebody asks; what a desk must have heard
is kept until it says so (`protocol/reporting/`). A desk that is away changes nothing here.
"""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol

import msgspec

from weft.bodies.live.balancing.site import SiteBalancing
from weft.bodies.live.carrier import Tell
from weft.bodies.live.engine import Engine
from weft.bodies.live.every import Every
from weft.bodies.live.transport import REPORTS, Address, Transport, reporter
from weft.protocol.balancing import BalanceFrom
from weft.protocol.messages import REASON_CHARS_MAX, BadMessage, Message, decode, encode
from weft.protocol.reporting import (
    AskReport,
    Measured,
    Outbox,
    Reported,
    SettleSinks,
    SinksSettled,
    SiteNow,
    SourcesEnd,
    SourcesMayEnd,
)

PERIOD_S = 0.5
STARTING_PERIOD_S = 0.1
LOOK_AFTER_S = 1.0
AGAIN_S = 2.0


class Attending(Protocol):
    """What looks at all that a site measures, hears what its desk says, and adds to what the site tells of itself."""

    def hear(self, message: Message) -> None:
        """The desk has said something that is not for who reports."""

    def look(self, measured: Measured, measured_s: float) -> None:
        """Something was measured at a moment."""

    def told(self, now: SiteNow) -> SiteNow:
        """How the site stands, with what is known here."""


class NotWanted(RuntimeError):
    """A fragment ended while it waited to be let finish its sources."""


class Reporting:
    """The part of a site's body that measures; `measured`: without being asked, too."""

    def __init__(
        self, site: str, engine: Engine, balancing: SiteBalancing, transport: Transport, gone: threading.Event,
        story: Tell, measured: bool,
    ) -> None:  # fmt: skip
        self.site = site
        self.used_s: float | None = None
        """CPU seconds that tasks have taken in this life, as last measured."""
        self.attending: list[Attending] = []
        self._balancing = balancing
        self._engine = engine
        self._transport = transport
        self._gone = gone
        self._story = story
        self._measured = measured
        self._outbox = Outbox(uuid.uuid4().hex)
        self._heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._asked = 0
        self._settled: SinksSettled | None = None
        self._may_end: dict[str, threading.Event] = {}
        self._trouble = ""
        self._starting = False
        self._look_after = Every(LOOK_AFTER_S, engine.look_after)
        self._thread = threading.Thread(target=self._run, name=f"reports-{site}", daemon=True)
        engine.asks_before_end(self._ask_before_end)

    def start(self) -> None:
        """Begin to measure and to answer."""
        self._transport.open(reporter(self.site), self._deliver)
        self._thread.start()

    def stop(self) -> None:
        """Say no more; `gone` is set."""
        self._transport.close(reporter(self.site))
        self._wake.set()

    def wake(self) -> None:
        """Something has started or ended: tell of it soon."""
        self._wake.set()

    def _deliver(self, sender: Address, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage as error:
            self._story(f"# {self.site} refused a message from {sender}: {error}")
            return
        if sender != REPORTS:
            return
        if isinstance(message, SourcesMayEnd):
            self._may_end.setdefault(message.fragment, threading.Event()).set()
        else:
            self._heard.put(message)
            if not isinstance(message, Reported):
                self._wake.set()

    def _send(self, message: Message) -> None:
        self._transport.send(reporter(self.site), REPORTS, encode(message))

    def _run(self) -> None:
        while not self._gone.is_set():
            self._wake.wait(STARTING_PERIOD_S if self._starting else PERIOD_S)
            self._wake.clear()
            if self._gone.is_set():
                return
            try:
                self._hear()
                self._look_after.look()
                self._report()
                self._trouble = ""
            except Exception as error:  # Spark may be about to go: others notice that, and say it
                if self._trouble != str(error):
                    self._trouble = str(error)
                    self._story(f"# {self.site} could not measure: {type(error).__name__}: {error}"[:REASON_CHARS_MAX])

    def _hear(self) -> None:
        while not self._heard.empty():
            match self._heard.get():
                case Reported(life=life, upto=upto):
                    self._outbox.heard(life, upto)
                    if self._outbox.waits:
                        self._wake.set()
                case AskReport(number=number):
                    self._asked = max(number, self._asked)
                case SettleSinks() as asked:
                    self._send(self._settle(asked))
                case BalanceFrom() as told:
                    self._balancing.hear(told)
                case other:
                    for one in self.attending:
                        one.hear(other)

    def _report(self) -> None:
        asked, self._asked = self._asked, 0
        if not self._measured and not asked:
            return
        measured_s = time.monotonic()
        measured = self._engine.measure(finally_=bool(asked))
        self.used_s = measured.now.cpu_s
        # While fragments start, sources wait to hear of it.
        self._starting = not all(one.begun for one in measured.now.fragments)
        for event in measured.events:
            self._outbox.add(event)
        self._balancing.look(measured, measured_s)
        now = msgspec.structs.replace(measured.now, balance=self._balancing.now())
        for one in self.attending:
            one.look(measured, measured_s)
            now = one.told(now)
        for report in self._outbox.reports(now, time.time() * 1000, asked):
            self._send(report)

    def _settle(self, asked: SettleSinks) -> SinksSettled:
        """Once for a question: asked again, the answer is known."""
        if self._settled is None or self._settled.number != asked.number:
            reason = ""
            try:
                self._engine.settle(asked.sinks)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]
            self._settled = SinksSettled(asked.number, reason)
        return self._settled

    def _ask_before_end(self, fragment: str, alive: Callable[[], bool]) -> None:
        """Wait until it is written down which files sources hold; NotWanted where the fragment ends meanwhile."""
        noted = self._may_end.setdefault(fragment, threading.Event())
        while not noted.is_set():
            if self._gone.is_set() or not alive():
                raise NotWanted(f"{fragment} ended before its sources could be finished")
            self._send(SourcesEnd(fragment))
            noted.wait(AGAIN_S)
