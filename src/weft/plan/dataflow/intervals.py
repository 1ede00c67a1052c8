"""How long is `10 minutes`? Spark's intervals of fixed length, in milliseconds."""

from __future__ import annotations

import re

UNITS_MS = {
    "microsecond": 0.001,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?=\s|$)")


def interval_ms(text: str) -> int:
    """Milliseconds in an interval such as `1 hour 30 minutes`; ValueError where it is none."""
    words = text.strip().lower().removeprefix("interval").strip()
    total = 0.0
    for number, unit in _PART.findall(words):
        if unit not in UNITS_MS:
            raise ValueError(f"{text!r} is no interval: unknown unit {unit!r}")
        total += float(number) * UNITS_MS[unit]
    rest = _PART.sub("", words).strip()
    if rest or not words:
        raise ValueError(f"{text!r} is no interval, as `10 minutes` is")
    return round(total)
