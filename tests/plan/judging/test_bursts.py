"""Signatures of bursty streams, and what a placement is expected to do to its queries under them."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from weft.model import (
    Constant,
    Control,
    Cost,
    Deployment,
    Link,
    OnOff,
    Operator,
    Placement,
    Poisson,
    Project,
    Promise,
    Query,
    Sine,
    Sink,
    Site,
    Source,
    Trace,
)
from weft.plan.judging.admission import projected
from weft.plan.judging.batch_costs import SHIPPED
from weft.plan.judging.bursts import project_bursts, statistic, waiting
from weft.plan.judging.projection import project
from weft.plan.judging.signatures import Signature, combined, counted, declared

HALF = OnOff(20.0, 3.0, 2.5, 0.0)


def world(arrivals: object = HALF, cost_ms: float = 25.0, site: str = "a", **more: object) -> Deployment:
    source = Source("s", "a", "rate", (), arrivals=arrivals, record_bytes=125.0)  # type: ignore[arg-type]
    operator = Operator("o", ("s",), sql="-", cost_ms=Cost("constant", (cost_ms,)), selectivity=1.0)
    query = Query("q", (operator,), (Sink("o", "console", site=site),), Promise(latency_ms=100.0))
    return Deployment((Site("a"), Site("b")), (source,), (query,), (Link("a", "b", 5.0, 100.0),), **more)  # type: ignore[arg-type]


AT_A = Placement({"q.o": "a"})


def test_what_is_declared_has_its_segments() -> None:
    assert declared(HALF) == Signature(((2.5, 30.0), (2.5, 10.0)))
    assert declared(Poisson(7.0)) == Signature(((math.inf, 7.0),))
    swings = declared(Sine(10.0, 0.5, 8.0)).segments
    assert len(swings) == 8
    assert (max(swings)[1], min(rate for _, rate in swings)) == (pytest.approx(15.0), pytest.approx(5.0))
    assert declared(Trace((5.0,) * 20 + (50.0,) * 20, 1.0)).segments == ((20.0, 5.0), (20.0, 50.0))


def test_segments_are_found_in_counts_and_carry_all_that_was_counted() -> None:
    rng, rates = Random(3), [30.0, 10.0] * 20
    counts = [sum(rng.random() < rate / 1000 for _ in range(250)) for rate in rates for _ in range(10)]
    found = counted(counts, 0.25)
    assert found.window_s == pytest.approx(100.0)
    assert sum(seconds * rate for seconds, rate in found.segments) == pytest.approx(sum(counts))
    assert 30 <= len(found.segments) <= 70  # forty segments were drawn
    high = found.steps(0.25, len(counts)) > 20
    truth = np.array([rate > 20 for rate in rates for _ in range(10)])
    assert np.mean(high == truth) > 0.9


@pytest.mark.parametrize("counts", [[0] * 9, [4], [3, 0, 0, 0, 3], [100] * 5000])
def test_any_counts_make_a_signature(counts: list[int]) -> None:
    found = counted(counts, 0.5)
    assert found.window_s == pytest.approx(0.5 * len(counts))
    assert sum(seconds * rate for seconds, rate in found.segments) == pytest.approx(sum(counts))


def test_the_shortest_segment_divides_all_and_loses_nothing() -> None:
    both = combined(
        {
            "x": Signature(((2.0, 3.0), (4.0, 1.0))),
            "y": Signature(((1.0, 8.0), (2.0, 2.0))),
            "z": Signature(((math.inf, 5.0),)),
        }
    )
    assert both.step_s == 1.0
    assert both.rates_per_s["x"].tolist() == [3, 3, 1, 1, 1, 1]
    assert both.rates_per_s["y"].tolist() == [8, 2, 2, 8, 2, 2]
    assert both.rates_per_s["z"].tolist() == [5] * 6


def test_long_segments_have_the_published_queue_and_short_ones_less() -> None:
    # Equation 2.6: 1 + L = 1 / (1 - use).
    long = waiting([0.75, 0.25], 10_000.0, 0.01)
    assert 1 + long == pytest.approx([4.0, 1 / 0.75], rel=0.01)
    short = waiting([0.75, 0.25], 0.05, 0.01)
    assert 1 / (1 - 0.5) - 1 < short[0] < 3.0
    assert short[1] > 1 / 0.75 - 1


def test_a_short_burst_beyond_what_a_site_does_leaves_a_queue_and_does_not_last_for_ever() -> None:
    found = waiting([2.0, *[0.1] * 9], 1.0, 0.01)
    # By hand: about 100 records more come in that second than leave, half of them waiting in the mean.
    assert 45 < found[0] < 60
    assert found[1] > found[2] > found[9]
    assert np.all(np.isinf(waiting([1.5, 0.6], 1.0, 0.01)))


@pytest.mark.parametrize(("by", "value"), [("mean", 2.75), ("maximum", 4.0), ("quantile", 3.0)])
def test_a_statistic_goes_by_records(by: str, value: float) -> None:
    found = statistic([1.0, 4.0, 3.0, 9.0], [1.0, 1.0, 2.0, 0.0], Project(by, 0.75))  # type: ignore[arg-type]
    assert found == pytest.approx(value)


def test_regular_streams_are_projected_as_ever_but_for_what_links_take() -> None:
    for arrivals in (Constant(20.0), Poisson(20.0)):
        deployment = world(arrivals)
        for by in ("mean", "quantile", "maximum"):
            found = project_bursts(deployment, AT_A, None, Project(by))["q"]  # type: ignore[arg-type]
            assert found == project(deployment, AT_A)["q"]
    # 20 records of 1 kbit a second on 100 kbps: 10 ms each, a fifth used, so 10 / 0.8 = 12.5 ms beside the delay.
    away = world(Poisson(20.0), site="b")
    link = project_bursts(away, AT_A, None, Project())["q"].latency_ms
    without = project(away, AT_A)["q"].latency_ms
    assert link is not None
    assert without is not None
    assert link - without == pytest.approx(12.5)


def test_the_mean_of_bursts_is_less_than_their_quantile_and_more_than_the_mean_rate_says() -> None:
    said = {
        by: project_bursts(world(), AT_A, None, Project(by))["q"].latency_ms for by in ("mean", "quantile", "maximum")
    }  # type: ignore[arg-type]
    regular = project(world(), AT_A)["q"].latency_ms
    assert regular is not None
    assert regular < said["mean"] < said["quantile"] <= said["maximum"]  # type: ignore[operator]
    assert said["maximum"] < 100.0 * 1.05  # 25 / (1 - 0.75), where it stayed so


def test_control_says_by_what_promises_are_judged() -> None:
    mean, most = (
        projected(replace(world(cost_ms=26), control=Control(project=Project(by))), AT_A, None)["q"]  # type: ignore[arg-type]
        for by in ("mean", "maximum")
    )
    assert (mean.admitted, most.admitted) == (True, False)
    assert "is above the promised 100 ms by" in most.reason
    assert "at a" in most.reason


def test_micro_batches_are_projected_stretch_by_stretch_too() -> None:
    deployment = world(OnOff(2_000.0, 9.0, 20.0, 0.0), cost_ms=0.2)
    mean, most = (project_bursts(deployment, AT_A, SHIPPED, Project(by))["q"] for by in ("mean", "maximum"))  # type: ignore[arg-type]
    assert mean.model == "micro-batch"
    assert mean.latency_ms is not None
    assert most.latency_ms is not None
    assert mean.latency_ms < most.latency_ms
