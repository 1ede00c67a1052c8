"""Does a placement leave the realm of steady queues?"""

from __future__ import annotations

import numpy as np

from weft.model import Arrivals
from weft.plan.dataflow.arrivals import shape_of
from weft.plan.network.path_tables import Ints
from weft.plan.search.problem import Problem

# Beyond this many operators the fluid takes too long to be of help.
STRAINED_MAX = 2_000


def swings(arrivals: Arrivals | None) -> bool:
    """Whether a rate changes in ways that its mean does not tell; a trace is told by its series."""
    return arrivals is not None and shape_of(arrivals).swing is not None


def strained(given: Problem, homes: Ints) -> bool:
    """Whether latency is asked for while sources swing, or while a site is asked for more than its quota."""
    flat = given.flat
    if not flat.latency or len(homes) > STRAINED_MAX:
        return False
    if any(swings(source.arrivals) for source in given.deployment.sources):
        return True
    return overloaded(given, homes)


def overloaded(given: Problem, homes: Ints) -> bool:
    """Whether a site is asked for more than its quota."""
    flat = given.flat
    asked = np.bincount(homes, flat.asked_ms, minlength=len(flat.speed)) / (1000.0 * flat.speed)
    return bool((asked > flat.quota + 1e-9).any())
