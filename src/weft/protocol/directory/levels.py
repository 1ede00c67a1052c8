"""When is a change of load worth a word? When it leaves its level, and levels overlap (Synergy §3.4.3, Fig. 3.3)."""

from __future__ import annotations

import msgspec


class Levels(msgspec.Struct, frozen=True):
    """So many levels: loads from `top` on are the last, the rest divide what is below; each reaches over its borders.

    `overlap` is a share of a level's width, and reaches to both sides.
    """

    count: int = 5
    top: float = 1.0
    overlap: float = 0.25

    @property
    def width(self) -> float:
        """How wide a level below the top is."""
        return self.top / max(1, self.count - 1)

    def level(self, load: float) -> int:
        """The level in whose own part a load lies."""
        return min(self.count - 1, max(0, int(load / self.width)))

    def band(self, level: int) -> tuple[float, float]:
        """From where to where a load may lie and stay in a level."""
        reach = self.overlap * self.width
        low = float("-inf") if level == 0 else level * self.width - reach
        high = float("inf") if level >= self.count - 1 else (level + 1) * self.width + reach
        return low, high

    def stays(self, level: int, load: float) -> bool:
        """Whether nobody need hear of a load."""
        low, high = self.band(level)
        return low <= load < high
