"""Which copies must a site keep by the plan in force, and for whom must it keep its own streams?

The journal says it, which is written before anything starts by it. Streams that fragments here read are followed at
their homes, also when those have moved; a copy that nobody here reads any more is let go. What a home keeps for readers
at other sites they tell it themselves; it awaits those of the plan that have not spoken yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from weft.bodies.live import journal
from weft.bodies.live.mirrors.mirroring import Mirroring
from weft.bodies.live.state import State
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.task import Task, homes_of
from weft.spark.channels.channel import fragment_of
from weft.spark.channels.keeping import await_readers

AGAIN_S = 2.0


class ByPlan:
    """Looks at the journal when it has changed, and now and then."""

    def __init__(self, site: str, state: State, mirroring: Mirroring) -> None:
        self.site = site
        self.state = state
        self.mirroring = mirroring
        self._asked: dict[str, int] = {}  # streams that a change under way follows, and the number of its plan
        self._seen: tuple[int, int] | None = None
        self._due_s = 0.0
        self._lock = threading.Lock()

    def asked(self, task: Task) -> None:
        """A fragment is made ready: the streams that it reads are followed, before any plan says so."""
        for stream in self.mirroring.mirrored(task.homes):
            with self._lock:
                self._asked[stream] = max(task.plan, self._asked.get(stream, 0))
            self.mirroring.follow(stream, task.homes[stream])

    def hold(self, streams: Iterable[str], task: Task) -> None:
        """Streams are brought here for a change: nothing else touches them until its plan is in force, or it is off."""
        with self._lock:
            self._asked.update((stream, task.plan) for stream in streams)

    def off(self, task: Task) -> None:
        """A change is off: what was followed for it is followed as the plan in force has it."""
        with self._lock:
            self._asked = {stream: plan for stream, plan in self._asked.items() if plan != task.plan}
            self._seen = None

    def look(self) -> None:
        """Follow, keep and let go as the plan in force has it, where that may have changed."""
        with self._lock:
            seen = self._mark()
            if seen is None or (seen == self._seen and time.monotonic() < self._due_s):
                return
            held = journal.read(self.state)
            if held is None:
                return
            self._keep(held.number, held.fragments)
            self._seen, self._due_s = seen, time.monotonic() + AGAIN_S

    def _mark(self) -> tuple[int, int] | None:
        try:
            found = (self.state.path / journal.FILE).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _keep(self, number: int, fragments: Sequence[Fragment]) -> None:
        own = [one for one in fragments if one.site == self.site]
        written = {stream for one in own for stream in one.outputs}
        homes = {stream: home for one in own for stream, home in homes_of(one, fragments).items()}
        under_way = {stream for stream, plan in self._asked.items() if plan > number}
        for stream in self.mirroring.mirrored(homes):
            if stream not in under_way:
                self.mirroring.follow(stream, homes[stream])
        for stream in self.mirroring.followed():
            if stream not in homes and stream not in under_way:
                self.mirroring.unfollow(stream)
        await_readers(self.mirroring.folders, fragments, written)
        for channel in self.mirroring.folders.streams():
            if not self.mirroring.mirrored((channel.name,)):
                continue  # all sites see one log, which the desk looks after: readers at other sites are none of ours
            if channel.name not in under_way:
                there = fragments if channel.name in written else own
                reading = {one.id for one in there if channel.name in one.channels}
                told = {fragment_of(reader) for reader in self.mirroring.home.told(channel.name)}
                channel.forget_but(reading | told if channel.name in written else reading)
