"""What does a site know of the delays of its queries? What it measures it tells all their sites, and they tell it.

It carries the machine of `protocol/feedback` at an address of its own. Which queries it takes part in, and at which
sites they run, the desk says; delays go from site to site without the desk.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import msgspec

from weft.bodies.live.balancing.loads import Running
from weft.bodies.live.carrier import DELAYS, Carrier, Tell
from weft.bodies.live.feedback.times import SiteTimes
from weft.bodies.live.transport import Transport, delays
from weft.model import Deployment, dataflow
from weft.plan.network.paths import Paths
from weft.protocol.feedback import (
    DelayBeat,
    DelayMeasured,
    DelayPart,
    DelayParts,
    DelaysAre,
    DelayWord,
    Feedback,
    LeavesOff,
    TakesPart,
    slack_at,
)
from weft.protocol.machine import Effect, Input
from weft.protocol.messages import Message
from weft.protocol.reporting import Measured, SiteNow

BEAT_S = 5.0


class SiteFeedback:
    """The delays of a site's queries, with what tells and hears them."""

    def __init__(
        self, site: str, life: int, deployment: Callable[[], Deployment], running: Callable[[], Running],
        transport: Transport, story: Tell,
    ) -> None:  # fmt: skip
        self.site = site
        self._deployment, self._running = deployment, running
        self._times = SiteTimes()
        self._parts: dict[str, DelayPart] = {}
        self._took: dict[str, int] = {}
        self._said: dict[str, tuple[str, ...]] = {}
        self._beat_s: float | None = None
        self._known: dict[str, tuple[DelayWord, ...]] = {}
        self._paths: tuple[Deployment, Paths] | None = None
        self._lock = threading.Lock()
        self.carrier = Carrier(Feedback(site, life), delays(site), transport, self._perform, story, DELAYS, _is_routine)

    def start(self) -> None:
        """Begin to hear others."""
        self.carrier.start()

    def stop(self) -> None:
        """Say no more."""
        self.carrier.stop()

    def crash(self) -> None:
        """Be gone: others believe what was said here until its lease ends."""
        self.carrier.kill()

    def hear(self, message: Message) -> None:
        """The desk says where queries run."""
        if not isinstance(message, DelayParts):
            return
        parts = {part.query: part for part in message.parts if self.site in part.sites}
        for query in [query for query in self._parts if query not in parts]:
            self.carrier.feed(LeavesOff(query))
            self._said.pop(query, None)
            with self._lock:
                self._known.pop(query, None)
        for query, part in parts.items():
            if part != self._parts.get(query):
                self.carrier.feed(TakesPart(query, part.hub, part.sites))
        self._parts = parts

    def look(self, measured: Measured, measured_s: float) -> None:
        """Take in what was measured; where it is time, tell it."""
        self._times.add(measured, measured_s)
        if self._beat_s is None:
            self._beat_s = measured_s
        elif measured_s >= self._beat_s + BEAT_S:
            self._beat(measured_s)
            self._beat_s = measured_s

    def _beat(self, now_s: float) -> None:
        deployment = self._deployment()
        running = {name: fragment for name, (_, fragment) in self._running().items()}
        took, results = self._times.look(deployment, running, now_s)
        here = [stream for fragment in running.values() for stream in fragment.streams]
        self._took = {stream: self._took[stream] for stream in here if stream in self._took} | took
        flow, asked = dataflow(deployment), {query.name for query in deployment.queries}
        for query in self._parts:
            behind = [node.stream for node in flow.behind(query)] if query in asked else []
            mine = tuple((stream, self._took[stream]) for stream in behind if stream in self._took)
            operators = tuple(stream for stream, _ in mine)
            news = query in results or any(stream in took for stream in behind)
            if news or operators != self._said.get(query, ()):
                self._said[query] = operators
                self.carrier.feed(DelayMeasured(query, mine, results.get(query)))
            self.carrier.feed(DelayBeat(query))

    def told(self, now: SiteNow) -> SiteNow:
        """How the site stands, with the slack of its operators as it knows it."""
        with self._lock:
            known = {query: words for query, words in sorted(self._known.items()) if query in self._parts}
        if not known:
            return now
        deployment, slack = self._deployment(), dict[str, float]()
        if self._paths is None or self._paths[0] is not deployment:
            self._paths = (deployment, Paths(deployment))
        paths, asked = self._paths[1], {query.name for query in deployment.queries}
        for query, words in known.items():
            found = slack_at(self.site, deployment, query, words, paths) if query in asked else None
            slack |= {name: round(ms, 1) for name, ms in (found or {}).items() if math.isfinite(ms)}
        return msgspec.structs.replace(now, slack_ms=slack)

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, DelaysAre):
            with self._lock:
                self._known[effect.query] = effect.words


def _is_routine(fact: Input, effects: list[Effect]) -> bool:
    """What is measured, said and said again is left out of the story; who takes part in what is not."""
    return not isinstance(fact, TakesPart | LeavesOff)
