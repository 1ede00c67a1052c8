"""What does a site tell the directory? Which streams its fragments make, by meaning, and how loaded it is.

What runs is looked at every half second and told where it has changed; the load is looked at once a beat, and the
machine (`protocol/directory`) tells it where it has left its level. The desk's questions are put to the directory by
the site's guide: who asks need not be on the ring.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from weft.bodies.live.carrier import DIRECTORIES, Carrier, Tell
from weft.bodies.live.engine import Launchable
from weft.bodies.live.transport import FINDING, Address, Transport, directory, guide
from weft.model import Deployment, Site
from weft.plan.dataflow.meanings import stream_names
from weft.protocol.directory import (
    AskOffers,
    Beat,
    Begin,
    Directory,
    End,
    Found,
    Loaded,
    OffersAre,
    Seek,
    TellOffers,
)
from weft.protocol.directory.words import NAMES_MAX
from weft.protocol.machine import Effect, Input
from weft.protocol.messages import BadMessage, decode, encode

BEAT_S = 10.0
LOOK_S = 0.5
ASKED_MAX = 4_096
"""Questions of others under way at once; all end, so that only a flood comes to more."""

Running = Callable[[], Mapping[str, tuple[int, Launchable]]]
"""What runs at the site now, by fragment, each with its epoch."""


class Offering:
    """A site's part of the directory, with its hands."""

    def __init__(
        self, site: Site, life: int, deployment: Callable[[], Deployment], running: Running,
        used_s: Callable[[], float | None], transport: Transport, story: Tell,
    ) -> None:  # fmt: skip
        self.site = site.name
        self._capacity = site.capacity
        self._deployment = deployment
        self._running = running
        self._used_s = used_s
        self._transport = transport
        self._story = story
        self._streams: dict[tuple[str, int], tuple[str, ...]] = {}
        self._offered: tuple[str, ...] = ()
        self._used: tuple[float, float] | None = None
        self._asked: dict[int, int] = {}
        self._questions = 0
        self._gone = threading.Event()
        machine = Directory(site.name, life)
        self.carrier = Carrier(machine, directory(site.name), transport, self._perform, story, DIRECTORIES, _is_routine)
        self._thread = threading.Thread(target=self._look, name=f"directory-{site.name}", daemon=True)

    def start(self) -> None:
        """Tell the others that the site is there, and go on telling."""
        self.carrier.start()
        self.carrier.feed(Begin(tuple(one.name for one in self._deployment().sites)))
        self._transport.open(guide(self.site), self._deliver)
        self._thread.start()

    def stop(self) -> None:
        """Leave the directory in order: what is offered here is found no more."""
        self._gone.set()
        self._transport.close(guide(self.site))
        self.carrier.feed(End())
        self.carrier.stop()

    def crash(self) -> None:
        """Be gone without a word: what was offered here is found until its lease ends."""
        self._gone.set()
        self._transport.close(guide(self.site))
        self.carrier.kill()

    # ---- what runs, and how loaded the site is

    def _look(self) -> None:
        begun_s = time.monotonic()
        weigh_s, beat_s = begun_s + BEAT_S / 2, begun_s + BEAT_S
        # Where the machine has failed, which the story tells, nobody would take what is fed.
        while not self._gone.wait(min(LOOK_S, BEAT_S / 4)) and self.carrier.failure is None:
            self._tell_offers()
            if time.monotonic() >= weigh_s:
                weigh_s = time.monotonic() + BEAT_S
                self._tell_load()
            if time.monotonic() >= beat_s:
                beat_s = time.monotonic() + BEAT_S
                self.carrier.feed(Beat())

    def _tell_offers(self) -> None:
        running = {(fragment, epoch): run for fragment, (epoch, run) in list(self._running().items())}
        self._streams = {key: self._streams.get(key) or run.standing().fragment.streams for key, run in running.items()}
        names = stream_names(self._deployment())
        made = {names[stream] for streams in self._streams.values() for stream in streams if stream in names}
        offered = tuple(sorted(made))[: NAMES_MAX - 1]  # the site's own name is one more
        if offered != self._offered:
            self._offered = offered
            self.carrier.feed(OffersAre(offered))

    def _tell_load(self) -> None:
        """The share of its capacity that its tasks have used since the last look."""
        used_s, now_s = self._used_s(), time.monotonic()
        before, self._used = self._used, None if used_s is None else (now_s, used_s)
        if before is None or used_s is None:
            return
        share = max(0.0, used_s - before[1]) / (now_s - before[0])
        self.carrier.feed(Loaded(round(share / self._capacity, 4) if self._capacity else 0.0))

    # ---- others' questions

    def _deliver(self, sender: Address, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage as error:
            self._story(f"# {self.site} refused a message from {sender}: {error}")
            return
        if sender != FINDING or not isinstance(message, AskOffers) or len(self._asked) >= ASKED_MAX:
            return
        self._questions += 1
        self._asked[self._questions] = message.number
        self.carrier.feed(Seek(self._questions, message.name))

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Found):
            number = self._asked.pop(effect.number, None)
            if number is not None:
                told = TellOffers(number, effect.name, effect.offers)
                self._transport.send(guide(self.site), FINDING, encode(told))


def _is_routine(fact: Input, effects: list[Effect]) -> bool:
    """What is said again at every beat, loads and questions are left out of the story; what is offered is not."""
    return not isinstance(fact, Begin | OffersAre | End)
