"""The potentials of a placement (Potential §2.2, §3.2), computed by hand here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, placed, query, source
from weft.model import Control, Deployment, JoinWindow, Link, Place, Sink, Site, Trace, Weights
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.judging.potential import Series, correlation, load_series, potential


def chain(cost_ms: float = 1.0, **more: Any) -> Deployment:
    asked = query(op("a", "s", cost_ms=cost_ms), op("b", "a", cost_ms=cost_ms))
    return deployment(["x", "y"], [source("s", "x")], asked, **more)


def test_load_counts_the_sites_load_once_per_operator_on_it() -> None:
    # Each operator asks 100 ms/s: 0.1 of a site.
    assert potential(chain(), placed(a="x", b="x")).load == pytest.approx(2 * 0.2)
    assert potential(chain(), placed(a="x", b="y")).load == pytest.approx(0.1 + 0.1)


def test_load_is_over_capacity_and_quota() -> None:
    asked = query(op("a", "s"))
    site = Site("x", capacity=2.0, quota=0.5)
    assert potential(deployment([site], [source("s", "x")], asked), placed(a="x")).load == pytest.approx(0.1)


def test_beyond_the_quota_load_grows_by_the_penalty() -> None:
    # 100 records/s of 15 ms: 1.5 of the site.
    asked = query(op("a", "s", cost_ms=15.0))
    whole = deployment(["x"], [source("s", "x")], asked)
    assert potential(whole, placed(a="x")).load == pytest.approx(1 + 20 * 0.5)
    mild = deployment(["x"], [source("s", "x")], asked, control=Control(Place(overload_penalty=2.0)))
    assert potential(mild, placed(a="x")).load == pytest.approx(1 + 2 * 0.5)
    just = deployment(["x"], [source("s", "x")], query(op("a", "s", cost_ms=10.0)))
    assert potential(just, placed(a="x")).load == pytest.approx(1.0)


def traced(second: tuple[float, ...], period_s: float = 5.0) -> Deployment:
    first = Trace((10.0, 20.0, 30.0), 5.0)
    sources = [source("s", "x", arrivals=first), source("t", "x", arrivals=Trace(second, period_s))]
    asked = query(op("a", "s"), op("b", "t"), sinks=(Sink("a", "csv", "o1"), Sink("b", "csv", "o2")))
    return deployment(["x", "y"], sources, asked)


@pytest.mark.parametrize(("second", "rho"), [((1.0, 2.0, 3.0), 1.0), ((3.0, 2.0, 1.0), -1.0), ((2.0, 2.0, 2.0), 0.0)])
def test_operators_that_rise_together_push_each_other_away(second: tuple[float, ...], rho: float) -> None:
    assert potential(traced(second), placed(a="x", b="x")).correlation == pytest.approx(2 * rho)


def test_an_operator_alone_on_its_site_has_no_correlation() -> None:
    assert potential(traced((1.0, 2.0, 3.0)), placed(a="x", b="y")).correlation == 0.0


def test_arrivals_that_are_no_trace_give_constant_series() -> None:
    assert load_series(chain()).load_ms == {"q.a": (100.0,), "q.b": (100.0,)}
    assert potential(chain(), placed(a="x", b="x")).correlation == 0.0


def test_three_on_a_site_are_each_held_against_the_sum_of_the_others() -> None:
    names = "abc"
    rates = {"a": (1.0, 2.0, 3.0, 4.0), "b": (2.0, 1.0, 2.0, 1.0), "c": (5.0, 5.0, 1.0, 1.0)}
    sources = [source(f"s{name}", "x", arrivals=Trace(rates[name], 1.0)) for name in names]
    asked = query(*(op(name, f"s{name}") for name in names))
    found = potential(deployment(["x"], sources, asked), placed(a="x", b="x", c="x")).correlation

    def rho(one: tuple[float, ...], two: tuple[float, ...]) -> float:
        mean = [sum(values) / 4 for values in (one, two)]
        cov = sum((p - mean[0]) * (q - mean[1]) for p, q in zip(one, two, strict=True))
        return float(cov / (sum((p - mean[0]) ** 2 for p in one) * sum((q - mean[1]) ** 2 for q in two)) ** 0.5)

    others = {name: [rates[other] for other in names if other != name] for name in names}
    expected = sum(rho(rates[name], tuple(map(sum, zip(*others[name], strict=True)))) for name in names)
    assert found == pytest.approx(expected)


def test_traces_of_different_steps_are_weighed_by_time_and_the_last_rate_stays() -> None:
    series = load_series(traced((2.0, 8.0), period_s=2.5))
    assert series.spans_s == (2.5, 2.5, 5.0, 5.0)
    assert series.load_ms["q.a"] == (10.0, 10.0, 20.0, 30.0)
    assert series.load_ms["q.b"] == (2.0, 8.0, 8.0, 8.0)
    assert series.mean(series.load_ms["q.b"]) == pytest.approx((2.5 * 2 + 12.5 * 8) / 15)


def test_a_joins_load_downstream_follows_the_product_of_its_inputs_in_each_period() -> None:
    join = op("j", "s", "t", selectivity=0.1, window=JoinWindow(seconds=1))
    sources = [source("s", "x", arrivals=Trace((1.0, 10.0), 1.0)), source("t", "x", arrivals=Trace((10.0, 1.0), 1.0))]
    series = load_series(deployment(["x"], sources, query(join, op("after", "j"))))
    assert series.load_ms["q.after"] == pytest.approx((1.0, 1.0))


def fan(*links: Link, bytes_: float = 100.0, homes: str = "yyz") -> float:
    readers = [op(f"r{at}", "a") for at in range(len(homes))]
    asked = query(op("a", "s"), *readers, sinks=tuple(Sink(one.name, "csv", one.name) for one in readers))
    whole = deployment(["x", "y", "z"], [source("s", "x", record_bytes=bytes_)], asked, links=links)
    return potential(whole, placed(a="x", **{f"r{at}": home for at, home in enumerate(homes)})).network


def test_network_counts_each_destination_site_once() -> None:
    assert fan(Link("x", "y", 10), Link("x", "z", 30)) == 40.0
    assert fan(Link("x", "y", 10), Link("x", "z", 30), homes="xxx") == 0.0


def test_network_sums_the_links_of_the_least_delay_path() -> None:
    assert fan(Link("x", "y", 10), Link("y", "z", 5)) == 10 + (10 + 5)


def test_a_full_link_pulls_with_its_utilisation() -> None:
    # 100 records/s of 100 bytes are 80 kbit/s for each destination.
    assert fan(Link("x", "y", 10, bandwidth_kbps=40), Link("x", "z", 30, bandwidth_kbps=80)) == 10 * 2 + 30
    # Both copies cross x-y, which is filled twice over by them together.
    assert fan(Link("x", "y", 10, bandwidth_kbps=80), Link("y", "z", 5)) == 2 * (10 * 2) + 5
    assert fan(Link("x", "y", 10, bandwidth_kbps=40), Link("x", "z", 30), bytes_=50.0) == 10 + 30


def test_streams_from_sources_and_to_sinks_do_not_count() -> None:
    asked = query(op("a", "s"), to="z")
    assert potential(deployment(["x", "y", "z"], [source("s", "x")], asked), placed(a="y")).network == 0.0


def test_the_total_is_weighted_and_the_parts_are_not() -> None:
    found = potential(chain(), placed(a="x", b="y"))
    assert (found.load, found.correlation, found.network) == (pytest.approx(0.2), 0.0, 10.0)
    assert found.total == pytest.approx(100 * 0.2 + 0.001 * 10)
    even = chain(control=Control(Place(weights=Weights(1, 1, 1))))
    assert potential(even, placed(a="x", b="y")).total == pytest.approx(10.2)


@example([(0.0, 8.152807266241214e-91), (3.986716029103584e-84, 0.0)])
@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=10))
def test_a_correlation_lies_between_minus_one_and_one_and_is_symmetric(pairs: list[tuple[float, float]]) -> None:
    first, second = [one for one, _ in pairs], [two for _, two in pairs]
    series = Series((1.0,) * len(pairs), {})
    found = correlation(series, first, second)
    assert -1.0 <= found <= 1.0
    assert found == pytest.approx(correlation(series, second, first))
    assert correlation(series, [7.0] * len(pairs), second) == 0.0


def test_a_joined_record_is_as_large_as_both_of_its_inputs_a_united_one_as_their_mean_by_rates() -> None:
    joined = op("j", "s", "t", selectivity=0.01, window=JoinWindow(records=10))
    asked = query(joined, op("after", "j"), op("both", "s", "t"))
    sources = [source("s", "x", 30.0, record_bytes=100.0), source("t", "x", 10.0, record_bytes=300.0)]
    whole = deployment(["x"], sources, asked)
    sizes = record_bytes(whole, ideal_rates(whole))
    assert (sizes["q.j"], sizes["q.after"], sizes["q.both"]) == (400.0, 400.0, 150.0)
