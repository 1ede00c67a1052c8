"""The worlds of the controller: no order breaks its rules, and nearly every fault made in it is found."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest

from tests.bodies.explorer import control_by_hand, faulty, looking
from tests.bodies.explorer.mutants import Mutant, mutants
from weft.bodies.explorer import NAMES, World, explore, run
from weft.bodies.explorer.worlds import control
from weft.bodies.explorer.worlds.control_ground import ACTED, HASTE, PASSED, TOGETHER, UNDONE
from weft.protocol import Effect
from weft.protocol.control import PERSON, Advise, Controller, controller
from weft.protocol.control.controller import Wish

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


class PassesTheFirst(Controller):
    """What sites agreed upon does not wait for a rule's wish that comes first and is being weighed."""

    __slots__ = ()

    def waits(self, row: Wish) -> bool:
        return bool(self.beside(row, "asked")) or any(one.number < row.number for one in self.beside(row, "waiting"))


class TwoAtOnce(Controller):
    """Persons do not wait for the change under way."""

    __slots__ = ()

    def waits(self, row: Wish) -> bool:
        return row.who != PERSON and super().waits(row)


class OnlyAdvises(Controller):
    """Where rules advise, what persons and sites want is only advised, too."""

    __slots__ = ()

    def ask(self, key: str, row: Wish) -> list[Effect]:
        return super().ask(key, row) if not self.advises else [Advise(row.number, row.who, row.shifts, row.reason)]


class RulesDoNotRest(Controller):
    """Rules are weighed as if they were persons: by what is under way alone."""

    __slots__ = ()

    def why_not(self, row: Wish, taken: Iterable[Wish]) -> str:
        return "it is being changed" if self.waits(row) or any({*row.touches} & {*one.touches} for one in taken) else ""


class RulesUndo(Controller):
    """Rules take back what was changed a while ago."""

    __slots__ = ()

    def why_not(self, row: Wish, taken: Iterable[Wish]) -> str:
        why = super().why_not(row, taken)
        return "" if why.startswith("it would undo") else why


@pytest.mark.parametrize(
    ("made", "world", "claim"),
    [
        (PassesTheFirst, "sites agree while rules look", PASSED),
        (TwoAtOnce, "two persons at one site", TOGETHER),
        (OnlyAdvises, "sites agree where rules advise", ACTED),
        (RulesDoNotRest, "a person and rules", HASTE),
        (RulesUndo, "early timers and looks", UNDONE),
    ],
)
def test_a_fault_planted_in_who_waits_and_who_rests_is_found(made: type[Controller], world: str, claim: str) -> None:
    [given] = [one for one in control.worlds(controller=made) if one.name == world]
    assert claim in {violation.claim for violation in run(given).violations}


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
