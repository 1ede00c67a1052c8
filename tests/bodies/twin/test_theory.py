"""Where theory gives exact answers, the twin gives the same, at a million records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.bodies.twin.twin_worlds import pair, placed, source, station, step
from weft.bodies.twin import run
from weft.model import Constant, Cost, Deployment, Poisson, Query, Queue, Sink

RECORDS = 1_000_000
RATE = 800.0
SECONDS = RECORDS / RATE


def close(measured: float, expected: float, share: float) -> bool:
    return abs(measured - expected) <= share * expected


# The mean of n correlated waiting times has a standard error of about sqrt(2 (1 + rho) / (1 - rho)^2 / n) of itself for
# M/M/1 (Daley 1968): 1 % at rho 0.8 and a million records. Three of them make the bounds below.
BOUND = 3 * math.sqrt(2 * 1.8 / 0.2**2 / RECORDS)


@pytest.mark.parametrize(
    ("cost", "second_moment"),
    [
        (Cost("exponential", (1.0,)), 2.0),
        (Cost("constant", (1.0,)), 1.0),
        (Cost("uniform", (0.5, 1.5)), 1.0 + 1 / 12),
        (Cost("normal", (1.0, 0.2)), 1.04),
        (Cost("empirical", (0.5, 0.5, 2.0)), (0.25 + 0.25 + 4) / 3),
    ],
    ids=["M/M/1", "M/D/1", "M/U/1", "M/N/1", "M/G/1 empirical"],
)
def test_waiting_follows_pollaczek_and_khinchine_and_little(cost: Cost, second_moment: float) -> None:
    result = run(station(Poisson(RATE), cost), seconds=SECONDS, seed=11)
    rho = RATE * cost.mean_ms / 1000
    sojourn_ms = cost.mean_ms + RATE / 1000 * second_moment / (2 * (1 - rho))
    found = result.queries["q"]
    assert close(found["latency_ms"]["mean"], sojourn_ms, BOUND)
    assert close(result.sites["a"]["utilisation"], rho, 0.005)
    rate = found["records_in"] / SECONDS
    mean_number = result.site_rows[0]["records_mean"]
    assert close(mean_number, rate * found["latency_ms"]["mean"] / 1000, 1e-4)


def test_quantiles_of_m_m_1_are_exponential() -> None:
    found = run(station(Poisson(500.0), Cost("exponential", (1.0,))), seconds=1000, seed=5).queries["q"]["latency_ms"]
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert close(found[name], -math.log(1 - share) * 2.0, 0.03)


@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_full_queue_drops_as_m_m_1_k_says(length: int) -> None:
    result = run(station(Poisson(RATE), Cost("exponential", (1.0,)), Queue(length)), seconds=SECONDS, seed=3)
    rho, places = 0.8, length + 1
    loss = (1 - rho) * rho**places / (1 - rho ** (places + 1))
    found = result.queries["q"]
    error = math.sqrt(loss / found["records_in"])
    assert abs(found["dropped"] / found["records_in"] - loss) < 8 * error
    assert result.sites["a"]["queue_max"] == length


def test_two_queues_in_tandem_over_a_link_add_up() -> None:
    sites, links = pair(delay_ms=7.0)
    work = Cost("exponential", (1.0,))
    query = Query("q", (step("one", "s", cost=work), step("two", "one", cost=work)), (Sink("two", "console"),))
    deployment = Deployment(sites, (source("s", "a", Poisson(500.0)),), (query,), links)
    result = run(deployment, placed(deployment, q__one="a", q__two="b"), seconds=2000, seed=2)
    # Burke: the second queue sees Poisson arrivals too, so both are M/M/1.
    assert close(result.queries["q"]["latency_ms"]["mean"], 2.0 + 7.0 + 2.0, 0.01)
    for site in ("a", "b"):
        assert close(result.sites[site]["utilisation"], 0.5, 0.005)


def test_a_fork_crosses_a_link_once_for_each_destination_site() -> None:
    sites, links = pair(delay_ms=1.0, bandwidth_kbps=1e6)
    operators = (step("head", "s"), *(step(f"o{k}", "head") for k in range(3)))
    query = Query("q", operators, tuple(Sink(f"o{k}", "console") for k in range(3)))
    deployment = Deployment(sites, (source("s", "a", Constant(1000.0)),), (query,), links)
    homes = {"q__head": "a", "q__o0": "b", "q__o1": "b", "q__o2": "a"}
    result = run(deployment, placed(deployment, **homes), seconds=10, seed=0)
    assert [row["sent"] for row in result.link_rows] == [10_000, 0]
    assert result.queries["q"]["records_out"] == pytest.approx(30_000, abs=5)


def test_a_link_carries_its_bandwidth_and_no_more() -> None:
    sites, links = pair(delay_ms=50.0, bandwidth_kbps=800.0)  # 1000 records of 100 bytes a second
    query = Query("q", (step("o", "s"),), (Sink("o", "console"),))
    deployment = Deployment(sites, (source("s", "a", Poisson(2000.0)),), (query,), links)
    result = run(deployment, placed(deployment, q__o="b"), seconds=60, seed=1)
    assert result.queries["q"]["records_out"] == pytest.approx(60_000 - 50, abs=2)
    assert result.link_rows[0]["utilisation"] > 0.999


def test_a_link_below_its_limit_is_a_queue_with_constant_service() -> None:
    sites, links = pair(delay_ms=5.0, bandwidth_kbps=800.0)
    query = Query("q", (step("o", "s"),), (Sink("o", "console"),))
    deployment = Deployment(sites, (source("s", "a", Poisson(800.0)),), (query,), links)
    result = run(deployment, placed(deployment, q__o="b"), seconds=SECONDS, seed=1)
    assert close(result.queries["q"]["latency_ms"]["mean"], 5.0 + 1.0 + 0.8 / (2 * 0.2), 0.02)


def test_a_site_twice_as_fast_takes_half_the_time() -> None:
    found = run(station(Constant(100.0), Cost("constant", (3.0,)), capacity=2.0), seconds=10, seed=0)
    assert found.queries["q"]["latency_ms"]["max"] == 1.5
    assert found.sites["a"]["utilisation"] == pytest.approx(0.15)


@pytest.mark.parametrize("selectivity", [0.0, 0.35, 1.0, 2.75])
def test_selectivity_is_the_mean_number_of_results(selectivity: float) -> None:
    query = Query("q", (step("o", "s", selectivity=selectivity),), (Sink("o", "console"),))
    deployment = Deployment(pair(0)[0], (source("s", "a", Constant(10_000.0)),), (query,))
    found = run(deployment, placed(deployment, q__o="a"), seconds=10, seed=0).queries["q"]
    assert found["records_out"] / found["records_in"] == pytest.approx(selectivity, abs=0.01)


@pytest.mark.parametrize("arrivals", [Poisson(40.0), Constant(40.0)])
@pytest.mark.parametrize("window", [{"records": 1}, {"records": 10}, {"seconds": 2.0}])
def test_a_join_gives_its_selectivity_times_the_product_of_rates(arrivals: object, window: dict[str, float]) -> None:
    from weft.model import JoinWindow

    join = step("j", "s", "t", selectivity=0.05, window=JoinWindow(**window))  # type: ignore[arg-type]
    query = Query("q", (join,), (Sink("j", "console"),))
    feeds = (source("s", "a", arrivals), source("t", "a", Poisson(25.0)))  # type: ignore[arg-type]
    deployment = Deployment(pair(0)[0], feeds, (query,))
    found = run(deployment, placed(deployment, q__j="a"), seconds=2000, seed=4).queries["q"]
    assert found["records_out"] / 2000 == pytest.approx(0.05 * 40 * 25, rel=0.03)


def test_chance_has_the_moments_it_should() -> None:
    from weft.bodies.twin.loop import chance

    key = np.uint64(chance.key_of(1, "x"))
    for draw, mean, variance in ((chance.uniform, 0.5, 1 / 12), (chance.exponential, 1, 1), (chance.normal, 0, 1)):
        values = np.array([draw(key, n) for n in range(200_000)])
        assert values.mean() == pytest.approx(mean, abs=0.01)
        assert values.var() == pytest.approx(variance, rel=0.02)


def test_the_own_logarithm_and_sine_agree_with_libm() -> None:
    from weft.bodies.twin.loop import chance
    from weft.plan.dataflow.arrivals import sine

    for x in np.linspace(1e-12, 1.0, 2001):
        assert chance.log(float(x)) == pytest.approx(math.log(x), rel=1e-14, abs=1e-15)
        assert sine(float(x)) == pytest.approx(math.sin(2 * math.pi * x), abs=1e-14)
