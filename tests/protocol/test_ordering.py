"""The ordering unit: whatever comes, sorted but for what is flagged, nothing lost, and a hold that learns."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.model import Order
from weft.protocol.ordering import Ordering
from weft.protocol.published.ordering import OrderingAsPublished

YEARS = 10 * 365 * 86_400_000_000


def run(unit: Ordering, times: np.ndarray, at_once: bool = False, chunk: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """All records through a unit, a chunk at a time: the numbers that leave and their flags."""
    parts = [unit.take(times[k : k + chunk], at_once=at_once) for k in range(0, len(times), chunk)] + [unit.end()]
    return np.concatenate([part.numbers for part in parts]), np.concatenate([part.late for part in parts])


def assert_sorted_permutation(times: np.ndarray, numbers: np.ndarray, late: np.ndarray) -> None:
    assert sorted(numbers) == list(range(len(times)))
    assert (np.diff(times[numbers][~late]) >= 0).all()


def delayed(count: int, delay: np.ndarray, gap: float = 1000.0, seed: int = 1) -> np.ndarray:
    """Event times in order of arrival: each record arrives so long after it happened."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(gap, count))
    return (arrivals - delay).astype(np.int64)


def test_the_trace_of_the_documents_figure_3_gives_its_steps() -> None:
    unit = OrderingAsPublished()
    steps = []
    for name in ("A0", "A2", "C1", "A4", "B3", "A6"):
        out = [f"{kind}{time:g}" for time, kind in unit.take(float(name[1:]), name[0], name[0] == "A")]
        steps.append((name, unit.clock, unit.hold, out))
    assert steps == [
        ("A0", 0, 0, ["A0"]),
        ("A2", 2, 0, ["A2"]),
        ("C1", 2, 0, []),
        ("A4", 4, 3, ["C1"]),
        ("B3", 4, 3, []),
        ("A6", 6, 3, ["B3"]),
    ]
    assert unit.take(7, "A") == [(4, "A")], "A4 waits until the clock is 7"


orders = st.sampled_from([
    Order(), Order(lambda_=0.0), Order(late_max=0.1), Order(late_max=0.0), Order(held_max=5), Order(speculate=0.7),
])  # fmt: skip
moments = st.one_of(st.integers(0, 50), st.integers(0, 100_000), st.integers(-YEARS, YEARS), st.just(0), st.just(7))


@settings(max_examples=150, deadline=None)
@given(st.lists(moments, max_size=200), orders, st.booleans(), st.data())
def test_any_input_leaves_sorted_but_for_what_is_flagged_restarts_included(
    values: list[int], order: Order, at_once: bool, data: st.DataObject
) -> None:
    times = np.array(values, np.int64)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), np.bool_)
    unit = Ordering(order)
    parts, at = [], 0
    while at < len(times):
        size = data.draw(st.integers(1, 60))
        parts.append(unit.take(times[at : at + size], known[at : at + size], at_once))
        assert unit.held <= max(order.held_max, 0) + 16
        at += size
        match data.draw(st.sampled_from(["go on", "restart", "rest"])):
            case "restart":
                unit = Ordering.restored(order, unit.snapshot())
            case "rest":
                parts.append(unit.rest())
                assert unit.held == 0
    parts.append(unit.end())
    numbers = np.concatenate([part.numbers for part in parts])
    late = np.concatenate([part.late | part.revision for part in parts])
    assert_sorted_permutation(times, numbers, late)
    assert late[np.isin(numbers, np.flatnonzero(~known))].all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=150), st.integers(1, 149), st.booleans())
def test_a_restart_in_the_middle_changes_nothing(values: list[int], cut: int, at_once: bool) -> None:
    times = np.array(values, np.int64)
    whole, halves = Ordering(Order()), Ordering(Order())
    expected = [whole.take(times[:cut], at_once=at_once), whole.take(times[cut:], at_once=at_once), whole.end()]
    got = [halves.take(times[:cut], at_once=at_once)]
    halves = Ordering.restored(Order(), halves.snapshot())
    got += [halves.take(times[cut:], at_once=at_once), halves.end()]
    for one, other in zip(expected, got, strict=True):
        assert one.numbers.tolist() == other.numbers.tolist()
        assert one.late.tolist() == other.late.tolist()


