"""Faults made by machine in delays that are fed back and in the counting rule: the worlds alone find all that harm."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.bodies.explorer import faulty, looking
from tests.bodies.explorer.mutants import Mutant, mutants
from weft.protocol import stream_rule
from weft.protocol.feedback import feedback

SEED = 5
MODULES: dict[str, ModuleType] = {"feedback": feedback, "counting": stream_rule}
SWAPS = {"feedback": {"APART": "PART", "PART": "APART"}}
NOT_FOUND = {
    "feedback.on_told: off by one `(word.life, word.number) > (held.word.life, held.word.number)`":
        "the same word, taken for news, is as new as one that was said again",
    "feedback.on_beat: off by one `0`": "one's own word is said again at every beat, and grows no older than one",
}  # fmt: skip


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def made(family: str) -> dict[str, Mutant]:
    return {one.name: one for one in mutants(MODULES[family], swaps=SWAPS.get(family, {}))}


def looked_for(family: str) -> dict[str, Mutant]:
    return {name: one for name, one in made(family).items() if name not in NOT_FOUND}


def test_of_ten_faults_made_by_machine_the_worlds_alone_find_all() -> None:
    every = {name: one for family in MODULES for name, one in looked_for(family).items()}
    chosen = random.Random(SEED).sample(sorted(every), 10)
    assert [name for name in chosen if not looking.found(every[name])] == []


def test_every_fault_that_is_called_harmless_is_still_made() -> None:
    assert set(NOT_FOUND) <= {name for family in MODULES for name in made(family)}


@pytest.mark.long
def test_no_world_finds_a_fault_that_is_called_harmless() -> None:
    listed = {name: one for family in MODULES for name, one in made(family).items() if name in NOT_FOUND}
    assert {name: seen for name, one in listed.items() if (seen := looking.found(one))} == {}


@pytest.mark.long
@pytest.mark.parametrize("family", MODULES)
def test_of_all_faults_made_by_machine_the_worlds_alone_find_nineteen_of_twenty(family: str) -> None:
    every = looked_for(family)
    missed = [name for name, one in every.items() if not looking.found(one)]
    assert len(missed) * 20 <= len(every), missed
