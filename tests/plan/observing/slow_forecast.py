"""Forecasts as they are written down: sample by sample, lag by lag, every rival from the first sample on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from weft.plan.observing import forecast as quick
from weft.plan.observing.forecast import AUTO, AVERAGE, LAST, LEADER, TREND, Floats


def average(series: Sequence[float], steps: int) -> list[list[float]]:
    """The mean of the last few, for every step alike."""
    return [[fmean(series[max(0, at + 1 - quick.AVERAGED_N) : at + 1])] * steps for at in range(len(series))]


def trend(series: Sequence[float], steps: int) -> list[list[float]]:
    """Holt's two equations."""
    level, slope, rows = series[0], 0.0, []
    for value in series:
        before = level
        level = quick.LEVEL * value + (1 - quick.LEVEL) * (level + quick.DAMPING * slope)
        slope = quick.SLOPE * (level - before) + (1 - quick.SLOPE) * quick.DAMPING * slope
        reach = [sum(quick.DAMPING**step for step in range(1, far + 1)) for far in range(1, steps + 1)]
        rows.append([level + slope * far for far in reach])
    return rows


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's of two series of one length (eq. 3.7)."""
    if len(one) != len(other) or len(one) < quick.OVERLAP_MIN:
        return 0.0
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-12 * max(1.0, float(abs(one).max() * abs(other).max())) else 0.0


def leading(series: Sequence[float], others: Mapping[str, Sequence[float]], lag_max: int) -> tuple[str, int] | None:
    """One pair of series after another."""
    own, best = np.asarray(series, float), (quick.CORRELATION_MIN, "", 0)
    for name, other in others.items():
        for lag in range(1, min(lag_max, len(own) - quick.OVERLAP_MIN) + 1):
            found = correlation(own[lag:], np.asarray(other, float)[-len(own) :][:-lag])
            if found > best[0] + 1e-9:
                best = (found, name, lag)
    return best[1:] if best[1] else None


def errors(series: Sequence[float], foreseen: Sequence[Sequence[float]]) -> float:
    """The mean of |foreseen - came| over the last samples."""
    count = len(series)
    if count < 2:
        return 0.0
    reach, first = min(len(foreseen[0]), max(1, count // 3)), max(1, count - quick.TESTED_N)
    return fmean(
        abs(foreseen[at][far - 1] - series[at + far])
        for at in range(max(0, first - reach), count - 1)
        for far in range(1, reach + 1)
        if first <= at + far < count
    )


def forecast(
    series: Sequence[float], steps: int, method: str, others: Mapping[str, Sequence[float]]
) -> tuple[list[float], str]:
    """What is foreseen, and by which method."""
    own = list(series[-quick.SAMPLES_MAX :])
    rivals = {LAST: [[value] * steps for value in own], AVERAGE: average(own, steps), TREND: trend(own, steps)}
    led = leading(own, others, steps) if len(own) >= quick.SAMPLES_MIN else None
    if led is not None:
        beside = np.asarray(others[led[0]], float)[-len(own) :]
        rivals[LEADER] = quick.leader(np.asarray(own), steps, beside, led[1]).tolist()
    if len(own) < quick.SAMPLES_MIN or method not in (*rivals, AUTO):
        chosen = LAST
    elif method != AUTO:
        chosen = method
    else:
        chosen = min(rivals, key=lambda name: round(errors(own, rivals[name]), 9))
        far = abs(rivals[chosen][-2][0] - own[-1])
        chosen = LAST if far > quick.SURPRISE * errors(own[:-1], rivals[chosen][:-1]) + 1e-9 else chosen
    most = quick.TIMES_MAX * max(own)
    return [min(max(0.0, value), most) for value in rivals[chosen][-1]], chosen
