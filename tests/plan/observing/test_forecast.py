"""How fast a stream will flow: rivals, a choice by backtest, and guards against what tells nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.observing import slow_forecast as slow
from weft.plan.observing.forecast import (
    AUTO,
    AVERAGE,
    LAST,
    LEADER,
    METHODS,
    TIMES_MAX,
    TREND,
    errors,
    forecast,
    last,
    leader,
    leading,
)

RATES = st.lists(st.floats(0.0, 1e6, allow_subnormal=False), min_size=1, max_size=40)


@given(RATES, st.integers(1, 24))
def test_what_is_chosen_is_never_worse_than_the_last_value_on_the_backtest(rates: list[float], steps: int) -> None:
    found = forecast(rates, steps)
    assert found is not None
    own = np.asarray(rates)
    if found.method != LAST:
        assert errors(own, METHODS[found.method](own, steps)) <= errors(own, last(own, steps))


@given(RATES, RATES, st.integers(1, 24), st.sampled_from([AUTO, LAST, AVERAGE, TREND, LEADER]))
def test_every_forecast_is_a_rate_that_can_be(rates: list[float], other: list[float], steps: int, method: str) -> None:
    count = min(len(rates), len(other))
    rates, other = rates[-count:], other[-count:]
    found = forecast(rates, steps, method, {"other": other})
    assert found is not None
    assert len(found.per_s) == steps
    assert all(0.0 <= rate <= TIMES_MAX * max(rates) for rate in found.per_s)


@given(st.floats(0.0, 1e6, allow_subnormal=False), st.integers(1, 40), st.integers(1, 24))
def test_a_constant_rate_and_silence_stay_as_they_are(rate: float, count: int, steps: int) -> None:
    found = forecast([rate] * count, steps, AUTO, {"other": [0.0] * count})
    assert found is not None
    assert found.per_s == pytest.approx([rate] * steps)


def test_of_nothing_nothing_is_foreseen_and_of_few_samples_the_last() -> None:
    assert forecast([], 12) is None
    few = forecast([1.0, 2.0, 3.0], 12, TREND)
    assert few is not None
    assert (few.method, few.per_s[-1]) == (LAST, 3.0)


def test_a_rise_is_foreseen_by_its_trend_and_a_step_is_not_taken_for_one() -> None:
    rise = forecast([100.0] * 10 + [100.0 + 10 * at for at in range(1, 9)], 12)
    assert rise is not None
    assert rise.method == TREND
    assert 230 < rise.per_s[-1] < 320, "180 now, 10 more in each of 12 periods, damped"
    step = forecast([100.0] * 10 + [300.0] * 4, 12)
    assert step is not None
    assert step.per_s == (300.0,) * 12


def test_a_jump_is_believed_at_once() -> None:
    rng = np.random.default_rng(4)
    found = forecast([*rng.normal(200.0, 6.0, 20).tolist(), 600.0], 12)
    assert found is not None
    assert found.per_s == (600.0,) * 12, "an average would see it half a minute later"


def test_chance_around_a_mean_is_averaged() -> None:
    rng = np.random.default_rng(1)
    rates = rng.normal(100.0, 10.0, 40).tolist()
    found = forecast(rates, 12)
    assert found is not None
    assert found.method == AVERAGE
    assert abs(found.per_s[-1] - 100.0) < 15.0


def test_a_stream_that_follows_another_is_foreseen_by_it_with_its_lag() -> None:
    rng = np.random.default_rng(2)
    walk = 100.0 + np.cumsum(rng.normal(0.0, 8.0, 40))
    ahead, behind = walk[3:].tolist(), (2 * walk[:-3]).tolist()
    noise = rng.normal(100.0, 5.0, len(ahead)).tolist()
    assert leading(behind, {"noise": noise, "ahead": ahead}, 6) == ("ahead", 3)
    found = forecast(behind, 3, AUTO, {"noise": noise, "ahead": ahead})
    assert found is not None
    assert found.method == LEADER
    assert found.per_s == pytest.approx([2 * rate for rate in ahead[-3:]], rel=0.01)
    foreseen = leader(np.asarray(behind), 3, np.asarray(ahead), 3)
    assert np.abs(foreseen[10:-3, 2] - np.asarray(behind)[13:]).max() < 1e-6


def test_a_silent_or_constant_stream_leads_nobody() -> None:
    rates = [float(at) for at in range(20)]
    assert leading(rates, {"silent": [0.0] * 20, "constant": [5.0] * 20}, 6) is None
    assert leading([5.0] * 20, {"rising": rates}, 6) is None


@pytest.mark.parametrize("method", [AUTO, LAST, AVERAGE, TREND, LEADER])
def test_what_is_quick_foretells_what_is_written_down(method: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        count, steps = int(rng.integers(1, 60)), int(rng.integers(1, 25))
        walk = np.abs(100.0 + np.cumsum(rng.normal(0.0, 8.0, count + 5)))
        rates = (walk[:count] if rng.random() < 0.7 else rng.choice([0.0, 50.0, 300.0], count)).tolist()
        others = {
            "noise": rng.normal(100.0, 5.0, count).tolist(), "constant": [7.0] * count, "silent": [0.0] * count,
            "shorter": walk[: count // 2].tolist(), "longer": walk.tolist(),
            "ahead": (walk[5:] + rng.normal(0.0, 3.0, count)).tolist(),
        }  # fmt: skip
        found = forecast(rates, steps, method, others)
        told, chosen = slow.forecast(rates, steps, method, others)
        assert found is not None
        assert found.method == chosen
        assert found.per_s == pytest.approx(told, rel=1e-9, abs=1e-9)


def test_whoever_goes_ahead_is_found_whatever_the_scale_and_where_both_are_constant_for_a_while() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        count, scale = int(rng.integers(7, 41)), float(10.0 ** rng.integers(-3, 7))
        walk = scale * (5.0 + np.cumsum(rng.normal(0.0, 1.0, count + 3)))
        walk[: int(rng.integers(0, count))] = walk[0]
        others = {"near": walk[1 : count + 1], "far": walk[3:], "noise": rng.normal(scale, 0.1, count)}
        own = walk[:count] + rng.normal(0.0, scale * float(rng.choice([0.0, 0.1, 1.0])), count)
        lag_max = int(rng.integers(1, 13))
        told = slow.leading(own.tolist(), {name: one.tolist() for name, one in others.items()}, lag_max)
        assert leading(own, others, lag_max) == told


def test_a_forecast_costs_less_than_a_tenth_of_a_millisecond() -> None:
    rng = np.random.default_rng(3)
    rates, others = rng.normal(100.0, 10.0, 60), {f"s{at}": rng.normal(100.0, 10.0, 60) for at in range(7)}
    assert min(cpu_ms(lambda: forecast(rates, 12)) for _ in range(5)) < 0.1, "0.035 ms where it was written"
    assert min(cpu_ms(lambda: forecast(rates, 12, AUTO, others)) for _ in range(5)) < 0.2, "0.07 ms"


def cpu_ms(called: Callable[[], object], times: int = 100) -> float:
    began = time.process_time()
    for _ in range(times):
        called()
    return 1000.0 * (time.process_time() - began) / times
