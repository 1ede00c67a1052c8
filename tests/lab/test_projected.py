"""S-lab3: errors are of the right sign and size where arithmetic knows them."""

from __future__ import annotations

import numpy as np
import pytest

from weft.lab.s_lab3 import Case, bursts, cases, compared
from weft.model import Poisson


def test_without_data_the_rest_is_measured() -> None:
    named = cases(None)
    assert len(named) == 9
    assert not any("network" in one.figure for one in named.values())


def test_a_regular_stream_of_little_use_takes_about_its_own_time() -> None:
    found = compared(Case("", (Poisson(20.0), Poisson(20.0)), 200.0, 1.0, seconds=60.0), "constant")
    every = np.ones(len(found.records), np.bool_)
    # By hand: 3.75 / 2 ms of work, 40 a second: 7.5 % used, so at most a tenth of it is waiting.
    assert found.alone_ms == pytest.approx(1.875)
    assert found.error(found.ours_ms, every) == pytest.approx(0.05, abs=0.06)
    assert found.error(2 * found.took_ms, every) == pytest.approx(1.0)


def test_bursts_are_not_projected_too_low_where_rates_are_high() -> None:
    found = compared(bursts("", 30, 10, 2.5), "exponential")
    error = found.error(found.ours_ms, found.high)
    assert error is not None
    assert -0.05 <= error < 0.4
