"""Which streams does a site follow, and what does it give to others? One for each process with sites of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait

from weft.bodies.live.mirrors.following import Follower, tell_fence
from weft.bodies.live.mirrors.packs import Packs, fetch_pack
from weft.bodies.live.mirrors.serving import Home
from weft.bodies.live.mirrors.words import FENCE, FOLLOW, PACK, Holds
from weft.bodies.live.wire.frames import BadFrame
from weft.bodies.live.wire.greeting import NotBelieved
from weft.bodies.live.wire.parties import Party, site
from weft.bodies.live.wire.port import Port
from weft.spark.channels.folders import Folders
from weft.spark.channels.mirror import Mirror

ASK_S_MAX = 60.0
NO_FENCE = 1
"""The epoch of a fence that fences nobody off: asked with it, a site only says how far it has come."""


class Mirroring:
    """The streams of one site over its port: those that it gives, and its copies of others'."""

    def __init__(self, port: Port, folders: Folders, tell: Callable[[str], None] = lambda line: None) -> None:
        self.folders = folders
        self._port = port
        self._tell = tell
        self._followers: dict[str, Follower] = {}
        self._lock = threading.Lock()
        self.home, packs = Home(folders), Packs(folders)
        port.serve(FOLLOW, self.home.follow)
        port.serve(FENCE, self.home.fence)
        port.serve(PACK, packs.give)

    def follow(self, stream: str, home: str) -> None:
        """Keep a copy of a stream that is written at another site; harmless where that is so already.

        Where it is written here from now on, following ends.
        """
        with self._lock:
            held = self._followers.get(stream)
            if held is not None and held.home == site(home):
                return
            self._drop(stream)
            if site(home) != self._port.me:
                follower = Follower(self._port, self._log(stream), site(home), self._tell)
                self._followers[stream] = follower
                self._port.do(follower.start()).result(ASK_S_MAX)

    def unfollow(self, stream: str) -> None:
        """Keep a stream's copy no longer up to date; its readers' places are the home's to forget."""
        with self._lock:
            self._drop(stream)

    def followed(self) -> dict[str, str]:
        """The streams that are followed, and their homes."""
        with self._lock:
            return {stream: follower.home.site for stream, follower in self._followers.items()}

    def mirrored(self, streams: Iterable[str]) -> list[str]:
        """Those of some streams that are mirrored."""
        return [name for name in streams if isinstance(self.folders.stream(name), Mirror)]

    def is_whole(self, stream: str) -> bool:
        """Whether this site's copy of a stream has all that its home holds now; not, where that cannot be told."""
        home = self.followed().get(stream)
        if home is None:
            return True  # it is written here
        asking = tell_fence(self._port, site(home), self.folders.run, stream, NO_FENCE)
        try:
            return self._log(stream).next_segment() >= self._port.do(asking).result(ASK_S_MAX).following
        except (OSError, TimeoutError, asyncio.IncompleteReadError, BadFrame, NotBelieved):
            return False

    def take_away(self, stream: str, epoch: int, sites: Iterable[str], within_s: float = ASK_S_MAX) -> dict[str, Holds]:
        """Tell sites that a stream belongs to a greater epoch; what each that answered in time holds of it."""
        asked: dict[str, Future[Holds]] = {}
        for name in sites:
            if site(name) == self._port.me:
                self._log(stream).hear_fence(epoch)
                held = self._log(stream).counted()
                asked[name] = Future()
                asked[name].set_result(Holds(held.epoch, held.following))
            else:
                asking = tell_fence(self._port, site(name), self.folders.run, stream, epoch)
                asked[name] = self._port.do(asking)
        wait(asked.values(), within_s)
        answered = {name: one for name, one in asked.items() if one.done() and one.exception() is None}
        return {name: one.result() for name, one in answered.items()}

    def fetch(self, from_site: str, fragment: str, generation: int, streams: Iterable[str]) -> None:
        """Bring a fragment's checkpoint, and the streams that it writes, from the site where it ran to this one."""
        names = tuple(streams)
        for stream in names:
            self.unfollow(stream)
        fetching = fetch_pack(self._port, Party("site", from_site), self.folders, fragment, generation, names)
        self._port.do(fetching).result(ASK_S_MAX)

    def close(self) -> None:
        """Follow nothing any more."""
        with self._lock:
            for stream in list(self._followers):
                self._drop(stream)

    def _drop(self, stream: str) -> None:
        follower = self._followers.pop(stream, None)
        if follower is not None:
            self._port.do(follower.stop()).result(ASK_S_MAX)

    def _log(self, stream: str) -> Mirror:
        log = self.folders.stream(stream)
        assert isinstance(log, Mirror)
        return log
