"""How does a bursty stream come? Its signature: segments of about constant rate, one after another (Synergy §2.3.4).

A signature is known from what is declared, or found in what was counted. Signatures of several streams are brought
together by their shortest segment: in each stretch of that length all rates are taken as constant, and queues as those
of regular streams.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.model import Arrivals, OnOff, Sine, Trace
from weft.plan.dataflow.arrivals import shape_of, sine

STRETCHES_MAX = 1_000
"""Into no more stretches is a window divided: beyond that, segments are shorter than what a projection tells apart."""
SINE_SEGMENTS = 8
COUNTS_MAX = 100_000
PENALTY = 2.0
"""What a change of rate must raise the log-likelihood by: a moment and a rate more to say."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signature:
    """Rates per second, each for so many seconds; after the last the first comes again."""

    segments: tuple[tuple[float, float], ...]

    @property
    def window_s(self) -> float:
        """How long it is until it begins again; endless where the rate never changes."""
        return sum(seconds for seconds, _ in self.segments)

    @property
    def shortest_s(self) -> float:
        """The length of the shortest segment."""
        return min(seconds for seconds, _ in self.segments)

    def steps(self, step_s: float, count: int) -> Floats:
        """The mean rate in each of so many stretches from the beginning on."""
        if math.isinf(self.window_s):
            return np.full(count, self.segments[0][1])
        ends = np.cumsum([0.0, *(seconds for seconds, _ in self.segments)])
        records = np.cumsum([0.0, *(seconds * rate for seconds, rate in self.segments)])
        times = np.arange(count + 1) * step_s
        rounds, rest = np.divmod(times, ends[-1])
        so_far: Floats = rounds * records[-1] + np.interp(rest, ends, records)
        return (so_far[1:] - so_far[:-1]) / step_s


def declared(arrivals: Arrivals) -> Signature:
    """The signature that arrivals of a kind have; where the phase is not declared, all begin with their busiest."""
    match arrivals:
        case OnOff(rate_per_s=mean, ratio=ratio, period_s=period_s):
            quiet = 2.0 * mean / (1.0 + ratio)
            return Signature(((period_s, quiet * ratio), (period_s, quiet)))
        case Sine(rate_per_s=mean, amplitude=amplitude, period_s=period_s):
            turns = ((0.25 + at / SINE_SEGMENTS) for at in range(SINE_SEGMENTS))
            rates = (max(0.0, mean * (1.0 + amplitude * sine(turn))) for turn in turns)
            return Signature(tuple((period_s / SINE_SEGMENTS, rate) for rate in rates))
        case Trace(rates_per_s=rates, period_s=period_s):
            return counted([rate * period_s for rate in rates], period_s)
        case _:
            return Signature(((math.inf, shape_of(arrivals).mean_per_s),))


def counted(counts: Sequence[float], period_s: float) -> Signature:
    """The signature of what was counted, period by period: the likeliest segments of Poisson streams.

    A change of rate must raise the likelihood by more than the two numbers that it takes to say it (Akaike): of all
    ways to divide, the best is found. What chance alone looks like is then sometimes taken as a
    short burst, which errs on the side of caution: a missed burst would not.
    """
    if len(counts) > COUNTS_MAX:
        whole = math.ceil(len(counts) / COUNTS_MAX)
        groups = [counts[at : at + whole] for at in range(0, len(counts) - len(counts) % whole, whole)]
        return counted([sum(group) for group in groups], period_s * whole)
    n = len(counts)
    total = np.concatenate(([0.0], np.cumsum(counts)))
    best, start = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    begins = np.zeros(1, np.int64)
    for end in range(1, n + 1):
        records = total[end] - total[begins]
        value = best[begins] + records * np.log(np.maximum(records, 1e-300) / (end - begins)) - records
        at = int(np.argmax(value))
        start[end], best[end] = begins[at], value[at] - PENALTY
        # What is behind by now is never ahead again (Killick et al. 2012).
        begins = np.append(begins[value >= best[end]], end)
    segments: list[tuple[float, float]] = []
    end = n
    while end > 0:
        begin = int(start[end])
        seconds = (end - begin) * period_s
        segments.append((seconds, float(total[end] - total[begin]) / seconds))
        end = begin
    return Signature(tuple(reversed(segments)))


@dataclass(frozen=True, slots=True)
class Combined:
    """Rates of several streams in stretches of one length."""

    step_s: float
    rates_per_s: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(next(iter(self.rates_per_s.values()), ()))


def combined(signatures: Mapping[str, Signature], at_least_s: float = 0.0) -> Combined:
    """Signatures brought together by their shortest segment, over the longest window (Fig 2.9); one stretch if none."""
    bursty = [one for one in signatures.values() if math.isfinite(one.window_s)]
    if not bursty:
        return Combined(math.inf, {name: one.steps(1.0, 1) for name, one in signatures.items()})
    window_s = max(one.window_s for one in bursty)
    step_s = max(min(one.shortest_s for one in bursty), window_s / STRETCHES_MAX, min(at_least_s, window_s))
    count = max(1, round(window_s / step_s))
    return Combined(step_s, {name: one.steps(step_s, count) for name, one in signatures.items()})
