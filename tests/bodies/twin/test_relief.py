"""Relief in the twin: a promise that would break is kept, by one move, and where nothing happens nothing moves."""

from __future__ import annotations

import pytest

from tests.bodies.relief_worlds import AT_GATE, pairs, quiet, ramp, tripled, used_at_end
from weft.bodies.twin import Result, run
from weft.model import Advise, Control, Relief

ON, OFF = Control(relief=Relief()), Control()


def broken(result: Result) -> float:
    """The share of results that came in seconds in which the promise was broken."""
    queries = [one.queries["suspicious"] for one in result.observed]
    late = sum(one.records_out or 0 for one in queries if one.promise_kept is False)
    return late / max(1, sum(one.records_out or 0 for one in queries))


def first_broken_s(result: Result) -> float | None:
    """When the promise was first broken in a second."""
    return next((one.at_s for one in result.observed if one.queries["suspicious"].promise_kept is False), None)


def test_a_source_that_triples_breaks_the_promise_and_with_relief_it_is_kept_by_one_move() -> None:
    without = run(tripled(OFF), AT_GATE, seconds=120, seed=1, observe_s=1.0)
    assert without.queries["suspicious"]["promise_kept"] is False
    assert without.changes == []
    result = run(tripled(ON), AT_GATE, seconds=120, seed=1, observe_s=1.0)
    assert result.queries["suspicious"]["promise_kept"] is True
    assert broken(result) <= 0.3 * broken(without)
    (change,) = result.changes
    assert (change["by"], change["state"], change["at_s"]) == ("relief", "done", 25.0)
    assert change["wish"] == {"move": {"suspicious.hourly": "district"}}
    assert change["reason"].startswith("suspicious.hourly leaves gw-1: ")
    assert change["pause_ms"] is not None
    (move,) = result.moves
    assert (move.operator, move.from_, move.to) == ("hourly", "gw-1", "district")
    assert result.decisions is not None
    assert [one["state"] for one in result.decisions] == ["done"]
    assert result.decisions[0]["numbers"]["slack_ms"]["suspicious.hourly"] < 0
    assert result.as_json()["changes"] == result.changes


@pytest.mark.parametrize("starts_s", [(20.0,) * 4, (20.0, 40.0, 60.0)])
def test_several_hot_spots_at_once_or_in_turn_are_each_relieved_by_one_move(starts_s: tuple[float, ...]) -> None:
    deployment, placement = pairs(starts_s)
    result = run(deployment, placement, seconds=120, seed=1)
    assert sorted(str(one["wish"]["move"]) for one in result.changes if one["state"] == "done") == [
        str({f"q{at}.hourly": f"district-{at}"}) for at in range(len(starts_s))
    ]
    assert all(query["promise_kept"] for query in result.queries.values())
    plain, _ = pairs(starts_s, relieves=False)
    without = run(plain, placement, seconds=120, seed=1)
    assert not any(query["promise_kept"] for query in without.queries.values())


def test_the_same_seed_decides_the_same() -> None:
    one, other = (run(tripled(ON), AT_GATE, seconds=60, seed=3) for _ in range(2))
    assert (one.changes, one.decisions, one.story) == (other.changes, other.decisions, other.story)


def test_where_rules_only_advise_relief_says_what_it_would_do_and_does_nothing() -> None:
    advised = Control(relief=Relief(), advise=Advise(period_s=1000.0))
    result = run(tripled(advised), AT_GATE, seconds=40, seed=1)
    assert result.moves == []
    (change,) = result.changes
    assert (change["by"], change["state"], change["wish"]) == (
        "relief", "advised", {"move": {"suspicious.hourly": "district"}},
    )  # fmt: skip
    plain = run(tripled(OFF), AT_GATE, seconds=40, seed=1)
    assert result.queries == plain.queries


@pytest.mark.parametrize("used", [0.5, 0.85])
def test_in_a_quiet_run_of_ten_minutes_nothing_moves(used: float) -> None:
    result = run(quiet(ON, used), AT_GATE, seconds=600, seed=1)
    assert result.changes == []
    assert result.queries == run(quiet(OFF, used), AT_GATE, seconds=600, seed=1).queries


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(1000), marks=pytest.mark.long)])
def test_a_ramp_that_ends_below_nine_tenths_of_what_its_site_can_do_moves_nothing(seeds: range) -> None:
    low = [seed for seed in seeds if used_at_end(seed) < 0.9]
    assert len(low) >= len(seeds) // 20
    moved = [seed for seed in low if run(ramp(seed)[0], AT_GATE, seconds=ramp(seed)[1], seed=seed).changes]
    assert len(moved) <= len(low) // 20, moved


@pytest.mark.parametrize(("seeds", "least"), [(range(10), 1.0), pytest.param(range(250), 0.9, marks=pytest.mark.long)])
def test_relief_acts_before_the_promise_breaks_in_nine_of_ten_ramps(seeds: range, least: float) -> None:
    breaks = before = twice = 0
    for seed in seeds:
        plain, seconds = ramp(seed, relieves=False)
        if first_broken_s(run(plain, AT_GATE, seconds=seconds, seed=seed, observe_s=1.0)) is None:
            continue
        breaks += 1
        result = run(ramp(seed)[0], AT_GATE, seconds=seconds, seed=seed, observe_s=1.0)
        late_s = first_broken_s(result)
        acted_s = next((one["at_s"] for one in result.changes if one["state"] == "done"), None)
        before += acted_s is not None and (late_s is None or acted_s < late_s)
        twice += len(result.changes) > 1
    assert breaks >= len(seeds) // 2
    assert before >= least * breaks, f"{before} of {breaks}"
    assert twice <= breaks // 20, f"{twice} of {breaks} moved twice"
