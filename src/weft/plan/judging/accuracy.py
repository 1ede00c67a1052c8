"""How well does a projection know latency? What differs by less than its own error does not decide."""

from __future__ import annotations

RELATIVE = 0.3
"""Projected latencies that differ by less than this part are taken as one: costs and batches are known no better."""
FLOOR_MS = 25.0
"""Nor are differences of less: live, the moment at which a micro-batch begins moves a result by more."""


def told_apart(a_ms: float, b_ms: float) -> bool:
    """Whether the projection can tell which of two latencies is less."""
    if a_ms == b_ms:
        return False
    return abs(a_ms - b_ms) > max(FLOOR_MS, RELATIVE * min(abs(a_ms), abs(b_ms)))
