"""How long is an interval? Only where its length is certain."""

from __future__ import annotations

import re

UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip


def interval_us(text: str) -> int | None:
    """Microseconds of an interval such as `1 hour 30 minutes`; None where it has months, or is not understood."""
    words = text.strip().lower().removeprefix("interval ").split()
    if not words or len(words) % 2:
        return None
    total = 0
    for count, unit in zip(words[::2], words[1::2], strict=True):
        size = UNITS_US.get(unit.removesuffix("s"))
        if size is None or not re.fullmatch(r"-?\d+", count):
            return None
        total += int(count) * size
    return total
