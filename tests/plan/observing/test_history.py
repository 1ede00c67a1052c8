"""The past rates of sources: finely for the last while, coarsely before, never more than a bound."""

from __future__ import annotations

from itertools import pairwise

import pytest

from weft.plan.observing.history import SPANS_MAX, SPANS_MIN, History, Span, added, spans_max


def told(count: int, sources: int = 1, seconds: float = 5.0) -> History:
    history: History = ()
    for at in range(count):
        rates = {f"s{one}": float(at) for one in range(sources)}
        history = added(history, Span(at * seconds, (at + 1) * seconds, seconds, rates))
    return history


def test_a_short_history_is_kept_as_it_is() -> None:
    assert [span.rates_per_s["s0"] for span in told(10)] == list(range(10))


def test_a_long_one_is_bounded_covers_all_time_and_keeps_every_record() -> None:
    count = 20_000
    history = told(count)
    assert SPANS_MAX // 2 < len(history) <= SPANS_MAX
    assert (history[0].start_s, history[-1].end_s) == (0.0, 5.0 * count)
    assert all(one.end_s == other.start_s for one, other in pairwise(history))
    records = sum(span.rates_per_s["s0"] * span.measured_s for span in history)
    assert records == pytest.approx(5.0 * sum(range(count)))
    widths = [span.measured_s for span in history]
    assert widths == sorted(widths, reverse=True), "the older, the coarser"
    assert widths[-SPANS_MAX // 2 :] == [5.0] * (SPANS_MAX // 2)


def test_many_sources_make_it_coarser() -> None:
    assert spans_max(1) == SPANS_MAX
    assert spans_max(100) == 200
    assert spans_max(10**6) == SPANS_MIN
    assert len(told(1_000, sources=1_000)) <= SPANS_MIN


def test_time_that_nobody_measured_does_not_count() -> None:
    history: History = (Span(0.0, 5.0, 5.0, {"s": 10.0, "gone": 1.0}), Span(1_000.0, 1_015.0, 15.0, {"s": 30.0}))
    for at in range(SPANS_MAX):
        history = added(history, Span(2_000.0 + at, 2_001.0 + at, 1.0, {"s": 0.0}))
    assert history[0] == Span(0.0, 1_015.0, 20.0, {"s": 25.0, "gone": 1.0})
