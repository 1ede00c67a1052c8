"""What the twin changed and what was changed live, side by side: `weft run --twin`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.bodies.relief_worlds import AT_GATE, tripled
from weft.bodies.live.calibration import known_costs
from weft.cli.placing import Placed
from weft.cli.predicted import compared
from weft.cli.stories import STORIES_HEAD, side_by_side, stories, stories_rows
from weft.model import Balance, Control, Relief


def change(at_s: float, wish: dict[str, Any], by: str = "relief", state: str = "done", why: str = "") -> dict[str, Any]:
    return {"at_s": at_s, "by": by, "wish": wish, "reason": "too much", "state": state, "why": why, "pause_ms": None}


def test_the_same_changes_stand_side_by_side_and_what_only_one_did_alone() -> None:
    in_twin = [change(5.0, {"move": {"q.a": "x"}}), change(9.0, {"move": {"q.b": "x"}}), change(20.0, {"remove": "r"})]
    live = [
        change(7.0, {"move": {"q.b": "y"}}), change(8.0, {"move": {"q.a": "x"}}, state="refused", why="no room"),
        change(30.0, {"move": {"q.a": "x"}}, by="person"),
    ]  # fmt: skip
    pairs = side_by_side(in_twin, live)
    assert [(pair["twin"] and pair["twin"]["at_s"], pair["live"] and pair["live"]["at_s"]) for pair in pairs] == [
        (9.0, 7.0), (5.0, 8.0), (20.0, None), (None, 30.0),
    ]  # fmt: skip
    rows = stories_rows({"changes": pairs})
    assert {len(row) for row in rows} == {len(STORIES_HEAD)}
    assert rows[0] == (
        "relief", "q.b to y", "9.0", "7.0", "done (q.b to x): too much", "done (q.b to y): too much",
    )  # fmt: skip
    assert rows[1][4:] == ("done: too much", "refused: no room")
    assert rows[2] == ("relief", "remove r", "20.0", "-", "done: too much", "-")


@pytest.fixture
def before() -> Placed:
    return Placed(tripled(Control(relief=Relief())), AT_GATE, "the policy near", known_costs()[0], "as known", ())


def test_where_relief_is_on_the_twin_tells_its_own_by_what_sites_can_do(before: Placed) -> None:
    relieved = change(26.0, {"move": {"suspicious.hourly": "district"}})
    found = stories(before, {"flowed_s": 40.0, "changes": [relieved]})
    assert found["model"] == "ideal"
    (pair,) = found["changes"]
    assert pair["live"] == relieved
    assert (pair["twin"]["at_s"], pair["twin"]["wish"]) == (25.0, relieved["wish"])
    assert pair["twin"]["reason"].startswith("suspicious.hourly leaves gw-1: ")
    assert stories(before, {"flowed_s": 0.0}) == {}


def test_a_twin_that_cannot_run_takes_nothing_from_the_summary_and_says_why(before: Placed) -> None:
    too_long_s = 4e6
    assert compared(before, {}, too_long_s) == {}
    assert "at most" in stories(before, {"flowed_s": too_long_s})["failed"]


def test_queries_that_came_and_went_are_told_together_only_where_they_are_the_same() -> None:
    pairs = side_by_side([change(5.0, {"remove": "r"})], [change(6.0, {"remove": "s"})])
    assert [(pair["twin"] is None, pair["live"] is None) for pair in pairs] == [(False, True), (True, False)]


def test_what_only_the_ideal_model_foresees_is_set_beside_what_was_measured_too(before: Placed) -> None:
    balanced = replace(before, deployment=replace(before.deployment, control=Control(balance=Balance())))
    assert balanced.model_costs(False) is None
    found = compared(balanced, {"suspicious": {"p50": 10.0, "p95": 20.0}}, flowed_s=10.0)["suspicious"]
    assert found["twin"]["p50"] > 0
    assert found["ratio"]["twin"]["p50"] == pytest.approx(found["twin"]["p50"] / 10.0, abs=0.001)
