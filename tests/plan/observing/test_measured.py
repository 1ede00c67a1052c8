"""Costs from batches, and a run's measurements in the place of guesses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Cost, Trace
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.observing.history import Span
from weft.plan.observing.measured import with_measured, with_series
from weft.plan.observing.regression import fit


def noisy_batches(seed: int, shares: np.ndarray, costs: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Batches of 10 to 2,000 records, a share of which reaches the second operator; delays are many and one-sided."""
    rng = np.random.default_rng(seed)
    first = rng.integers(10, 2000, len(shares)).astype(float)
    records = np.column_stack([first, first * shares])
    work_ms = 80 + records @ np.array(costs) + rng.exponential(8, len(shares))
    work_ms[::25] += 900  # now and then the machine does something else
    return records, np.ones(len(shares)), work_ms


def test_what_tasks_cost_is_not_laid_to_the_records_that_come_with_them() -> None:
    records, _, work_ms = noisy_batches(3, np.full(60, 1.0), (0.05, 0.0))
    tasks = 1.0 + (records[:, 0] + np.random.default_rng(3).normal(0, 400, 60) > 1000)
    found = fit(records[:, :1], tasks, work_ms + 75 * tasks)
    assert found is not None
    assert found.record_ms == pytest.approx((0.05,), rel=0.1)
    assert found.task_ms == pytest.approx(75, rel=0.1)


@pytest.mark.parametrize("seed", range(5))
def test_costs_are_told_apart_where_the_shares_vary(seed: int) -> None:
    shares = np.random.default_rng(seed + 100).uniform(0.3, 0.7, 200)
    found = fit(*noisy_batches(seed, shares, (0.1, 0.4)))
    assert found is not None
    assert found.record_ms == pytest.approx((0.1, 0.4), rel=0.15)


def test_operators_that_always_go_together_share_the_cost_and_its_sum_is_right() -> None:
    found = fit(*noisy_batches(1, np.full(200, 0.5), (0.1, 0.4)))
    assert found is not None
    assert found.record_ms[0] == pytest.approx(found.record_ms[1], rel=0.01)
    assert found.record_ms[0] + 0.5 * found.record_ms[1] == pytest.approx(0.3, rel=0.05)


def test_what_cannot_be_told_apart_is_shared_as_the_file_declares_it_and_what_can_is_as_measured() -> None:
    together = noisy_batches(1, np.full(200, 0.5), (0.5, 0.05))
    found = fit(*together, declared_ms=(20.0, 2.0))
    assert found is not None
    assert found.record_ms == pytest.approx((0.5, 0.05), rel=0.05)
    half = fit(*together, declared_ms=(20.0, None))
    assert half is not None
    assert half.record_ms[0] == pytest.approx(half.record_ms[1], rel=0.01)
    apart = np.random.default_rng(100).uniform(0.3, 0.7, 200)
    wrong = fit(*noisy_batches(0, apart, (0.1, 0.4)), declared_ms=(4.0, 1.0))
    assert wrong is not None
    assert wrong.record_ms == pytest.approx((0.1, 0.4), rel=0.15)


def test_batches_of_one_size_or_none_tell_nothing() -> None:
    assert fit(np.full((50, 1), 100.0), np.ones(50), np.linspace(80, 90, 50)) is None
    assert fit(np.zeros((50, 1)), np.ones(50), np.linspace(80, 90, 50)) is None
    assert fit(np.array([[1.0], [2.0]]), np.ones(2), np.array([1.0, 2.0])) is None


def test_measurements_take_the_place_of_guesses_and_of_nothing_else() -> None:
    guessed = op("guessed", "s", cost_ms=None, selectivity=None)
    declared = op("declared", "guessed", cost_ms=5.0, selectivity=0.5)
    whole = deployment("a", [source("s", "a")], query(guessed, declared))
    known, taken = with_measured(whole, {("q", "guessed"): (0.25, 0.1), ("q", "declared"): (9.0, 0.9)})
    assert known.query("q").operator("guessed").cost_ms == Cost("constant", (0.25,))
    assert known.query("q").operator("declared") == declared
    assert len(taken) == 1
    assert "guessed" in taken[0]
    assert ideal_rates(known).per_s["q.declared"] == pytest.approx(100 * 0.1 * 0.5)
    assert not ideal_rates(known).warnings


def test_a_join_keeps_its_guess_since_its_selectivity_is_over_a_product() -> None:
    join = op("join", "s", "t", cost_ms=None, selectivity=None)
    whole = deployment("a", [source("s", "a"), source("t", "a")], query(join))
    known, _ = with_measured(whole, {("q", "join"): (0.25, 0.1)})
    assert known.query("q").operator("join").selectivity is None
    assert known.query("q").operator("join").cost_ms is not None


def spans(start_s: float, *rates: float) -> tuple[Span, ...]:
    return tuple(Span(start_s + 5 * at, start_s + 5 * at + 5, 5.0, {"s": rate}) for at, rate in enumerate(rates))


def test_sources_become_traces_of_what_was_measured_last_without_a_gap() -> None:
    whole = deployment(["x"], [source("s", "x", 9.0), source("t", "x", 7.0)], query(op("a", "s"), op("b", "t")))
    found, taken = with_series(whole, (*spans(0, 90, 90, 90, 90), *spans(1000, 1, 2, 3, 4, 5)))
    assert found.sources[0].arrivals == Trace((1, 2, 3, 4, 5), 5.0)
    assert found.sources[1] == whole.sources[1], "of which nothing was measured"
    assert taken == ("source s: its rate over the last 25 s, as measured",)


def test_too_few_spans_tell_nothing_and_a_trace_of_the_file_stays() -> None:
    whole = deployment(["x"], [source("s", "x", 9.0)], query(op("a", "s")))
    assert with_series(whole, spans(0, 1, 2, 3)) == (whole, ())
    traced = deployment(["x"], [source("s", "x", arrivals=Trace((1.0, 2.0), 1.0))], query(op("a", "s")))
    assert with_series(traced, spans(0, 1, 2, 3, 4, 5)) == (traced, ())
