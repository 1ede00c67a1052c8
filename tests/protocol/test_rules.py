"""Which rules are on, how often each looks, and whether one of them may change something."""

from __future__ import annotations

from typing import get_args

import pytest

from weft.model import Advise, Control, Deployment, Relief
from weft.model.control import Foreseen
from weft.model.wishes import By
from weft.plan.changing.next_plan import ASKERS
from weft.plan.observing.forecast import AUTO, LEADER, METHODS
from weft.protocol.control.rules import RULES, acts, due_rules, looks_every_s, periods_s
from weft.protocol.control.words import PRECEDENCE, RANKS


@pytest.mark.parametrize(
    ("control", "periods", "may_act"),
    [
        (Control(), {}, False),
        (Control(advise=Advise(period_s=7.0)), {"place": 7.0}, False),
        (Control(relief=Relief()), {"relief": 5.0}, True),
        (Control(relief=Relief(), advise=Advise()), {"relief": 5.0, "place": 30.0}, False),
    ],
)
def test_a_part_turns_its_rule_on_and_advice_alone_changes_nothing(
    control: Control, periods: dict[str, float], may_act: bool
) -> None:
    deployment = Deployment((), (), (), control=control)
    assert periods_s(deployment) == periods
    assert looks_every_s(deployment) == min(periods.values(), default=None)
    assert acts(deployment) is may_act


def test_the_most_frequent_rule_looks_each_time_and_others_when_their_period_is_over() -> None:
    deployment = Deployment((), (), (), control=Control(relief=Relief(period_s=5.0), advise=Advise(period_s=30.0)))
    assert due_rules(deployment, {}, 5.0) == ["relief", "place"]
    assert due_rules(deployment, {"relief": 5.0, "place": 5.0}, 10.0) == ["relief"]
    assert due_rules(deployment, {"relief": 30.0, "place": 5.0}, 34.0) == ["relief", "place"]


def test_whoever_may_ask_is_called_something_and_counts_as_somebody() -> None:
    assert set(ASKERS) == set(get_args(By))
    assert {RANKS.get(who, who) for who in get_args(By)} == set(PRECEDENCE)
    assert set(RULES) <= set(get_args(By))


def test_every_way_to_foresee_has_its_word_and_every_word_its_way() -> None:
    assert {*METHODS, LEADER, AUTO} == set(get_args(Foreseen))
