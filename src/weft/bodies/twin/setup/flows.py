"""How do records arrive over time? Every arrival kind as steps of a constant rate, scenario factors included.

Within the steps, Poisson and on/off arrivals have exponential gaps (Potential §5.2); all others are evenly spaced,
so that a trace or a sine is followed without chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.bodies.twin.loop.chance import key_of, normal, sine, uniform
from weft.model import Arrivals, Constant, OnOff, Poisson, RateAt, Sine, Source, Trace, Walk

NS_PER_S = 1_000_000_000
FOREVER_NS = 1 << 62
SINE_STEPS_MAX = 200
STEP_S_MIN = 0.001

STEPS_MAX = 500_000


class TooFine(ValueError):
    """More steps than a run may hold."""


Steps = list[tuple[int, float]]
"""(end in ns, records per ns) of each step; the last one ends at the horizon or beyond."""


def is_random(arrivals: Arrivals) -> bool:
    """Whether gaps within a step are exponential."""
    return isinstance(arrivals, Poisson | OnOff)


def steps_of(source: Source, scenario: tuple[object, ...], until_ns: int, seed: int) -> Steps:
    """The rate of a source until the horizon."""
    if source.arrivals is None:
        return [(FOREVER_NS, 0.0)]
    steps: Steps = []
    at_ns = 0.0
    for length_s, rate_per_s in _pieces(source.arrivals, seed, source.name):
        at_ns += length_s * NS_PER_S
        end_ns = FOREVER_NS if at_ns >= until_ns else round(at_ns)
        steps.append((end_ns, rate_per_s / NS_PER_S))
        if end_ns == FOREVER_NS:
            break
        if len(steps) > STEPS_MAX:
            raise TooFine(f"source {source.name} changes its rate more than {STEPS_MAX} times before the end")
    return _scaled(steps, factors_of(source.name, scenario))


def factors_of(name: str, scenario: tuple[object, ...]) -> list[tuple[int, float]]:
    """From each moment on, how many times the normal rate a source runs at."""
    changes = [
        (round(what.at_s * NS_PER_S), what.rate[name])
        for what in scenario
        if isinstance(what, RateAt) and name in what.rate
    ]
    return sorted(changes, key=lambda change: change[0])


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


def _pieces(arrivals: Arrivals, seed: int, name: str) -> Iterator[tuple[float, float]]:
    forever_s = FOREVER_NS / NS_PER_S
    key = np.uint64(key_of(seed, "rate", name))
    match arrivals:
        case Constant(rate_per_s=rate) | Poisson(rate_per_s=rate):
            yield forever_s, rate
        case Trace(rates_per_s=rates, period_s=period_s):
            for rate in rates[:-1]:
                yield period_s, rate
            yield forever_s, rates[-1]
        case OnOff():
            # Potential §5.2: modes of equal length, aligned with a random offset, so that sources differ in phase.
            quiet = 2.0 * arrivals.rate_per_s / (1.0 + arrivals.ratio)
            busy = uniform(key, 0) < 0.5
            length_s, n = arrivals.period_s * uniform(key, 1), 2
            while True:
                yield length_s, quiet * arrivals.ratio if busy else quiet
                busy, n = not busy, n + 1
                length_s = max(STEP_S_MIN, arrivals.period_s + arrivals.period_s_sd * normal(key, n))
        case Sine():
            steps = min(SINE_STEPS_MAX, max(1, int(arrivals.period_s / STEP_S_MIN)))
            step = 0
            while True:
                swing = arrivals.amplitude * sine((step + 0.5) / steps)
                yield max(STEP_S_MIN, arrivals.period_s / steps), max(0.0, arrivals.rate_per_s * (1.0 + swing))
                step = (step + 1) % steps
        case Walk():
            rate, n = arrivals.rate_per_s, 0
            while True:
                yield max(STEP_S_MIN, arrivals.every_s), rate
                rate += arrivals.step_per_s * normal(key, n)
                rate = max(arrivals.rate_per_s_min, rate)
                rate = rate if arrivals.rate_per_s_max is None else min(arrivals.rate_per_s_max, rate)
                n += 1
