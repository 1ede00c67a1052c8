"""A tree whose source triples: laid down soundly, and in the twin balancing takes most of the overload away."""

from __future__ import annotations

from pathlib import Path

from benchmarks._bench import load
from benchmarks.balance import SIDES, laid_down, over

from weft.bodies import twin
from weft.model import Balance
from weft.plan import place

SETTING = load("balance")


def test_in_the_twin_two_of_four_operators_leave_and_the_gateway_is_overloaded_for_a_look_or_two(
    tmp_path: Path,
) -> None:
    found, moved = {}, {}
    for side, control in SIDES.items():
        deployment = laid_down(tmp_path / side, SETTING, control)
        seconds = SETTING["calm_s"] + SETTING["hot_s"]
        result = twin.run(deployment, place(deployment), seconds, seed=1, observe_s=5.0)
        used = [(one.period_s, {name: site.utilisation for name, site in one.sites.items()}) for one in result.observed]
        found[side], moved[side] = over(used, Balance().high), [one["wish"]["move"] for one in result.changes]
    assert found["without"] > 80.0
    assert found["with"] <= 0.2 * found["without"]
    assert moved["without"] == []
    assert len(moved["with"]) == 2
    assert all(set(wish.values()) == {"district"} for wish in moved["with"])


def test_every_site_counts_by_itself_and_one_of_which_nothing_is_known_does_not() -> None:
    assert over([(5.0, {"a": 0.7, "b": 0.9}), (4.0, {"a": 0.6, "b": None})], 0.6) == 10.0
