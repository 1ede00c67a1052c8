"""Faults planted by hand in every protocol: each is seen in the world that is named for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty, looking
from tests.bodies.explorer.planted import PLANTED, SEEN_IN, Planted


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def test_there_are_planted_faults_in_every_protocol_and_all_are_seen() -> None:
    assert {one.protocol for one in PLANTED} == {"exclusion", "scaling", "balancing", "control", "hosting", "move"}
    assert {*SEEN_IN} == {one.what for one in PLANTED}


@pytest.mark.parametrize("fault", PLANTED, ids=str)
def test_a_planted_fault_is_seen_in_its_world(fault: Planted) -> None:
    named = [world for world in looking.worlds(fault) if world.name == SEEN_IN[fault.what]]
    assert len(named) == 1
    assert looking.found(fault, named)
