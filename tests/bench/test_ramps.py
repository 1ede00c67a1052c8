"""Rises that are drawn for a live run: every one would be overdue, and in the twin each is relieved by one move."""

from __future__ import annotations

from pathlib import Path

from benchmarks._bench import load
from benchmarks.ramps import Ramp, drawn, laid_down

from weft.bodies import twin
from weft.plan import place

SETTING = load("ramps")


def test_without_relief_every_rise_that_is_drawn_would_have_results_overdue_within_the_run() -> None:
    ramps = [drawn(seed, SETTING) for seed in range(SETTING["first"], SETTING["first"] + SETTING["ramps"])]
    assert all((one.overdue_s(SETTING["seconds"]) or SETTING["seconds"]) < SETTING["seconds"] for one in ramps)
    assert Ramp(10.0, 0.5, 0.9, 5.0, 5.0, 10.0).overdue_s(1000.0) is None, "a site that can do it"


def test_in_the_twin_five_rises_at_once_are_each_relieved_by_one_move_to_the_site_beside(tmp_path: Path) -> None:
    ramps = {seed: drawn(seed, SETTING) for seed in range(5)}
    deployment = laid_down(tmp_path / "five", ramps, SETTING)
    result = twin.run(deployment, place(deployment), SETTING["seconds"], seed=1)
    done = [one["wish"]["move"] for one in result.changes if one["state"] == "done"]
    assert sorted(map(str, done)) == [str({f"q{seed}.decoded": f"spare-{seed}"}) for seed in ramps]
    assert all(one["promise_kept"] for one in result.queries.values())
