"""The ordering unit as it was published (Order §4.1, Fig 3), kept for the lab: slow, obvious, and only rising.

The clock is set by records of designated types alone. At every update the delays of all records received since the
last one are measured against it, K becomes the greatest delay ever measured plus λ times the standard deviation, and
what satisfies `ts + K <= clk` is emitted. Nothing is flagged: what comes too late is emitted out of order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(slots=True)
class OrderingAsPublished:
    """One unit: K, the clock, and what is buffered, in order of arrival."""

    lambda_: float = 0.0
    hold: float = 0.0
    clock: float | None = None
    buffer: list[tuple[float, str]] = field(default_factory=list)
    delay_max: float = 0.0
    _fresh: list[float] = field(default_factory=list)
    _count: int = 0
    _sum: float = 0.0
    _squares: float = 0.0

    def take(self, time: float, name: str = "", sets_clock: bool = True) -> list[tuple[float, str]]:
        """Take one record; gives what is emitted."""
        self.buffer.append((time, name))
        self._fresh.append(time)
        if not sets_clock or (self.clock is not None and time < self.clock):
            return []
        self.clock = time
        for fresh in self._fresh:
            self._measure(time - fresh)
        self._fresh.clear()
        due = sorted(one for one in self.buffer if one[0] + self.hold <= time)
        self.buffer = [one for one in self.buffer if one[0] + self.hold > time]
        return due

    def _measure(self, delay: float) -> None:
        self._count += 1
        self._sum += delay
        self._squares += delay * delay
        self.delay_max = max(self.delay_max, delay)
        variance = self._squares / self._count - (self._sum / self._count) ** 2
        self.hold = max(self.hold, self.delay_max + self.lambda_ * math.sqrt(max(0.0, variance)))