@given(st.lists(st.integers(0, 1000), min_size=60, max_size=120), st.randoms())
@settings(max_examples=30, deadline=None)
def test_a_batch_gives_the_same_whatever_order_its_records_come_in(values: list[int], random: object) -> None:
    times = np.array(values, np.int64)
    first, second = Ordering(Order()), Ordering(Order())
    for unit in (first, second):
        unit.take(np.arange(0, 900, 9), at_once=True)
    mixed = times.copy()
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = first.take(times, at_once=True), second.take(mixed, at_once=True)
    all_one, all_other = np.concatenate([np.arange(0, 900, 9), times]), np.concatenate([np.arange(0, 900, 9), mixed])
    assert all_one[one.numbers][~one.late].tolist() == all_other[other.numbers][~other.late].tolist()
    assert sorted(all_one[one.numbers][one.late]) == sorted(all_other[other.numbers][other.late])
    assert first.hold == second.hold


@pytest.mark.parametrize("at_once", [False, True])
def test_one_record_years_ahead_is_flagged_alone_and_stops_nothing(at_once: bool) -> None:
    for place in (0, 5, 30, 1500):
        times = delayed(5000, np.random.default_rng(2).uniform(0, 30_000, 5000))
        times[place] = times.max() + YEARS
        unit = Ordering(Order())
        parts = [unit.take(times[k : k + 100], at_once=at_once) for k in range(0, 5000, 100)]
        numbers = np.concatenate([part.numbers for part in parts])
        late = np.concatenate([part.late for part in parts])
        assert len(numbers) > 4500, "the stream goes on"
        assert late[numbers == place].all()
        assert late.mean() < 0.03
        assert unit.hold < 100_000


@pytest.mark.parametrize("at_once", [False, True])
def test_one_record_from_years_ago_is_flagged_and_moves_no_hold(at_once: bool) -> None:
    times = np.arange(0, 3_000_000, 1000)
    times[1700] = -YEARS
    unit = Ordering(Order())
    numbers, late = run(unit, times, at_once, chunk=50)
    assert numbers[late].tolist() == [1700]
    assert unit.hold == 0


def test_a_leap_that_the_stream_follows_is_believed_within_sixteen_records() -> None:
    times = np.concatenate([np.arange(0, 500_000, 1000), YEARS + np.arange(0, 500_000, 1000)])
    unit = Ordering(Order())
    first = unit.take(times[:520])
    assert not first.late.any()
    assert unit.clock == times[519]
    numbers, late = run(Ordering(Order()), times)
    assert numbers.tolist() == list(range(1000))
    assert not late.any()


def test_after_a_jump_backwards_records_are_flagged_at_once_and_not_held() -> None:
    times = np.concatenate([YEARS + np.arange(0, 500_000, 1000), np.arange(0, 500_000, 1000)])
    unit = Ordering(Order())
    unit.take(times[:500])
    after = unit.take(times[500:])
    assert after.late.sum() == 500
    assert unit.held <= 1


def test_the_hold_falls_again_when_delays_fall() -> None:
    rng = np.random.default_rng(3)
    delays = np.concatenate([rng.uniform(0, 50_000, 4000), rng.uniform(0, 5_000, 12_000)])
    unit = Ordering(Order())
    holds = unit.take(delayed(16_000, delays)).holds
    assert holds[3999] > 45_000
    assert holds[-1] < 8_000


def test_more_than_memory_allows_leaves_early_and_still_sorted() -> None:
    unit = Ordering(Order(held_max=100))
    times = delayed(5000, np.random.default_rng(4).uniform(0, 1_000_000, 5000))
    numbers, late = run(unit, times, chunk=10)
    assert_sorted_permutation(times, numbers, late)
    assert len(unit.held_t) < 4096


