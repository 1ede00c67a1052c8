"""Faults made by machine in what excludes and what scales: nearly all are found by the worlds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import faulty
import faulty_groups
import pytest

SEED = 5
NOT_FOUND: dict[str, str] = {}


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def test_of_thirty_faults_made_by_machine_at_least_twenty_nine_are_found() -> None:
    mutants = [mutant for mutant in faulty_groups.all_mutants() if mutant.name not in NOT_FOUND]
    chosen = random.Random(SEED).sample(mutants, 30)
    missed = [mutant.name for mutant in chosen if not faulty_groups.seen(mutant)]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_not_looked_for_is_still_made() -> None:
    assert set(NOT_FOUND) <= {mutant.name for mutant in faulty_groups.all_mutants()}


@pytest.mark.long
def test_of_all_faults_made_by_machine_nineteen_of_twenty_are_found() -> None:
    mutants = [mutant for mutant in faulty_groups.all_mutants() if mutant.name not in NOT_FOUND]
    missed = [mutant.name for mutant in mutants if not faulty_groups.seen(mutant)]
    assert len(missed) * 20 <= len(mutants), missed
