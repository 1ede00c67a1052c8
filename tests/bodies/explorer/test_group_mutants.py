"""Faults made by machine in what excludes and what scales: nearly all are found by hand or by the worlds."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty, faulty_groups

SEED = 5
COMES_BACK = "overwritten when the fork comes back, and not looked at before"
TWICE = "its members refuse such an input too"
ENDED = "one that has ended knows no neighbours any more"
NOT_FOUND: dict[str, str] = {
    "exclusion.member.late: drop condition `isinstance(input.message, AskFork)`":
        "a fork that comes with an old number was refused before",
    "exclusion.member.before: off by one `(stamp, self.competitors[peer]) < (row.stamp, self.group)`":
        "groups in conflict differ, so two requests are never equal",
    "exclusion.member.on_give: drop condition `row.door == 'open'`": "what is away went through an open door",
    "exclusion.member.on_give: drop condition `stamp > 0`": "without a stamp nobody waits, patient or not",
    "exclusion.member.on_give: off by one `stamp > 0`": "without a stamp nobody waits, patient or not",
    "exclusion.member.open_door: drop condition `fork.held`": "only what is here is waited for here",
    "exclusion.member.give: keep `fork.wants`": COMES_BACK,
    "exclusion.member.give: keep `fork.patient`": COMES_BACK,
    "exclusion.member.give: off by one `0`": COMES_BACK,
    "exclusion.member.give: flip `False` #2": COMES_BACK,
    "exclusion.core.first: skip branch `wanted is None or self.state != wanted`": TWICE,
    "exclusion.core.first: drop condition `wanted is None`": TWICE,
    "exclusion.core.first: drop condition `self.state != wanted`": TWICE,
    "scaling.instance.complete: keep `row.children`": "the next growth sets them before they are looked at",
    "scaling.instance.on_start: keep `row.gone`": "only one that waits looks at them",
    "scaling.instance.on_drained: keep `row.ups`": ENDED,
    "scaling.instance.on_drained: keep `row.downs`": ENDED,
    "scaling.instance.on_drained: keep `row.heard`": "of what an ended one hears twice, nobody awaits a second answer",
    "scaling.core.scales: drop condition `self.wish != _NOTHING`": "it is inside only for a wish",
    "scaling.core.first: off by one `self.wish > 0`": "it is inside only for a wish",
    "scaling.core.first: drop condition `isinstance(input, Received)`": "whatever else it is told was taken before",
    "scaling.core.first: drop condition `isinstance(input, Received)` #2": "whatever else it is told was taken before",
}  # fmt: skip


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def looked_for() -> list[tuple[faulty_groups.Subject, faulty_groups.Mutant]]:
    return [one for one in faulty_groups.all_mutants() if faulty_groups.full_name(*one) not in NOT_FOUND]


def test_of_twenty_faults_made_by_machine_at_least_nineteen_are_found() -> None:
    chosen = random.Random(SEED).sample(looked_for(), 20)
    missed = [faulty_groups.full_name(*one) for one in chosen if not faulty_groups.seen(*one)]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_not_looked_for_is_still_made() -> None:
    assert set(NOT_FOUND) <= {faulty_groups.full_name(*one) for one in faulty_groups.all_mutants()}


@pytest.mark.long
def test_of_all_faults_made_by_machine_nineteen_of_twenty_are_found() -> None:
    mutants = looked_for()
    missed = [faulty_groups.full_name(*one) for one in mutants if not faulty_groups.seen(*one)]
    assert len(missed) * 20 <= len(mutants), missed
