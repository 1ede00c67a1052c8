"""When is the n-th record of a live source born? Arrival kinds as seconds of flow, the same at every replay."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from weft.model import Arrivals
from weft.plan.dataflow.arrivals import shape_of

BLOCK = 4096
Floats = NDArray[np.float64]


class Flow:
    """Arrivals of one source: a unit process (even, or exponential gaps) bent by the rate over time."""

    def __init__(self, arrivals: Arrivals, seed: int, factors: list[tuple[float, float]] | None = None) -> None:
        self._seed = seed
        shape = shape_of(arrivals)
        self._exponential = shape.exponential_gaps
        self._pieces = _scaled(shape.pieces(Draws(seed)), factors or [])
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


class Draws:
    """Chance by a seed, one draw after another."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def coin(self, n: int) -> bool:
        """Heads or tails."""
        return bool(self._generator.integers(2))

    def uniform(self, n: int) -> float:
        """A number from [0, 1)."""
        return float(self._generator.random())

    def normal(self, n: int) -> float:
        """A number from the standard normal distribution."""
        return float(self._generator.standard_normal())


def _scaled(pieces: Iterator[tuple[float, float]], factors: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Steps cut where a scenario changes the rate: from each `(flow_s, factor)` on, so many times the normal."""
    changes = sorted(factors, key=lambda change: change[0])  # of one moment the last counts
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
