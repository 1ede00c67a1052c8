"""How does a source's rate run? One shape for each kind of arrivals: for planners, the twin and Spark alike.

A shape says the mean rate, the rate over time as pieces of constant rate, the gaps between records within a piece, and
what planners know beyond the mean: how far the rate swings, or what it will be. Where chance decides, draws are asked
for by their number, so that each body may bring its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from weft.model import Arrivals, Constant, OnOff, Poisson, Sine, Trace, Walk

PIECE_S_MIN = 0.001
SINE_PIECES_MAX = 200
# Kingman's squared variation of gaps, as planners count it: chance 1, even ones little, since queues even nothing out.
VARIES_BY_CHANCE, VARIES_LITTLE = 1.0, 0.3
TURN = 6.283185307179586

Piece = tuple[float, float]
"""Seconds, and records per second for so long; an endless piece is the last."""


class Chance(Protocol):
    """Draws by their number, each asked for once and in order."""

    def coin(self, n: int) -> bool:
        """Heads or tails."""

    def uniform(self, n: int) -> float:
        """A number from [0, 1)."""

    def normal(self, n: int) -> float:
        """A number from the standard normal distribution."""


@dataclass(frozen=True, slots=True)
class Swing:
    """How far a rate goes beyond its mean (a standard deviation, as a share of it), and for how long."""

    share: float
    lasts_ms: float


@dataclass(frozen=True, slots=True)
class Told:
    """Rates that are known ahead, each held for a period; the last one stays."""

    rates_per_s: tuple[float, ...]
    period_s: float

    def at(self, moment_s: float) -> float:
        """The rate at a moment."""
        return self.rates_per_s[min(int(moment_s / self.period_s), len(self.rates_per_s) - 1)]

    def ends_s(self) -> Iterator[float]:
        """The moments at which periods end."""
        return (self.period_s * at for at in range(1, len(self.rates_per_s) + 1))


@dataclass(frozen=True, slots=True)
class Shape:
    """What all who plan, simulate or make arrivals of a kind know of them."""

    mean_per_s: float
    pieces: Callable[[Chance], Iterator[Piece]]
    exponential_gaps: bool = False
    varies: float = VARIES_LITTLE
    swing: Swing | None = None
    told: Told | None = None


def shape_of(arrivals: Arrivals) -> Shape:
    """The shape of arrivals of any kind."""
    return SHAPES[type(arrivals)](arrivals)


def _steady(rate_per_s: float) -> Callable[[Chance], Iterator[Piece]]:
    return lambda chance: iter([(math.inf, rate_per_s)])


def _constant(given: Constant) -> Shape:
    return Shape(given.rate_per_s, _steady(given.rate_per_s))


def _poisson(given: Poisson) -> Shape:
    return Shape(given.rate_per_s, _steady(given.rate_per_s), exponential_gaps=True, varies=VARIES_BY_CHANCE)


def _onoff(given: OnOff) -> Shape:
    """Potential §5.2: modes of equal length, aligned with a random offset; gaps are exponential in both modes."""
    quiet = 2.0 * given.rate_per_s / (1.0 + given.ratio)

    def pieces(chance: Chance) -> Iterator[Piece]:
        busy = chance.coin(0)
        length_s = given.period_s * chance.uniform(1)
        for n in count(3):
            yield length_s, quiet * given.ratio if busy else quiet
            busy = not busy
            length_s = max(PIECE_S_MIN, given.period_s + given.period_s_sd * chance.normal(n))

    swing = Swing((given.ratio - 1.0) / (given.ratio + 1.0), 500.0 * given.period_s)
    return Shape(given.rate_per_s, pieces, exponential_gaps=True, varies=VARIES_BY_CHANCE, swing=swing)


def _sine(given: Sine) -> Shape:
    steps = min(SINE_PIECES_MAX, max(1, int(given.period_s / PIECE_S_MIN)))

    def pieces(chance: Chance) -> Iterator[Piece]:
        for step in count():
            swing = given.amplitude * sine((step % steps + 0.5) / steps)
            yield max(PIECE_S_MIN, given.period_s / steps), max(0.0, given.rate_per_s * (1.0 + swing))

    return Shape(given.rate_per_s, pieces, swing=Swing(given.amplitude / math.sqrt(2.0), 125.0 * given.period_s))


def _walk(given: Walk) -> Shape:
    most = math.inf if given.rate_per_s_max is None else given.rate_per_s_max

    def pieces(chance: Chance) -> Iterator[Piece]:
        rate = given.rate_per_s
        for n in count():
            yield max(PIECE_S_MIN, given.every_s), rate
            rate = min(most, max(given.rate_per_s_min, rate + given.step_per_s * chance.normal(n)))

    return Shape(given.rate_per_s, pieces)


def _trace(given: Trace) -> Shape:
    """A trace tells rates, not gaps: records are evenly spaced, and planners count on chance."""
    rates = given.rates_per_s

    def pieces(chance: Chance) -> Iterator[Piece]:
        yield from ((given.period_s, rate) for rate in rates[:-1])
        yield math.inf, rates[-1]

    return Shape(sum(rates) / len(rates), pieces, varies=VARIES_BY_CHANCE, told=Told(rates, given.period_s))


SHAPES: dict[type, Callable[[Any], Shape]] = {
    Constant: _constant,
    Poisson: _poisson,
    OnOff: _onoff,
    Sine: _sine,
    Walk: _walk,
    Trace: _trace,
}


def sine(turns: float) -> float:
    """The sine of so many full turns, by its series: the last bit of a library's differs between machines."""
    x = (turns - round(turns)) * TURN
    term = total = x
    for k in range(1, 16):
        term *= -x * x / ((2 * k) * (2 * k + 1))
        total += term
    return total