def test_the_share_rule_keeps_its_share_the_start_included() -> None:
    rng = np.random.default_rng(5)
    for delays in (rng.exponential(20_000, 10_000), rng.lognormal(9, 1.5, 10_000)):
        for share in (0.05, 0.1, 0.3):
            unit = Ordering(Order(late_max=share))
            _, late = run(unit, delayed(10_000, delays))
            assert share / 3 < late.mean() <= share * 1.05


def test_a_state_from_before_the_budget_goes_on() -> None:
    unit = Ordering(Order(late_max=0.1))
    unit.take(delayed(400, np.random.default_rng(9).exponential(20_000, 400)))
    old = msgspec.msgpack.decode(unit.snapshot())
    old[3] = old[3][: 5 * 8]
    again = Ordering.restored(Order(late_max=0.1), msgspec.msgpack.encode(old))
    assert again.hold == unit.hold
    assert again.holding().tolist() == unit.holding().tolist()


def test_a_told_hold_spares_the_stumble_and_a_rise_is_announced() -> None:
    times = delayed(3000, np.random.default_rng(6).uniform(0, 40_000, 3000))
    alone, told = Ordering(Order()), Ordering(Order())
    told.told(50_000.0)
    assert told.take(times[:400]).late.sum() == 0
    announced = [alone.take(times[k : k + 10]).announce for k in range(0, 3000, 10)]
    rises = [one for one in announced if one is not None]
    assert 30_000 < max(rises) < 50_000
    assert len(rises) < 30, "small rises are not worth a message"


def test_speculation_waits_less_and_states_its_revisions() -> None:
    times = delayed(5000, np.random.default_rng(8).uniform(0, 40_000, 5000))
    waits, revised = [], []
    for part in (0.0, 0.5, 1.0):
        unit = Ordering(Order(speculate=part))
        left = [unit.take(times), unit.end()]
        numbers = np.concatenate([one.numbers for one in left])
        flagged = np.concatenate([one.flags != 0 for one in left])
        assert_sorted_permutation(times, numbers, flagged)
        waits.append(float(np.concatenate([one.wait for one in left])[~flagged].mean()))
        revised.append(sum(int(one.revision.sum()) for one in left))
        assert sum(int(one.late.sum()) for one in left) < 50
    assert waits[0] > 1.5 * waits[1] > 10 * waits[2]
    assert revised[0] == 0 < revised[1] < revised[2]


@pytest.mark.parametrize("at_once", [True, pytest.param(False, marks=pytest.mark.long)])
def test_real_times_are_ordered_as_whole_ones(at_once: bool) -> None:
    times = delayed(3000, np.random.default_rng(7).exponential(20_000, 3000))
    whole, real = Ordering(Order()), Ordering(Order(), real=True)
    expected, got = run(whole, times, at_once), run(real, times / 1e6, at_once)
    assert expected[0].tolist() == got[0].tolist()
    nothing = real.take(np.array([np.nan, np.inf]), at_once=at_once)
    assert nothing.late.all()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_rise_upstream_is_expected_until_the_own_records_have_shown_better(at_once: bool) -> None:
    unit = Ordering(Order())
    times = delayed(20_000, np.random.default_rng(6).uniform(0, 4_000, 20_000))
    steps = [times[k : k + 250] for k in range(0, 20_000, 250)]
    for step in steps[:20]:
        unit.hear(0.0)
        unit.take(step, at_once=at_once)
    learned = unit.hold
    assert 1_000 < learned < 10_000
    unit.hear(100_000.0)
    holds = []
    for step in steps[20:]:
        unit.hear(100_000.0)  # said again and again: only the rise counts
        unit.take(step, at_once=at_once)
        holds.append(unit.hold)
    assert holds[0] == 100_000.0
    assert holds[-1] < 2 * learned
    unit.hear(20_000.0)
    assert unit.hold < 2 * learned, "what falls upstream is no news"
    unit.hear(50_000.0)
    assert unit.hold == 50_000.0
    again = Ordering.restored(Order(), unit.snapshot())
    again.hear(50_000.0)
    assert again.snapshot() == unit.snapshot()
