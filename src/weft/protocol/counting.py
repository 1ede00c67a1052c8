"""How many came between two readings of a count?"""

from __future__ import annotations


def came(before: int, now: int) -> int:
    """Records between two readings of a count, which begins anew after a warm-up or a restart."""
    return now - before if now >= before else now
