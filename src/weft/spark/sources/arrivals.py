"""When is the n-th record of a live source born? Arrival kinds as seconds of flow, the same at every replay."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft.model import Arrivals, Constant, OnOff, Poisson, Sine, Trace, Walk

BLOCK = 4096
SINE_STEP_S = 0.1
Floats = NDArray[np.float64]


class Flow:
    """Arrivals of one source: a unit process (even, or exponential gaps) bent by the rate over time."""

    def __init__(self, arrivals: Arrivals, seed: int, factors: list[tuple[float, float]] | None = None) -> None:
        self._seed = seed
        self._exponential = isinstance(arrivals, Poisson)
        self._pieces = _scaled(_pieces(arrivals, np.random.Generator(np.random.Philox(seed))), factors or [])
        self._ends: list[float] = [0.0]
        self._sums: list[float] = [0.0]
        self._open_rate: float | None = None
        self._block_ends: list[float] = [0.0]
        self._blocks: dict[int, Floats] = {}

    def count(self, flow_s: float) -> int:
        """How many records are born before `flow_s`."""
        if flow_s <= 0:
            return 0
        mass = self._mass(flow_s)
        if not self._exponential:
            return math.ceil(mass)
        while self._block_ends[-1] < mass:
            self._block(len(self._block_ends) - 1)
        block = max(0, int(np.searchsorted(self._block_ends, mass)) - 1)
        return block * BLOCK + int(np.searchsorted(self._block(block), mass))

    def births(self, start: int, end: int) -> Floats:
        """The flow seconds at which records `start` to `end` (exclusive) are born."""
        if end <= start:
            return np.empty(0)
        if self._exponential:
            blocks = range(start // BLOCK, (end - 1) // BLOCK + 1)
            units = np.concatenate([self._block(block) for block in blocks])
            units = units[start - blocks[0] * BLOCK : end - blocks[0] * BLOCK]
        else:
            units = np.arange(start, end, dtype=np.float64)
        self._reach_mass(float(units[-1]))
        if self._open_rate is not None:
            ends, sums = [*self._ends, self._ends[-1] + 1.0], [*self._sums, self._sums[-1] + self._open_rate]
        else:
            ends, sums = self._ends, self._sums
        inside: Floats = np.asarray(np.interp(units, sums, ends))
        if self._open_rate:
            beyond = units > sums[-1]
            inside[beyond] = ends[-1] + (units[beyond] - sums[-1]) / self._open_rate
        return inside

    def _block(self, block: int) -> Floats:
        """Unit times of one block of exponential gaps; only the latest blocks are kept."""
        while len(self._block_ends) - 1 < block:
            self._block(len(self._block_ends) - 1)
        if block not in self._blocks:
            generator = np.random.Generator(np.random.Philox(key=self._seed + 1, counter=[0, 0, 0, block]))
            times = self._block_ends[block] + np.cumsum(generator.standard_exponential(BLOCK))
            if len(self._block_ends) - 1 == block:
                self._block_ends.append(float(times[-1]))
            self._blocks[block] = times
            for old in [key for key in self._blocks if key < block - 8]:
                del self._blocks[old]
        return self._blocks[block]

    def _grow(self) -> None:
        length_s, rate = next(self._pieces)
        if math.isinf(length_s):
            self._open_rate = rate
            return
        self._ends.append(self._ends[-1] + length_s)
        self._sums.append(self._sums[-1] + length_s * rate)

    def _mass(self, flow_s: float) -> float:
        while self._open_rate is None and self._ends[-1] < flow_s:
            self._grow()
        if flow_s > self._ends[-1]:
            return self._sums[-1] + (flow_s - self._ends[-1]) * (self._open_rate or 0.0)
        return float(np.interp(flow_s, self._ends, self._sums))

    def _reach_mass(self, mass: float) -> None:
        while self._open_rate is None and self._sums[-1] < mass:
            self._grow()


def _pieces(arrivals: Arrivals, generator: np.random.Generator) -> Iterator[tuple[float, float]]:
    """The rate over time as (seconds, rate) steps; an endless last step ends the list."""
    match arrivals:
        case Constant(rate_per_s=rate) | Poisson(rate_per_s=rate):
            yield math.inf, rate
        case Trace(rates_per_s=rates, period_s=period_s):
            for rate in rates:
                yield period_s, rate
            yield math.inf, rates[-1]
        case OnOff():
            quiet = 2 * arrivals.rate_per_s / (1 + arrivals.ratio)
            busy_now = bool(generator.integers(2))
            first = generator.uniform(0, arrivals.period_s)
            while True:
                length_s = first or max(0.001, generator.normal(arrivals.period_s, arrivals.period_s_sd))
                yield length_s, quiet * (arrivals.ratio if busy_now else 1.0)
                first, busy_now = 0.0, not busy_now
        case Sine():
            step = 0
            while True:
                phase = 2 * math.pi * (step + 0.5) * SINE_STEP_S / arrivals.period_s
                yield SINE_STEP_S, max(0.0, arrivals.rate_per_s * (1 + arrivals.amplitude * math.sin(phase)))
                step += 1
        case Walk():
            rate = arrivals.rate_per_s
            upper = math.inf if arrivals.rate_per_s_max is None else arrivals.rate_per_s_max
            while True:
                yield arrivals.every_s, rate
                rate = min(upper, max(arrivals.rate_per_s_min, rate + generator.normal(0, arrivals.step_per_s)))


def _scaled(pieces: Iterator[tuple[float, float]], factors: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Steps cut where a scenario changes the rate: from each `(flow_s, factor)` on, so many times the normal."""
    changes = sorted(factors)
    factor, now_s = 1.0, 0.0
    for length_s, rate in pieces:
        rest_s = length_s
        while changes and changes[0][0] < now_s + rest_s:
            until_s, following = changes.pop(0)
            if until_s > now_s:
                yield until_s - now_s, rate * factor
                rest_s -= until_s - now_s
                now_s = until_s
            factor = following
        yield rest_s, rate * factor
        now_s += rest_s
