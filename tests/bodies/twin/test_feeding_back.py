"""What sites know of delays in the twin: the slack of their own operators, and nothing of those that are lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bodies.relief_worlds import AT_GATE, tripled
from weft.bodies.twin.control.feeding_back import FeedingBack
from weft.model import (
    Control,
    Observed,
    ObservedQuery,
    ObservedSite,
    Placement,
    Quantiles,
    Relief,
)

APART = Placement({"suspicious.valid": "gw-1", "suspicious.hourly": "gw-2"})
DEPLOYMENT = tripled(Control(relief=Relief()))


class Stub:
    """Sites that are up, where operators run, and words that take 10 ms or are lost."""

    def __init__(self, placement: Placement) -> None:
        self.placement, self.down, self.cut = placement, set[str](), set[str]()

    def up(self, site: str) -> bool:
        return site not in self.down

    def running(self) -> Placement:
        return self.placement

    def message_ns(self, sender: str, to: str) -> int | None:
        return None if {sender, to} & self.cut else 10_000_000


def measured(at_s: float, first_ms: float, second_ms: float, delay_ms: float) -> Observed:
    sites = {"gw-1": ObservedSite(0.1, time_ms=first_ms), "gw-2": ObservedSite(0.1, time_ms=second_ms)}
    latency = Quantiles(delay_ms, delay_ms, delay_ms, delay_ms, delay_ms)
    queries = {"suspicious": ObservedQuery(10, 10, latency, True)}
    return Observed(at_s, 5.0, True, sites={**sites, "district": ObservedSite(0.0)}, queries=queries)


def test_every_site_of_a_query_knows_the_slack_of_its_own_operators() -> None:
    feeding = FeedingBack(DEPLOYMENT, Stub(APART))
    feeding.seen(measured(5.0, 30.0, 200.0, 400.0))
    assert feeding.slack(5.0) == {}, "words are under way"
    assert feeding.slack(6.0) == {
        "gw-1": {"suspicious.valid": 4_600.0},
        "gw-2": {"suspicious.hourly": 4_600.0},
        "district": {"suspicious.valid": 4_600.0, "suspicious.hourly": 4_600.0},
    }
    feeding.seen(measured(10.0, 30.0, 4_000.0, 5_400.0))
    assert feeding.slack(11.0)["gw-1"] == {"suspicious.valid": -400.0}


def test_of_a_lost_site_nothing_is_known_after_a_while_and_it_knows_again_when_it_is_back() -> None:
    steered = Stub(APART)
    feeding = FeedingBack(DEPLOYMENT, steered)
    feeding.seen(measured(5.0, 30.0, 200.0, 400.0))
    assert set(feeding.slack(6.0)) == {"gw-1", "gw-2", "district"}
    steered.down.add("gw-2")
    for at in range(2, 8):
        feeding.seen(measured(5.0 * at, 30.0, 200.0, 400.0))
    assert feeding.slack(40.0) == {}, "nobody knows what the lost site takes, and that is said"
    steered.down.clear()
    feeding.seen(measured(45.0, 30.0, 100.0, 300.0))
    assert feeding.slack(46.0)["gw-2"] == {"suspicious.hourly": 4_700.0}


def test_words_that_are_lost_are_known_a_period_later_and_a_move_ends_what_was_said_at_the_old_site() -> None:
    steered = Stub(APART)
    feeding = FeedingBack(DEPLOYMENT, steered)
    steered.cut.add("gw-2")
    feeding.seen(measured(5.0, 30.0, 200.0, 400.0))
    assert feeding.slack(6.0) == {}
    steered.cut.clear()
    feeding.seen(measured(10.0, 30.0, 200.0, 400.0))
    assert set(feeding.slack(11.0)) == {"gw-1", "gw-2", "district"}
    steered.placement = AT_GATE
    feeding.seen(measured(15.0, 50.0, 200.0, 500.0))
    assert feeding.slack(16.0)["gw-1"] == {"suspicious.valid": 4_500.0, "suspicious.hourly": 4_500.0}
    assert "gw-2" not in feeding.slack(16.0)


@pytest.mark.parametrize("relieves", [True, False])
def test_a_run_with_relief_tells_what_sites_know_and_changes_nothing_by_it(relieves: bool) -> None:
    from weft.bodies.twin import run

    deployment = replace(DEPLOYMENT, control=Control(relief=Relief() if relieves else None))
    result = run(deployment, AT_GATE, seconds=15, seed=1)
    if not relieves:
        assert result.slack_ms is None
        assert "slack_ms" not in result.as_json()
        return
    assert result.slack_ms is not None
    assert set(result.slack_ms) == {"gw-1", "district"}
    mean_ms = result.queries["suspicious"]["latency_ms"]["mean"]
    assert result.slack_ms["gw-1"]["suspicious.hourly"] == pytest.approx(5_000.0 - mean_ms, abs=20.0)
