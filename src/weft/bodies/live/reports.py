"""What does the desk hear of sites? Takes in their reports, answers them, and asks for more at the end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping

from weft.bodies.live.carrier import Tell
from weft.bodies.live.transport import REPORTS, Address, Transport, reporter
from weft.protocol.messages import BadMessage, Message, decode, encode
from weft.protocol.reporting import (
    AskReport,
    Event,
    Inbox,
    Report,
    SettleSinks,
    SinksSettled,
    SourcesEnd,
    SourcesMayEnd,
)

UNHEARD_MAX = 10_000
AGAIN_S = 1.0
ANSWER_S_MAX = 20.0
SETTLE_S_MAX = 600.0

Hear = Callable[[str, str, Event, float], None]
"""Hears of each event once: the site, its life, the event, and what that site's clock shows now, in ms."""


class Reports:
    """What sites have told, and how they are asked."""

    def __init__(self, transport: Transport, hear: Hear, note_closing: Callable[[], None], story: Tell) -> None:
        self.inbox = Inbox()
        self._transport = transport
        self._hear = hear
        self._note_closing = note_closing
        self._story = story
        self._unheard: deque[tuple[Address, bytes, float]] = deque(maxlen=UNHEARD_MAX)
        self._settled: dict[str, SinksSettled] = {}
        # Greater than any of an earlier life of this desk, an answer to which may still come.
        self._question = time.time_ns() // 1_000_000

    def start(self) -> None:
        """Begin to hear."""
        self._transport.open(REPORTS, self._deliver)

    def stop(self) -> None:
        """Hear no more."""
        self._transport.close(REPORTS)

    def _deliver(self, sender: Address, data: bytes) -> None:
        self._unheard.append((sender, data, time.monotonic()))

    def look(self) -> None:
        """Take in what has come, and answer it."""
        while self._unheard:
            sender, data, at_s = self._unheard.popleft()
            if sender != reporter(sender.site):
                continue
            try:
                self._take(sender.site, decode(data), at_s)
            except BadMessage as error:
                self._story(f"# the desk refused a message from {sender}: {error}")

    def _take(self, site: str, message: Message, at_s: float) -> None:
        match message:
            case Report():
                events, answer = self.inbox.take(site, message)
                self.tell(site, answer)
                now_ms = message.at_ms + 1000 * (time.monotonic() - at_s)
                for event in events:
                    self._hear(site, message.life, event, now_ms)
            case SourcesEnd(fragment=fragment):
                self._note_closing()
                self.tell(site, SourcesMayEnd(fragment))
            case SinksSettled():
                self._settled[site] = message

    def tell(self, site: str, message: Message) -> None:
        """Tell who reports for a site something; it may be lost."""
        self._transport.send(REPORTS, reporter(site), encode(message))

    def ask(self, sites: Collection[str], seconds: float = ANSWER_S_MAX) -> set[str]:
        """Let sites tell all they know; those that did not, within so many seconds."""
        self._question += 1
        question = AskReport(self._question)

        def missing() -> set[str]:
            heard = self.inbox.sites
            return {site for site in sites if site not in heard or heard[site].complete < question.number}

        return self._until(missing, dict.fromkeys(sites, question), seconds)

    def settle(self, sinks: Mapping[str, tuple[str, ...]], seconds: float = SETTLE_S_MAX) -> dict[str, str]:
        """Let sites settle their sinks of update mode; what went wrong, by site."""
        self._question += 1
        number = self._question

        def missing() -> set[str]:
            return {site for site in sinks if site not in self._settled or self._settled[site].number != number}

        silent = self._until(missing, {site: SettleSinks(number, names) for site, names in sinks.items()}, seconds)
        told = {site: self._settled[site].reason for site in sinks if site not in silent}
        return {**{site: reason for site, reason in told.items() if reason}, **dict.fromkeys(silent, "no answer")}

    def _until(self, missing: Callable[[], set[str]], questions: Mapping[str, Message], seconds: float) -> set[str]:
        """Ask, and ask again, until all have answered; those that have not in time."""
        deadline, due_s = time.monotonic() + seconds, 0.0
        while left := missing():
            if time.monotonic() >= deadline:
                return left
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + AGAIN_S
                for site in sorted(left):
                    self.tell(site, questions[site])
            time.sleep(0.01)
            self.look()
        return set()
