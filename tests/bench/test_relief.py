"""The examples in which one source triples: laid down soundly, and in the twin relief keeps what breaks without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks._bench import load
from benchmarks.relief import CASES, SIDES, broken_periods, laid_down, less, moves_of

from weft.bodies import twin
from weft.plan import place

SETTING = load("relief", changes={"promise_s": 20.0, "calm_s": 60.0, "hot_s": 180.0})


def in_the_twin(folder: Path, name: str, side: str, hot: bool = True) -> dict[str, Any]:
    deployment = laid_down(folder / side, name, SETTING, SIDES[side], hot)
    seconds = SETTING["calm_s"] + SETTING["hot_s"] if hot else SETTING["quiet_s"]
    result = twin.run(deployment, place(deployment), seconds, seed=1, observe_s=5.0)
    broken = [one for one in result.observed if one.queries[CASES[name].query].promise_kept is False]
    return {"broken_s": sum(one.period_s for one in broken), "changes": result.changes}


@pytest.mark.parametrize("name", list(CASES))
def test_a_source_that_triples_breaks_the_promise_and_one_move_at_each_site_keeps_it(name: str, tmp_path: Path) -> None:
    runs = {side: [in_the_twin(tmp_path, name, side)] for side in SIDES}
    assert runs["without"][0]["broken_s"] > 60.0
    assert (less(runs) or 0.0) >= 0.7
    assert moves_of(runs["with"][0]) == len(CASES[name].hot)
    assert runs["without"][0]["changes"] == []


@pytest.mark.parametrize("name", list(CASES))
def test_in_a_quiet_run_of_ten_minutes_nothing_moves(name: str, tmp_path: Path) -> None:
    assert in_the_twin(tmp_path, name, "with", hot=False) == {"broken_s": 0, "changes": []}


def test_a_period_in_which_nothing_came_is_as_the_next_in_which_something_did() -> None:
    seen = [
        (5.0, 5.0, True),
        (10.0, 5.0, None),
        (15.0, 5.0, False),
        (20.0, 5.0, None),
        (25.0, 6.0, True),
        (30.0, 5.0, None),
    ]
    assert broken_periods(seen) == [(10.0, 5.0), (15.0, 5.0)]


def test_where_nothing_breaks_there_is_nothing_to_be_less() -> None:
    kept: dict[str, Any] = {"broken_s": 0.0, "changes": []}
    assert less({"without": [kept], "with": [kept]}) is None
    assert less({"without": [{**kept, "broken_s": 80.0}], "with": [{**kept, "broken_s": 20.0}]}) == 0.75
