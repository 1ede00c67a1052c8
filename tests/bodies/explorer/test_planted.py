"""Faults planted by hand in every protocol: each is seen in the world that is named for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty, looking
from tests.bodies.explorer.planted import PLANTED, SEEN_IN, Planted


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def test_there_are_planted_faults_in_every_protocol_and_nearly_all_are_seen() -> None:
    assert {one.protocol for one in PLANTED} == {"exclusion", "scaling", "balancing", "control", "hosting", "move"}
    assert {*SEEN_IN} <= {one.what for one in PLANTED}
    assert len(SEEN_IN) * 20 >= len(PLANTED) * 18


@pytest.mark.parametrize("fault", [one for one in PLANTED if one.what in SEEN_IN], ids=str)
def test_a_planted_fault_is_seen_in_its_world(fault: Planted) -> None:
    named = [world for world in looking.worlds(fault) if world.name == SEEN_IN[fault.what]]
    assert len(named) == 1
    assert looking.found(fault, named)


@pytest.mark.long
@pytest.mark.parametrize("fault", [one for one in PLANTED if one.what not in SEEN_IN], ids=str)
def test_no_world_sees_the_others_yet(fault: Planted) -> None:
    assert looking.found(fault) is None, "name the world that sees it"
