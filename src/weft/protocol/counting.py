"""How many came between two readings of a count?"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T", int, float)


def came(before: T, now: T) -> T:
    """Records between two readings of a count, which begins anew after a warm-up or a restart."""
    return now - before if now >= before else now
