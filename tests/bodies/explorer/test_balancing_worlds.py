"""The worlds of balancing: as published it breaks, corrected it does not; nearly all faults made by machine found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.bodies.explorer import by_hand, faulty, faulty_balancing, looking
from tests.bodies.explorer.mutants import Mutant
from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import balancing
from weft.protocol.balancing import Balancer

SEED = 5
UNUSED = "a number is written down and not used"
NOT_FOUND = {
    "loads.each: flip `True`": "all loads of a deployment name the same resources; others are refused",
    "selection._closure: drop condition `one not in found`": "the same set, found by more steps",
    "balancer.offer: skip branch `not any(offers.values())`": UNUSED,
    "balancer.demand: skip branch `not free`": UNUSED,
}


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def test_no_order_breaks_small_trees() -> None:
    results = [run(world) for world in balancing.brisk()]
    assert [result.violations for result in results if result.violations] == []
    assert sum(result.states for result in results) > 5_000


@pytest.mark.parametrize("world", balancing.worlds(as_published=True), ids=lambda world: world.name)
def test_the_published_negotiation_breaks(world: World) -> None:
    (violation,) = run(world).violations
    expected = next(iter(world.invariants), "every wait ends")
    assert violation.claim.startswith(expected)


@pytest.mark.parametrize("check", by_hand.ALL, ids=lambda check: check.__name__)
def test_what_does_not_fit_is_refused_and_changes_nothing(check: Callable[[type[Balancer]], None]) -> None:
    check(Balancer)


def test_balancing_is_known_by_name() -> None:
    assert "balancing" in NAMES


@pytest.mark.long
def test_no_order_breaks_balancing() -> None:
    answer = explore("balancing")
    assert answer["violations"] == []
    assert answer["states"] > 100_000
    assert len(answer["worlds"]) >= 6


def looked_for() -> list[Mutant]:
    return [mutant for mutant in faulty_balancing.all_mutants() if mutant.name not in NOT_FOUND]


def test_of_twenty_faults_made_by_machine_the_worlds_alone_find_nineteen() -> None:
    chosen = random.Random(SEED).sample(looked_for(), 20)
    missed = [mutant.name for mutant in chosen if not looking.found(mutant)]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_called_harmless_is_still_made() -> None:
    assert set(NOT_FOUND) <= {mutant.name for mutant in faulty_balancing.all_mutants()}


@pytest.mark.long
def test_no_world_finds_a_fault_that_is_called_harmless() -> None:
    listed = [mutant for mutant in faulty_balancing.all_mutants() if mutant.name in NOT_FOUND]
    assert {one.name: seen for one in listed if (seen := looking.found(one))} == {}


@pytest.mark.long
def test_of_all_faults_made_by_machine_the_worlds_alone_find_nineteen_of_twenty() -> None:
    mutants = looked_for()
    missed = [mutant.name for mutant in mutants if not looking.found(mutant)]
    assert len(missed) * 20 <= len(mutants), missed
