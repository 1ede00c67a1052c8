"""What does a site cost with the operators that stand there? Load, their correlation, or their time in its queue."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.arrays import ROUNDING, STEADY, STEEPER

# Below this share of a sum of squares what is left of it is added up anew.
LEFT_OVER = 1e-6


@compiled
def filled(asked: float, penalty: float) -> float:
    """Potential §3.2 (1): the share of a quota, growing faster beyond it."""
    return asked if asked < 1.0 else 1.0 + penalty * (asked - 1.0)


@compiled
def slowness(busy: float) -> float:
    """How many times its service a record stays, 1 / (1 - utilisation), and a straight line from `STEADY` on."""
    if busy <= STEADY:
        return 1.0 / (1.0 - busy)
    return 1.0 / (1.0 - STEADY) + (busy - STEADY) / (1.0 - STEADY) ** 2


@compiled
def _against(i: Ints, f: Floats, op: int, asked: float, spread: float) -> float:
    """The correlation of an operator with the rest of the series that lies in scratch, whose square is `spread`."""
    variance = f[i[c.VARIANCE] + op]
    if variance <= f[i[c.STILL] + op]:
        return 0.0
    k, together = i[c.PERIODS], i[c.SCRATCH]
    own = i[c.WAVE] + op * k
    both = -variance
    for at in range(k):
        both += f[own + at] * f[together + at]
    rest = spread - variance - 2.0 * both
    if rest < LEFT_OVER * spread:
        # Where hardly anything is left a difference says nothing.
        both, rest = 0.0, 0.0
        for at in range(k):
            other = f[together + at] - f[own + at]
            both += f[own + at] * other
            rest += other * other
    mean = asked - f[i[c.LOAD] + op]
    if rest <= 1e-18 * mean * mean + f[c.NOISE]:
        return 0.0
    return float(max(-1.0, min(1.0, both / np.sqrt(variance * rest))))


@compiled
def correlation_of(i: Ints, f: Floats, site: int, without: int, extra: int) -> float:
    """Potential §3.2 (2): each operator of a site against the sum of the others, one left out or one more."""
    k, together = i[c.PERIODS], i[c.SCRATCH]
    count = i[i[c.COUNT] + site] - (without >= 0) + (extra >= 0)
    if count < 2:
        return 0.0
    asked = f[i[c.SITE_LOAD] + site]
    sums = i[c.SUMS] + site * k
    for at in range(k):
        f[together + at] = f[sums + at]
    if without >= 0:
        asked -= f[i[c.LOAD] + without]
        for at in range(k):
            f[together + at] -= f[i[c.WAVE] + without * k + at]
    if extra >= 0:
        asked += f[i[c.LOAD] + extra]
        for at in range(k):
            f[together + at] += f[i[c.WAVE] + extra * k + at]
    spread = 0.0
    for at in range(k):
        spread += f[together + at] * f[together + at]
    total = _against(i, f, extra, asked, spread) if extra >= 0 else 0.0
    op = i[i[c.FIRST] + site]
    while op >= 0:
        if op != without:
            total += _against(i, f, op, asked, spread)
        op = i[i[c.NEXT] + op]
    return total


@compiled
def site_value(
    i: Ints, f: Floats, site: int, load_ms: float, asked_ms: float, lift: float, count: int, correlation: float
) -> float:
    """What one site adds to the score, of given sums."""
    if i[c.POTENTIAL]:
        pull = f[c.W_LOAD] * count * filled(load_ms / f[i[c.ROOM] + site], f[c.PENALTY])
        return float(pull + f[c.W_CORRELATION] * correlation)
    speed, quota = f[i[c.SPEED] + site], f[i[c.QUOTA] + site]
    busy = asked_ms / (1000.0 * speed)
    value = lift / speed * slowness(busy) if i[c.LATENCY] else 0.0
    if busy > quota + ROUNDING:
        value += f[c.EXCESS] * (busy - quota) * (1.0 + STEEPER * (busy - quota))
    return value
