"""The setting of N-lab1: paired runs of one drawing differ by nothing but balancing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.lab.balancing import Run, Setting, draw, pair, parent

SHORT = replace(Setting(), half_s=120, operators=120, capacity=90)


def test_a_drawing_starts_without_overload_and_streams_flow_upwards() -> None:
    setting = Setting()
    work = draw(setting, seed=1)
    assert len(work.homes) == setting.operators
    first = Run(setting, work, balanced=False)
    first._note()
    assert max(first.log.utilisations[0]) <= setting.high / 1000
    for operator, (read,) in ((one, inputs) for one, inputs in work.inputs.items() if inputs):
        at = work.homes.get(read, int(read[1:]) if read.startswith("s") else 0)
        while at != work.homes[operator]:
            assert at > 0, operator
            at = parent(at)


def test_what_grew_shrinks_by_no_more_than_that() -> None:
    grown: dict[str, int] = {}
    for second, operator, by in draw(Setting(), seed=2).changes:
        grown[operator] = grown.get(operator, 0) + by
        assert grown[operator] >= 0
        assert by == 0 or (by > 0) == (second < 482)
    assert sum(grown.values()) > 0


def test_balancing_moves_load_and_loses_none() -> None:
    without, with_ = pair(SHORT, seed=3)
    assert without.means() == pytest.approx(with_.means())
    assert (without.moves, without.messages) == (0, 0)
    assert with_.moves > 10
    high = SHORT.high / 1000
    assert with_.overload(high) < 0.8 * without.overload(high)
