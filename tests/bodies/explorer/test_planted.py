"""Faults planted by hand in every protocol: each is seen in the world that is named for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty, looking
from tests.bodies.explorer.planted import PLANTED, SEEN_IN, Planted
from tests.bodies.explorer.planted_last import PLANTED_LAST, SEEN_IN_LAST
from tests.bodies.explorer.planted_later import PLANTED_LATER, SEEN_IN_LATER
from tests.bodies.explorer.planted_since import PLANTED_SINCE, SEEN_IN_SINCE

EVERY = (*PLANTED, *PLANTED_SINCE, *PLANTED_LATER, *PLANTED_LAST)
SEEN = SEEN_IN | SEEN_IN_SINCE | SEEN_IN_LATER | SEEN_IN_LAST
PROTOCOLS = {
    "exclusion", "scaling", "balancing", "control", "hosting", "move", "directory", "connection", "composing",
    "feedback", "ordered_move", "stream_rule", "reporting",
}  # fmt: skip


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def test_there_are_planted_faults_in_every_protocol_and_all_are_seen() -> None:
    assert {one.protocol for one in EVERY} == PROTOCOLS
    assert {*SEEN} == {one.what for one in EVERY}
    assert len(SEEN) == len(EVERY)


@pytest.mark.parametrize("fault", EVERY, ids=str)
def test_a_planted_fault_is_seen_in_its_world(fault: Planted) -> None:
    named = [world for world in looking.worlds(fault) if world.name == SEEN[fault.what]]
    assert len(named) == 1
    assert looking.found(fault, named)
