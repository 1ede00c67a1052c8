"""How fast will a stream flow? Rivals in one frame, and a choice among them by what they would have said of late.

Each method is a function from a series of rates to all that it would have foreseen: a row for every moment, a column
for every step ahead. So the forecast is the last row, and the rows before it are the backtest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.plan.observing.correlation import Floats, correlations

Series = Sequence[float] | Floats
Ints = NDArray[np.intp]

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
    return _level(series, steps)


def average(series: Floats, steps: int) -> Floats:
    """It goes on as it was on the mean of the last few periods."""
    sums = series.cumsum()
    sums[AVERAGED_N:] -= sums[:-AVERAGED_N].copy()
    return _level(sums / _counts(len(series)), steps)


def _level(values: Floats, steps: int) -> Floats:
    found: Floats = values.repeat(steps).reshape(-1, steps)
    return found


@lru_cache(maxsize=SAMPLES_MAX)
def _counts(count: int) -> Floats:
    """Of how many samples each average of the last few is."""
    counts: Floats = np.minimum(np.arange(1.0, count + 1.0), float(AVERAGED_N))
    return counts


def trend(series: Floats, steps: int) -> Floats:
    """Holt's linear smoothing with a damped slope: it goes on to rise or fall, ever less."""
    values = series.tolist()
    level, slope = values[0], 0.0
    found: list[float] = []
    for value in values:
        before = level
        level = LEVEL * value + _REST * (level + DAMPING * slope)
        slope = SLOPE * (level - before) + _SLOPE_REST * slope
        found += (level, slope)
    both = np.array(found).reshape(-1, 2)
    return both[:, :1] + both[:, 1:] * _reach(steps)


_REST, _SLOPE_REST = 1.0 - LEVEL, (1.0 - SLOPE) * DAMPING


@lru_cache(maxsize=SAMPLES_MAX)
def _reach(steps: int) -> Floats:
    """How many times its slope a damped trend has risen after so many steps."""
    return np.cumsum(DAMPING ** np.arange(1, steps + 1))


def leader(series: Floats, steps: int, other: Floats, lag: int) -> Floats:
    """It follows another stream that goes `lag` periods ahead, by the ratio of the other's rates (Synergy eq. 3.6)."""
    at = np.arange(len(series))[:, None]
    ahead = np.minimum(at - lag + np.arange(1, steps + 1)[None, :], at)
    behind = at - lag
    known = (behind >= 0) & (other[np.maximum(behind, 0)] > 0)
    ratio = np.ones(ahead.shape)
    np.divide(other[np.maximum(ahead, 0)], other[np.maximum(behind, 0)], out=ratio, where=known)
    return np.asarray(series[:, None] * ratio)


def leading(series: Series, others: Mapping[str, Series], lag_max: int) -> tuple[str, int] | None:
    """The stream that goes ahead of this one, and by how many periods: that of the greatest correlation (eq. 3.7).

    None where none is correlated well, where a stream is silent or constant, or where too few samples lie side by side.
    """
    own = np.asarray(series, float)
    names = [name for name, other in others.items() if len(other) >= len(own)]
    lags = min(lag_max, len(own) - OVERLAP_MIN)
    if not names or lags < 1:
        return None
    found = correlations(own, np.array([others[name][-len(own) :] for name in names], float), lags)
    best, at = CORRELATION_MIN, -1
    flat = found.ravel()
    for place in np.flatnonzero(flat > CORRELATION_MIN).tolist():
        if flat[place] > best + 1e-9:  # of those that are as good but for rounding the first is taken
            best, at = float(flat[place]), place
    return (names[at // lags], at % lags + 1) if at >= 0 else None


Method = Callable[[Floats, int], Floats]
METHODS: Mapping[str, Method] = {LAST: last, AVERAGE: average, TREND: trend}
"""What a stream's own past tells; of equal ones the first is taken."""


def forecast(
    series: Series, steps: int, method: str = AUTO, others: Mapping[str, Series] | None = None
) -> Forecast | None:
    """What a stream will give in each of the next periods; None where nothing was ever measured of it.

    `others` are the streams that may go ahead of it. `auto` takes the method with the least error of late, and
    the last value where there are few samples, no method is better, or the last sample is far from what it foresaw.
    """
    own = np.asarray(series[-SAMPLES_MAX:], float)
    if not len(own):
        return None
    rivals = {name: made(own, steps) for name, made in METHODS.items() if method in (name, AUTO)}
    led = leading(own, others or {}, steps) if method in (LEADER, AUTO) and len(own) >= SAMPLES_MIN else None
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
    rows, columns, ends = _tested(count, min(foreseen.shape[1], max(1, count // 3)))
    wrong = np.abs(foreseen[rows, columns] - series[ends])
    return float(wrong.sum() / len(wrong))


@lru_cache(maxsize=4 * SAMPLES_MAX)
def _tested(count: int, reach: int) -> tuple[Ints, Ints, Ints]:
    """What a backtest compares: when it was foreseen, how many steps ahead, and of which sample."""
    first = max(1, count - TESTED_N)
    earliest = max(0, first - reach)
    ends = np.arange(earliest, count - 1)[:, None] + np.arange(1, reach + 1)[None, :]
    rows, columns = np.nonzero((ends >= first) & (ends < count))
    return rows + earliest, columns, rows + earliest + columns + 1
