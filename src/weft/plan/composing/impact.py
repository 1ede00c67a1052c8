"""What would more work on a site do to what runs there? M/M/1, in whole numbers (Synergy §2.3.4, 2.6 to 2.9).

A record takes tau / (1 - p). At p = 1 and beyond there is no such time: that is a broken promise, not a negative one.
"""

from __future__ import annotations

SECOND_US = 1_000_000
MILLION = 1_000_000


def time_us(cost_us: int, load: int, capacity: int) -> int | None:
    """How long a record is at a site with so much work in all; None where the site cannot do it."""
    free = capacity - load
    if free <= 0:
        return None
    return -(-cost_us * SECOND_US // free)


def free_least(cost_us: int, bound_us: int) -> int:
    """How much of a site must stay free so that a record takes no more than it may.

    2.9 turned round: what a site bears is one number for each operator, whoever comes.
    """
    return -(-cost_us * SECOND_US // bound_us)


def share(amount: int, left: int) -> int:
    """One term of phi (2.5), in millionths: what is taken, of that and what is left then."""
    return amount * MILLION // (left + amount) if amount else 0
