"""How fast will a stream flow? Rivals in one frame, and a choice among them by what they would have said of late.

Each method is a function from a series of rates to all that it would have foreseen: a row for every moment, a column
for every step ahead. So the forecast is the last row, and the rows before it are the backtest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LAST, AVERAGE, TREND, LEADER, AUTO = "last", "average", "trend", "leader", "auto"
SAMPLES_MIN, SAMPLES_MAX = 5, 40  # of fewer only the last tells something, and older ones nothing of the next minute
TESTED_N = 12  # the samples that a backtest is about: those of the last minute, where a period is five seconds
AVERAGED_N = 6
LEVEL, SLOPE, DAMPING = 0.6, 0.4, 0.95
TIMES_MAX = 4.0  # nothing is foreseen beyond so many times the greatest rate that was seen
CORRELATION_MIN = 0.7
OVERLAP_MIN = 6
SURPRISE = 4.0  # times the usual error: by then something has happened that the past does not tell of


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a stream is expected to give a second after one, two and more periods, and the method that says so."""

    per_s: tuple[float, ...]
    method: str


def last(series: Floats, steps: int) -> Floats:
    """It goes on as it was in the last period."""
    return np.repeat(series[:, None], steps, axis=1)


def average(series: Floats, steps: int) -> Floats:
    """It goes on as it was on the mean of the last few periods."""
    sums = np.concatenate([[0.0], np.cumsum(series)])
    ends = np.arange(1, len(series) + 1)
    starts = np.maximum(0, ends - AVERAGED_N)
    return np.repeat(((sums[ends] - sums[starts]) / (ends - starts))[:, None], steps, axis=1)


def trend(series: Floats, steps: int) -> Floats:
    """Holt's linear smoothing with a damped slope: it goes on to rise or fall, ever less."""
    levels, slopes = np.empty(len(series)), np.empty(len(series))
    level, slope = float(series[0]), 0.0
    for at, value in enumerate(series.tolist()):
        before = level
        level = LEVEL * value + (1.0 - LEVEL) * (level + DAMPING * slope)
        slope = SLOPE * (level - before) + (1.0 - SLOPE) * DAMPING * slope
        levels[at], slopes[at] = level, slope
    reach = np.cumsum(DAMPING ** np.arange(1, steps + 1))
    return levels[:, None] + slopes[:, None] * reach[None, :]


def leader(series: Floats, steps: int, other: Floats, lag: int) -> Floats:
    """It follows another stream that goes `lag` periods ahead, by the ratio of the other's rates (Synergy eq. 3.6)."""
    at = np.arange(len(series))[:, None]
    ahead = np.minimum(at - lag + np.arange(1, steps + 1)[None, :], at)
    behind = at - lag
    known = (behind >= 0) & (other[np.maximum(behind, 0)] > 0)
    ratio = np.ones(ahead.shape)
    np.divide(other[np.maximum(ahead, 0)], other[np.maximum(behind, 0)], out=ratio, where=known)
    return np.asarray(series[:, None] * ratio)


def leading(series: Sequence[float], others: Mapping[str, Sequence[float]], lag_max: int) -> tuple[str, int] | None:
    """The stream that goes ahead of this one, and by how many periods: that of the greatest correlation (eq. 3.7).

    None where none is correlated well, where a stream is silent or constant, or where too few samples lie side by side.
    """
    own, best = np.asarray(series, float), (CORRELATION_MIN, "", 0)
    for name, other in others.items():
        for lag in range(1, min(lag_max, len(own) - OVERLAP_MIN) + 1):
            found = _correlation(own[lag:], np.asarray(other, float)[-len(own) :][:-lag])
            if found > best[0] + 1e-9:
                best = (found, name, lag)
    return best[1:] if best[1] else None


def _correlation(one: Floats, other: Floats) -> float:
    if len(one) != len(other) or len(one) < OVERLAP_MIN:
        return 0.0
    a, b = one - one.mean(), other - other.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-12 * max(1.0, float(abs(one).max() * abs(other).max())) else 0.0


Method = Callable[[Floats, int], Floats]
METHODS: Mapping[str, Method] = {LAST: last, AVERAGE: average, TREND: trend}
"""What a stream's own past tells; of equal ones the first is taken."""


def forecast(
    series: Sequence[float], steps: int, method: str = AUTO, others: Mapping[str, Sequence[float]] | None = None
) -> Forecast | None:
    """What a stream will give in each of the next periods; None where nothing was ever measured of it.

    `others` are the streams that may go ahead of it. `auto` takes the method with the least error of late, and
    the last value where there are few samples, no method is better, or the last sample is far from what it foresaw.
    """
    own = np.asarray(series[-SAMPLES_MAX:], float)
    if not len(own):
        return None
    rivals = {name: made(own, steps) for name, made in METHODS.items() if method in (name, AUTO)}
    led = leading(own.tolist(), others or {}, steps) if method in (LEADER, AUTO) and len(own) >= SAMPLES_MIN else None
    if led is not None and others is not None:
        rivals[LEADER] = leader(own, steps, np.asarray(others[led[0]], float)[-len(own) :], led[1])
    rivals.setdefault(LAST, last(own, steps))
    if method == AUTO:
        chosen = min(rivals, key=lambda name: errors(own, rivals[name])) if len(own) >= SAMPLES_MIN else LAST
        chosen = LAST if _surprised(own, rivals[chosen]) else chosen
    else:
        chosen = method if method in rivals and len(own) >= SAMPLES_MIN else LAST
    bounded = np.clip(rivals[chosen][-1], 0.0, TIMES_MAX * float(own.max()))
    return Forecast(tuple(float(value) for value in bounded), chosen)


def _surprised(series: Floats, foreseen: Floats) -> bool:
    """Whether the last sample is further from what was foreseen of it than chance explains."""
    if len(series) < SAMPLES_MIN:
        return False
    return bool(abs(foreseen[-2, 0] - series[-1]) > SURPRISE * errors(series[:-1], foreseen[:-1]))


def errors(series: Floats, foreseen: Floats) -> float:
    """The mean absolute error of what would have been foreseen of the last samples, some periods ahead of each.

    No further ahead than a third of the samples: a rise that has just begun is no fault of those who could not know.
    """
    count = len(series)
    if count < 2:
        return 0.0
    reach = min(foreseen.shape[1], max(1, count // 3))
    first = max(1, count - TESTED_N)
    earliest = max(0, first - reach)
    ends = np.arange(earliest, count - 1)[:, None] + np.arange(1, reach + 1)[None, :]
    tested = (ends >= first) & (ends < count)
    wrong = np.abs(foreseen[earliest : count - 1, :reach] - series[np.minimum(ends, count - 1)])
    return float(wrong[tested].mean())
