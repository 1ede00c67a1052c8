"""When records of a live source are born: as the shape of its arrivals says, and as in the twin."""

from __future__ import annotations

import numpy as np
import pytest

from weft.bodies.twin.setup.flows import is_random
from weft.model import Arrivals, Constant, OnOff, Poisson, Sine, Trace, Walk
from weft.spark.sources.arrivals import Flow
from weft.spark.sources.rate import decode_arrivals, encode_arrivals

KINDS: list[Arrivals] = [
    Constant(200.0),
    Poisson(200.0),
    OnOff(200.0, period_s=12.0),
    Sine(200.0, amplitude=0.2, period_s=600.0),
    Walk(200.0, step_per_s=0.1),
    Trace((200.0, 210.0), 30.0),
]


@pytest.mark.parametrize("arrivals", KINDS, ids=lambda one: one.kind)
def test_gaps_are_exponential_live_where_they_are_in_the_twin(arrivals: Arrivals) -> None:
    gaps = np.diff(Flow(arrivals, 5).births(0, 4000))
    # In windows so short that the rate hardly changes; the few in which it does are no median.
    variation = np.median([window.std() / window.mean() for window in np.array_split(gaps, 80)])
    assert variation == pytest.approx(1.0, abs=0.15) if is_random(arrivals) else variation < 0.05


@pytest.mark.parametrize("arrivals", KINDS, ids=lambda one: one.kind)
def test_births_are_the_same_at_every_replay_and_counted_as_they_fall(arrivals: Arrivals) -> None:
    whole = Flow(arrivals, 5).births(0, 3000)
    flow = Flow(decode_arrivals(encode_arrivals(arrivals)), 5)
    assert np.array_equal(flow.births(1000, 3000), whole[1000:])
    assert np.array_equal(flow.births(0, 1000), whole[:1000])
    assert (np.diff(whole) >= 0).all()
    middle_s = float(whole[1499] + whole[1500]) / 2
    assert Flow(arrivals, 5).count(middle_s) == 1500


def test_a_rate_that_a_scenario_changes_is_followed_from_that_moment_on() -> None:
    births = Flow(Constant(10.0), 5, [(10.0, 3.0)]).births(0, 160)
    assert births[100] == pytest.approx(10.0)
    assert np.diff(births[101:]) == pytest.approx(1 / 30)
