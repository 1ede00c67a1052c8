"""How do records arrive over time? The shape of a source's arrivals as steps in ns, scenario factors included."""

from __future__ import annotations

import numpy as np

from weft.bodies.twin.loop.chance import key_of, normal, uniform
from weft.model import Arrivals, Happening, Source, rate_changes
from weft.plan.dataflow.arrivals import shape_of

NS_PER_S = 1_000_000_000
FOREVER_NS = 1 << 62
STEPS_MAX = 500_000


class TooFine(ValueError):
    """More steps than a run may hold."""


Steps = list[tuple[int, float]]
"""(end in ns, records per ns) of each step; the last one ends at the horizon or beyond."""


def is_random(arrivals: Arrivals) -> bool:
    """Whether gaps within a step are exponential."""
    return shape_of(arrivals).exponential_gaps


def steps_of(source: Source, scenario: tuple[Happening, ...], until_ns: int, seed: int) -> Steps:
    """The rate of a source until the horizon."""
    if source.arrivals is None:
        return [(FOREVER_NS, 0.0)]
    steps: Steps = []
    at_ns = 0.0
    for length_s, rate_per_s in shape_of(source.arrivals).pieces(Draws(seed, source.name)):
        at_ns += length_s * NS_PER_S
        end_ns = FOREVER_NS if at_ns >= until_ns else round(at_ns)
        steps.append((end_ns, rate_per_s / NS_PER_S))
        if end_ns == FOREVER_NS:
            break
        if len(steps) > STEPS_MAX:
            raise TooFine(f"source {source.name} changes its rate more than {STEPS_MAX} times before the end")
    changes = rate_changes(scenario).get(source.name, [])
    return _scaled(steps, [(round(at_s * NS_PER_S), factor) for at_s, factor in changes])


def _scaled(steps: Steps, changes: list[tuple[int, float]]) -> Steps:
    scaled: Steps = []
    factor, following = 1.0, 0
    for end_ns, rate in steps:
        while following < len(changes) and changes[following][0] < end_ns:
            scaled.append((changes[following][0], rate * factor))
            factor = changes[following][1]
            following += 1
        scaled.append((end_ns, rate * factor))
    return scaled


class Draws:
    """Chance by a key: the n-th draw is the same whatever was drawn before it."""

    def __init__(self, seed: int, name: str) -> None:
        self._key = np.uint64(key_of(seed, "rate", name))

    def coin(self, n: int) -> bool:
        """Heads or tails."""
        return bool(uniform(self._key, n) < 0.5)

    def uniform(self, n: int) -> float:
        """A number from [0, 1)."""
        return float(uniform(self._key, n))

    def normal(self, n: int) -> float:
        """A number from the standard normal distribution."""
        return float(normal(self._key, n))
