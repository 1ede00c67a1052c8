"""What does the directory know? The desk asks it as anybody might: who offers each stream, and how loaded sites are.

Every ten seconds one question for each stream of the plan and for each site goes to who holds its name, or to the next
where that one was silent. What nobody has answered for three rounds is not known any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

from weft.bodies.live.carrier import Tell
from weft.bodies.live.transport import FINDING, Address, Transport, guide
from weft.model import Deployment
from weft.plan.dataflow.meanings import stream_names
from weft.protocol.directory import AskOffers, Levels, Offer, TellOffers, holders, site_key
from weft.protocol.messages import BadMessage, decode, encode

FIND_S = 10.0
SILENT_MAX = 3


class Finding:
    """What the desk was told last of who offers what."""

    def __init__(self, transport: Transport, story: Tell) -> None:
        self._transport = transport
        self._story = story
        self._levels = Levels()
        self._streams: Mapping[str, str] = {}
        self._told: dict[str, tuple[Offer, ...]] = {}
        self._silent: dict[str, int] = {}
        self._round = 0
        self._due_s = 0.0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to hear."""
        self._transport.open(FINDING, self._deliver)

    def stop(self) -> None:
        """Hear no more."""
        self._transport.close(FINDING)

    def look(self, deployment: Deployment, lost: Collection[str]) -> None:
        """Ask for all that the deployment makes and for all sites, where the last round is some seconds ago."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + FIND_S
        sites = tuple(sorted(site.name for site in deployment.sites))
        streams = stream_names(deployment)
        wanted = dict.fromkeys([*map(site_key, sites), *streams.values()])
        with self._lock:
            self._round += 1
            self._streams = streams
            # Each is asked once more than it was answered: `silent` counts rounds that nobody has answered.
            before, self._silent = self._silent, {}
            for name in wanted:
                self._silent[name] = before.get(name, 0) + 1
            told = self._told
            self._told = {name: told[name] for name in wanted if name in told and before.get(name, 0) < SILENT_MAX}
        for name in wanted:
            able = holders(name, sites, lost, len(sites))
            if able:
                to = able[before.get(name, 0) % len(able)]
                self._transport.send(FINDING, guide(to), encode(AskOffers(self._round, name)))

    def _deliver(self, sender: Address, data: bytes) -> None:
        try:
            message = decode(data)
        except BadMessage as error:
            self._story(f"# the desk refused a message from {sender}: {error}")
            return
        if sender != guide(sender.site) or not isinstance(message, TellOffers):
            return
        with self._lock:
            if message.number == self._round and message.name in self._silent:  # else it is of a round that is over
                self._told[message.name] = message.offers
                self._silent[message.name] = 0

    def where(self) -> dict[str, tuple[str, ...]]:
        """The sites that offer each stream of the plan, as the directory last told."""
        with self._lock:
            found = {stream: self._told.get(name, ()) for stream, name in self._streams.items()}
        return {stream: tuple(one.site for one in offers) for stream, offers in found.items() if offers}

    def of_site(self, site: str) -> dict[str, Any] | None:
        """How loaded a site is and what it offers, as the directory last told; None where that knows nothing of it."""
        with self._lock:
            itself = self._told.get(site_key(site), ())
        load = next((one.load for one in itself if one.site == site), None)
        if load is None:
            return None
        offers = [stream for stream, sites in self.where().items() if site in sites]
        return {"load": load, "level": self._levels.level(load), "levels": self._levels.count, "offers": offers}
