"""The worlds of the controller: no order breaks its rules, and nearly every fault made in it is found."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.bodies.explorer import control_by_hand, faulty, looking
from tests.bodies.explorer.mutants import Mutant, mutants
from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import control
from weft.protocol.control import Controller, controller

SEED = 3
SWAPS = {
    "GATHERED": "WAITING", "WAITING": "GATHERED", "ASKED": "RESTING", "RESTING": "KEPT", "KEPT": "RESTING",
    "OVER": "KEPT", "LOOKING": "NEW", "PERSON": "FAILOVER",
}  # fmt: skip
NOT_FOUND: dict[str, str] = {
    "controller.why_not: drop condition `one.state == KEPT`": "what is not over, or rests, touches what it moves",
    "controller.on_wait_timer: off by one `1000`": "only the words of a reason differ",
}


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


@pytest.mark.parametrize("world", control.worlds(), ids=lambda world: world.name)
def test_no_order_of_wishes_measurements_and_changes_breaks_a_rule(world: World) -> None:
    assert run(world).violations == ()


def test_what_a_controller_says_by_hand() -> None:
    control_by_hand.all_rules(Controller)


def all_mutants() -> list[Mutant]:
    return mutants(controller, swaps=SWAPS)


def looked_for() -> list[Mutant]:
    return [one for one in all_mutants() if one.name not in NOT_FOUND]


def test_of_twenty_faults_made_by_machine_the_worlds_alone_find_at_least_nineteen() -> None:
    chosen = random.Random(SEED).sample(looked_for(), 20)
    missed = [one.name for one in chosen if not looking.found(one)]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_called_harmless_is_still_made_and_no_world_finds_it() -> None:
    listed = [one for one in all_mutants() if one.name in NOT_FOUND]
    assert len(listed) == len(NOT_FOUND)
    assert {one.name: seen for one in listed if (seen := looking.found(one))} == {}


def test_the_controller_is_known_by_name() -> None:
    assert "control" in NAMES


@pytest.mark.long
def test_of_all_faults_made_by_machine_the_worlds_alone_find_nineteen_of_twenty() -> None:
    chosen = looked_for()
    missed = [one.name for one in chosen if not looking.found(one)]
    assert len(missed) * 20 <= len(chosen), missed


@pytest.mark.long
def test_no_order_breaks_the_controller_in_larger_worlds() -> None:
    answer = explore("control", long=True)
    assert answer["violations"] == []
    assert answer["states"] > 100_000
