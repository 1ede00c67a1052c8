"""How long does a batch take? For each record as long as in the last few, of which at first nothing is known."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LAST_N = 8
LONG_S = 2.0


class Durations:
    """What the batches of one run took; of the one under way, how much longer it will."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._last: deque[tuple[int | None, float]] = deque(maxlen=LAST_N)
        self._under_way: tuple[int | None, float] | None = None

    def begins(self, records: int | None) -> None:
        """A batch of so many records is about to be worked out; None where they are not counted ahead."""
        self._under_way = (records, self._clock_s())

    def is_over(self) -> None:
        """The batch under way is written."""
        if self._under_way is not None:
            records, began_s = self._under_way
            self._last.append((records, self._clock_s() - began_s))
        self.is_off()

    def is_off(self) -> None:
        """No batch is under way."""
        self._under_way = None

    def are_long(self) -> bool:
        """Whether the last batch took so long that nobody should wait for the end of another."""
        return bool(self._last) and self._last[-1][1] > LONG_S

    def has_long_to_go(self) -> bool:
        """Whether the batch under way will go on for long."""
        if self._under_way is None:
            return False
        records, began_s = self._under_way
        alike = [(count or 1, took_s) for count, took_s in self._last if (count is None) == (records is None)]
        if not alike:
            return False
        each_s = sum(took_s for _, took_s in alike) / sum(count for count, _ in alike)
        return (1 if records is None else records) * each_s - (self._clock_s() - began_s) > LONG_S
