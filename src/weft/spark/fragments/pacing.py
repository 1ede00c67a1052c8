"""How much does a site work that has a cap? No more batches at once, and no more a second, than its capacity allows.

Spark's pools share cores out but set no upper bound. A site of capacity 2 has two places in which a batch may be
worked out, one of capacity 0.5 has one, in which it does half a second of work in each second: after a batch the place
stays empty until the site would have needed so long for what its tasks took. What was not used is not saved up.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.05


class Places:
    """The places of one site, each with the moment from which it is free; time is passed in."""

    def __init__(self, capacity: float) -> None:
        count = max(1, math.ceil(capacity))
        self.speed = capacity / count
        self._free_s = [-math.inf] * count

    def take(self, now_s: float) -> int | None:
        """A place that is free now, from now on taken; None where there is none."""
        for place, free_s in enumerate(self._free_s):
            if free_s <= now_s:
                self._free_s[place] = math.inf
                return place
        return None

    def give(self, place: int, began_s: float, now_s: float, worked_s: float) -> None:
        """A batch is over: its place is free when as much time has passed as the site would have needed for it."""
        self._free_s[place] = max(now_s, began_s + worked_s / self.speed)


class Pace:
    """Lets the batches of one site in, in the order in which they came."""

    def __init__(self, capacity: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._places = Places(capacity)
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._queue: deque[object] = deque()
        self._held: dict[int, float] = {}
        self._used_s = self._told_s = 0.0

    def used_s(self) -> float:
        """Seconds of work so far; of a batch under way, the time for which it has held its place."""
        with self._lock:
            now_s = self._clock_s()
            used_s = self._used_s + sum(now_s - began_s for began_s in self._held.values())
            self._told_s = max(self._told_s, used_s)  # a batch may turn out to have been less work than it seemed
            return self._told_s

    @contextmanager
    def turn(self, over: Callable[[], bool], worked_s: Callable[[], float | None] = lambda: None) -> Iterator[bool]:
        """Wait for a place, and hold it; False, without one, where it is `over` before that.

        `worked_s` is what the tasks of the batch took, asked when it is over; None, as long as it has held the place.
        """
        place = self._wait(over)
        if place is None:
            yield False
            return
        began_s = self._clock_s()
        with self._lock:
            self._held[place] = began_s
        try:
            yield True
        finally:
            took_s = worked_s()
            with self._lock:
                now_s = self._clock_s()
                took_s = now_s - began_s if took_s is None else took_s
                self._places.give(place, began_s, now_s, took_s)
                self._used_s += took_s
                del self._held[place]

    def _wait(self, over: Callable[[], bool]) -> int | None:
        ticket = object()
        with self._lock:
            self._queue.append(ticket)
        try:
            while not over():
                with self._lock:
                    place = self._places.take(self._clock_s()) if self._queue[0] is ticket else None
                if place is not None:
                    return place
                time.sleep(LOOK_S)
            return None
        finally:
            with self._lock:
                self._queue.remove(ticket)
