"""How does one fragment follow another without a gap? Its first batch is worked out beside the other's last.

The old fragment is asked to end with the next batch it begins, and says when that one has begun, for from then on it is
known where it will have come to. The gate of the new one opens at that place: it reads on from there and writes its
first batch aside. Once the change is decided and its turn has come, it only puts that batch in its place. Where the old
one ends elsewhere after all, what lies aside is thrown away.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

BEGIN_S_MAX = 1.0


class LastBatch:
    """Which batch of a run is its last, where others go on from there."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._told: Callable[[], None] | None = None
        self._under_way: int | None = None
        self._lock = threading.Lock()
        self._known = threading.Event()

    def ask(self, told: Callable[[], None]) -> None:
        """Let the next batch to begin be the last or, where none begins soon, the one under way."""
        with self._lock:
            self._told = told
        if not self._known.wait(BEGIN_S_MAX):
            with self._lock:
                self._told = None
                if self.number is None and self._under_way is not None:
                    self._choose(self._under_way, told)

    def begins(self, batch: int) -> None:
        """A batch is planned and about to be worked out."""
        with self._lock:
            self._under_way = batch
            if self._told is not None and self.number is None:
                self._choose(batch, self._told)

    def is_over(self, batch: int) -> bool:
        """A batch is written; whether nothing may follow it."""
        with self._lock:
            self._under_way = None
            return batch == self.number

    def _choose(self, batch: int, told: Callable[[], None]) -> None:
        self.number = batch
        self._known.set()
        told()
