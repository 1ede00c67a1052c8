"""When would bytes arrive over a slower way? An emulated line: they leave in turn, and then take their delay."""

from __future__ import annotations

from dataclasses import dataclass

SOON_S = 1e-6


@dataclass(slots=True)
class Line:
    """A way with a delay and a bandwidth, one direction; all that passes between two processes shares it."""

    delay_ms: float = 0.0
    kbps: float | None = None
    free_s: float = 0.0
    """When the last bytes have left."""
    last_s: float = 0.0
    """When the last bytes arrive: nothing overtakes."""

    @property
    def slow(self) -> bool:
        """Whether it changes anything."""
        return bool(self.delay_ms or self.kbps)

    def arrival_s(self, size: int, now_s: float) -> float:
        """When so many bytes that are sent now are through."""
        passing_s = 8 * size / (1000 * self.kbps) if self.kbps else 0.0
        self.free_s = max(now_s, self.free_s) + passing_s
        self.last_s = max(self.free_s + self.delay_ms / 1000, self.last_s + SOON_S)
        return self.last_s
