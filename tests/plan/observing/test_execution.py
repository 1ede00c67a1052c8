"""How long a record will be at a site: a line through measurements, believed only where they tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.plan.observing.execution import PAIRS_MIN, fitted

VALUES = st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)), max_size=30)


def test_a_line_is_found_and_reaches_somewhat_beyond_what_was_seen() -> None:
    rates = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0, 160.0]
    line = fitted(rates, [2.0 + 0.1 * rate for rate in rates])
    assert line is not None
    assert line.at(200.0) == pytest.approx(22.0)
    assert line.at(1000.0) is None, "nobody has seen such a rate"


def test_a_slope_in_doubt_is_not_believed() -> None:
    rng = np.random.default_rng(1)
    rates = rng.uniform(100, 200, 20)
    assert fitted(rates.tolist(), rng.uniform(1, 50, 20).tolist()) is None
    assert fitted(rates.tolist(), (0.1 * rates + rng.normal(0, 0.5, 20)).tolist()) is not None


def test_few_pairs_one_rate_and_a_line_that_falls_tell_nothing() -> None:
    assert fitted([1.0, 2.0], [1.0, 2.0]) is None
    assert fitted([5.0] * 10, [float(at) for at in range(10)]) is None
    assert fitted([float(at) for at in range(10)], [-float(at) for at in range(10)]) is None
    assert fitted([0.0] * PAIRS_MIN, [0.0] * PAIRS_MIN) is None


@given(VALUES)
def test_whatever_was_measured_a_time_is_never_negative(pairs: list[tuple[float, float]]) -> None:
    line = fitted([rate for rate, _ in pairs], [took for _, took in pairs])
    if line is not None:
        assert line.slope_ms > 0
        assert all((line.at(rate) or 0.0) >= 0.0 for rate in (0.0, *(rate for rate, _ in pairs)))
