"""Positions are kept and compared by those who do not know what they count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.spark.channels.gate import Gate, Gatekeeper
from weft.spark.channels.position import BEGINNING, Position, as_position, earlier, later, reaches

WHOLE = st.integers(0, 9)
BY_PARTITION = st.one_of(st.just(0), st.dictionaries(st.sampled_from("012"), st.integers(0, 9)))
PAIRS = st.one_of(st.tuples(WHOLE, WHOLE), st.tuples(BY_PARTITION, BY_PARTITION))


@given(PAIRS)
def test_the_later_has_passed_what_either_has_and_the_earlier_what_both_have(pair: tuple[Position, Position]) -> None:
    one, other = pair
    both, shared = later(one, other), earlier(one, other)
    for position in pair:
        assert reaches(both, position)
        assert reaches(position, shared)
        assert reaches(position, BEGINNING)
        assert as_position(json.loads(json.dumps(position))) == position
    assert reaches(shared, both) == (reaches(one, other) and reaches(other, one))


def test_a_number_is_not_compared_with_numbers_by_partition() -> None:
    with pytest.raises(TypeError, match="compared with one by partition"):
        later(3, {"0": 3})


def test_a_gate_opens_at_positions_of_any_kind(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate.json", waits=True)
    gate.open({"a": 5, "b": {"0": 2, "1": 7}})
    assert gate.positions() == {"a": 5, "b": {"0": 2, "1": 7}}
    keeper = Gatekeeper(gate.options("b"))
    assert keeper.nothing_beyond({"0": 2, "1": 6})
    assert not keeper.nothing_beyond({"0": 3, "1": 6})
    assert Gatekeeper(gate.options("c")).first() == BEGINNING
