"""Queries come if every promise is kept, theirs and the others'; levels say what would also do."""

from __future__ import annotations

import pytest

from weft.model import Deployment, Level, Promise, Query, Site
from weft.plan.judging.admission import admission
from weft.plan.judging.projection import Projection, judged
from weft.plan.judging.promises import judged as measured

LEVELS = Promise(latency_ms=100, levels=(Level(200, 0.5), Level(400, 0.2)))


def query(name: str, promise: Promise = LEVELS, weight: float = 1.0) -> Query:
    return Query(name, (), (), promise, weight)


def expected(one: Query, latency_ms: float) -> Projection:
    return judged(one, Projection(latency_ms, 1.0, True, ""), "")


def admitted(before: dict[Query, float], after: dict[Query, float]) -> tuple[str, ...]:
    deployment = Deployment((Site("a"),), (), tuple(after))
    found = ({one.name: expected(one, ms) for one, ms in these.items()} for these in (before, after))
    return admission(deployment, *found).refused


@pytest.mark.parametrize(
    ("latency_ms", "level_ms", "worth"), [(99, 100, 1.0), (100, 100, 1.0), (101, 200, 0.5), (399, 400, 0.2)]
)
def test_the_best_level_that_is_kept_is_taken(latency_ms: float, level_ms: float, worth: float) -> None:
    found = expected(query("q"), latency_ms)
    assert (found.admitted, found.level_ms, found.worth) == (True, level_ms, worth)
    assert ("level of" in found.reason) == (level_ms > 100)
    told = measured(LEVELS, latency_ms, 1, 0, None)["latency_ms"]
    assert (told["kept"], told["promised"], told["level"]) == (True, 100, level_ms)


def test_beyond_the_last_level_a_promise_is_broken_by_what_is_above_that() -> None:
    found = expected(query("q"), 450)
    assert (found.admitted, found.level_ms) == (False, None)
    assert (
        found.reason == "latency 450.0 ms is above the last level of 400 ms by 50.0 ms; latency_ms: 450 could be kept"
    )
    assert measured(LEVELS, 450, 1, 0, None)["latency_ms"]["kept"] is False


def test_a_promise_without_levels_is_told_as_ever() -> None:
    found = expected(query("q", Promise(latency_ms=100)), 50)
    assert (found.admitted, found.reason, found.level_ms) == (True, "keeps its promised latency", None)
    assert "level" not in measured(Promise(latency_ms=100), 50, 1, 0, None)["latency_ms"]


def test_refused_is_what_breaks_a_promise_that_was_kept_and_not_what_was_broken_before() -> None:
    strict, free, new = query("q", Promise(latency_ms=100)), query("r", Promise()), query("n", Promise())
    assert admitted({strict: 90, free: 10}, {strict: 100, free: 999, new: 10}) == ()
    (refused,) = admitted({strict: 90}, {strict: 130, new: 10})
    assert refused == "q: latency 130.0 ms is above the promised 100 ms by 30.0 ms; latency_ms: 130 could be kept"
    assert admitted({strict: 110}, {strict: 130, new: 10}) == ()
    (refused,) = admitted({free: 1}, {free: 1, query("n", Promise(latency_ms=5)): 6})
    assert refused.startswith("n: latency 6.0 ms is above the promised 5 ms")


@pytest.mark.parametrize(("weight", "refused"), [(0.4, True), (0.5, False), (3.0, False)])
def test_one_that_runs_falls_to_a_lower_level_only_for_what_is_worth_as_much(weight: float, refused: bool) -> None:
    q, new = query("q"), query("n", Promise(latency_ms=10), weight)
    why = admitted({q: 90}, {q: 150, new: 5})
    assert bool(why) == refused
    if refused:
        assert why == ("q: would fall from 100 to 200 ms, which costs 0.5, and what comes is worth 0.4",)
