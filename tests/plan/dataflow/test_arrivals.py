"""One shape for each kind of arrivals, and all who need one follow it."""

from __future__ import annotations

import math
import random
from itertools import islice

import pytest

from weft.bodies.twin.setup.flows import FOREVER_NS, is_random, steps_of
from weft.model import Arrivals, Constant, OnOff, Poisson, Sine, Source, Trace, Walk
from weft.model.arrivals import ARRIVALS
from weft.plan.dataflow.arrivals import SHAPES, Piece, shape_of
from weft.spec import query_keys

EXAMPLES: list[Arrivals] = [
    Constant(10.0),
    Poisson(10.0),
    OnOff(10.0, ratio=4.0, period_s=3.0),
    Sine(10.0, amplitude=0.9, period_s=7.0),
    Walk(10.0, step_per_s=2.0, rate_per_s_min=5.0, rate_per_s_max=15.0),
    Trace((4.0, 16.0, 10.0), 5.0),
]


class Dice:
    """Chance by a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def coin(self, n: int) -> bool:
        return self.random.random() < 0.5

    def uniform(self, n: int) -> float:
        return self.random.random()

    def normal(self, n: int) -> float:
        return self.random.gauss()


def pieces(arrivals: Arrivals, until_s: float) -> list[Piece]:
    """The rate until a moment, the last piece cut there."""
    found: list[Piece] = []
    past_s = 0.0
    for length_s, rate in islice(shape_of(arrivals).pieces(Dice(1)), 1_000_000):
        left_s = until_s - past_s
        found.append((min(length_s, left_s), rate))
        if length_s >= left_s:
            break
        past_s += length_s
    return found


def test_every_kind_has_a_value_a_shape_and_a_form() -> None:
    assert [type(one) for one in EXAMPLES] == list(ARRIVALS.values()) == list(SHAPES)
    assert list(ARRIVALS) == [one.kind for one in EXAMPLES]
    assert ARRIVALS.keys() == query_keys.ARRIVALS.tables.keys()


@pytest.mark.parametrize("arrivals", EXAMPLES[:4], ids=lambda one: one.kind)
def test_the_pieces_have_the_mean_rate_in_the_long_run(arrivals: Arrivals) -> None:
    found = pieces(arrivals, 700.0)
    assert sum(length for length, _ in found) == pytest.approx(700.0)
    assert sum(length * rate for length, rate in found) / 700.0 == pytest.approx(10.0, rel=0.03)
    assert shape_of(arrivals).mean_per_s == 10.0


@pytest.mark.parametrize("arrivals", [one for one in EXAMPLES if shape_of(one).swing], ids=lambda one: one.kind)
def test_a_swing_is_the_deviation_of_the_pieces(arrivals: Arrivals) -> None:
    found = pieces(arrivals, 700.0)
    squares = sum(length * (rate - 10.0) ** 2 for length, rate in found) / 700.0
    swing = shape_of(arrivals).swing
    assert swing is not None
    assert math.sqrt(squares) / 10.0 == pytest.approx(swing.share, rel=0.03)


def test_a_trace_is_told_ahead_as_it_comes() -> None:
    shape = shape_of(EXAMPLES[5])
    told = shape.told
    assert told is not None
    assert [told.at(moment) for moment in (0.0, 4.9, 5.1, 14.0, 99.0)] == [4.0, 4.0, 16.0, 10.0, 10.0]
    assert list(told.ends_s()) == [5.0, 10.0, 15.0]
    assert pieces(EXAMPLES[5], 12.0) == [(5.0, 4.0), (5.0, 16.0), (2.0, 10.0)]
    assert shape.mean_per_s == 10.0


def test_a_walk_stays_within_its_bounds() -> None:
    rates = [rate for _, rate in pieces(EXAMPLES[4], 300.0)]
    assert rates[0] == 10.0
    assert (min(rates), max(rates)) == (5.0, 15.0)


@pytest.mark.parametrize("arrivals", EXAMPLES, ids=lambda one: one.kind)
def test_the_twin_follows_the_shape(arrivals: Arrivals) -> None:
    steps = steps_of(Source("s", "a", "rate", (), arrivals=arrivals), (), 60_000_000_000, seed=3)
    assert steps[-1][0] == FOREVER_NS
    assert is_random(arrivals) == shape_of(arrivals).exponential_gaps
    if not isinstance(arrivals, OnOff | Walk):  # of these chance decides, and the twin has its own
        assert [rate * 1e9 for _, rate in steps] == pytest.approx([rate for _, rate in pieces(arrivals, 60.0)])
