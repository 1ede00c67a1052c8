"""S-lab4: which records come into which operator, what a rate is, and that errors are those of what was foreseen."""

from __future__ import annotations

import numpy as np
import pytest

from weft.lab import s_lab4
from weft.lab.network_records import BEFORE, OPERATORS, PairLog, ancestors, passed, rates_at, sampled
from weft.plan.observing.forecast import LAST


def log(count: int, moments: np.ndarray | None = None, pairs: int = 4) -> PairLog:
    times = np.arange(count, dtype=float) if moments is None else moments
    return PairLog("drawn", times, tuple((f"a{at % pairs}", "b") for at in range(count)))


def test_only_pairs_in_the_top_of_the_range_are_reported() -> None:
    busy = PairLog("drawn", np.arange(100.0), tuple(("a", "b") if at % 2 else (f"a{at}", "b") for at in range(100)))
    into = passed(busy, range_s=1_000.0)
    assert into["report"] == list(range(37, 100, 2)), "from the moment when 19 other pairs are below it"
    assert set(OPERATORS) == set(into) == set(BEFORE)
    short = passed(busy, range_s=0.5)
    assert short["report"] == [], "where the range holds one record, nobody is below it"


def test_a_pair_with_an_unknown_end_goes_no_further_than_select() -> None:
    odd = PairLog("drawn", np.arange(3.0), (("a", "b"), ("-", "b"), ("a", "")))
    into = passed(odd)
    assert (len(into["select"]), len(into["project"]), len(into["compare"])) == (3, 1, 2)


def test_a_rate_counts_the_records_of_its_window_and_samples_begin_with_the_first_whole_one() -> None:
    moments = np.arange(0.0, 20.0, 0.5)
    when, rates = sampled(moments, 4, 5.0)
    assert when[0] == 5.5
    assert rates.tolist() == [2.0] * len(when)
    assert rates_at(moments, [2.0], 5.0).tolist() == [1.0]


def test_everything_before_an_operator_may_lead_it_the_nearest_first() -> None:
    assert ancestors("compare")[:2] == ("rank", "count")
    assert ancestors("compare")[-1] == "sort"
    assert ancestors("sort") == ()


def test_a_steady_stream_is_foreseen_without_error_and_a_burst_is_not() -> None:
    steady = s_lab4.foreseen_rates(log(4_000), 50, 1.0)
    assert steady.percent("sort") == pytest.approx(0.0, abs=0.5)
    assert steady.count == sum(len(values) for values in steady.of.values())
    bursts = log(4_000, np.sort(np.random.default_rng(1).exponential(1.0, 4_000).cumsum() ** 1.5))
    assert s_lab4.foreseen_rates(bursts, 50, 1.0, LAST).percent("sort") > 1.0


def test_the_query_of_every_site_runs_on_all_of_them_and_times_are_foreseen() -> None:
    moments = np.sort(np.random.default_rng(2).uniform(0.0, 500.0, 1_500))
    deployment, placement = s_lab4.world(log(1_500, moments), seed=1)
    assert len(deployment.sites) == s_lab4.SITES == len(deployment.queries)
    assert len(placement.homes) == s_lab4.SITES * len(OPERATORS)
    found = s_lab4.at_sites(log(1_500, moments))
    assert 0 < found.times < 400
    assert 0 < found.rates < 100
    assert found.look_ms > 0
