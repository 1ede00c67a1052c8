"""Faults made by machine in what excludes and what scales: the worlds alone find all but the harmless ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty, faulty_groups, looking

SEED = 5
COMES_BACK = "overwritten when the fork comes back, and not looked at before"
TWICE = "its members refuse such an input too"
ENDED = "one that has ended knows no neighbours any more"
GROWS = "stamps and numbers need only grow, by how much is all the same"
STORY = "only the story, or the words of a reason, differ"
NOT_FOUND: dict[str, str] = {
    "exclusion.member.late: drop condition `isinstance(input.message, AskFork)`":
        "a fork that comes with an old number was refused before",
    "exclusion.member.before: off by one `(stamp, self.competitors[peer]) < (row.stamp, self.group)`":
        "groups in conflict differ, so two requests are never equal",
    "exclusion.member.on_enter: off by one `1`": GROWS,
    "exclusion.member.on_give: drop condition `row.door == 'open'`": "what is away went through an open door",
    "exclusion.member.on_give: off by one `0`":
        "a request with stamp 1 lends nothing: whoever goes before it holds their fork, and has heard of nobody",
    "exclusion.member.open_door: drop condition `fork.held`": "only what is here is waited for here",
    "exclusion.member.give: keep `fork.wants`": COMES_BACK,
    "exclusion.member.give: keep `fork.patient`": COMES_BACK,
    "exclusion.member.give: off by one `0`": COMES_BACK,
    "exclusion.member.give: flip `False` #2": COMES_BACK,
    "exclusion.core.state: swap state `ASKING for IDLE`": TWICE,
    "exclusion.core.handle: drop statement `self._recent.append((self.state, input, effects))`": STORY,
    "exclusion.core.first: skip branch `wanted is None or self.state != wanted`": TWICE,
    "exclusion.core.first: drop condition `wanted is None`": TWICE,
    "exclusion.core.first: drop condition `self.state != wanted`": TWICE,
    "scaling.instance.misfit: negate `row.state != WAITING`": STORY,
    "scaling.instance.misfit: swap state `WAITING for ACTIVE` #2": STORY,
    "scaling.instance.on_grow: off by one `1` #3": GROWS,
    "scaling.instance.on_shrink: off by one `1`": GROWS,
    "scaling.instance.complete: keep `row.children`": "the next growth sets them before they are looked at",
    "scaling.instance.on_start: keep `row.gone`": "only one that waits looks at them",
    "scaling.instance.on_drained: keep `row.ups`": ENDED,
    "scaling.instance.on_drained: keep `row.downs`": ENDED,
    "scaling.instance.on_drained: keep `row.heard`": "of what an ended one hears twice, nobody awaits a second answer",
    "scaling.core.scales: drop condition `self.wish != _NOTHING`": "it is inside only for a wish",
    "scaling.core.handle: drop statement `self._recent.append((self.state, input, effects))`": STORY,
    "scaling.core.first: off by one `self.wish > 0`": "it is inside only for a wish",
    "scaling.core.first: drop condition `isinstance(input, Received)`": "whatever else it is told was taken before",
    "scaling.core.first: drop condition `isinstance(input, Received)` #2": "whatever else it is told was taken before",
}  # fmt: skip


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


def looked_for(protocol: str) -> dict[str, faulty_groups.Mutant]:
    every = {faulty_groups.full_name(*one): one[1] for one in faulty_groups.all_mutants()}
    return {name: one for name, one in every.items() if name not in NOT_FOUND and name.startswith(f"{protocol}.")}


def listed() -> dict[str, faulty_groups.Mutant]:
    every = {faulty_groups.full_name(*one): one[1] for one in faulty_groups.all_mutants()}
    return {name: one for name, one in every.items() if name in NOT_FOUND}


def test_of_twenty_faults_made_by_machine_the_worlds_alone_find_at_least_nineteen() -> None:
    mutants = looked_for("exclusion") | looked_for("scaling")
    chosen = random.Random(SEED).sample(sorted(mutants), 20)
    missed = [name for name in chosen if not looking.found(mutants[name])]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_called_harmless_is_still_made() -> None:
    assert set(listed()) == set(NOT_FOUND)


def test_no_world_finds_a_fault_that_is_called_harmless() -> None:
    mutants = {name: one for name, one in listed().items() if ".core." in name}
    chosen = random.Random(SEED).sample(sorted(mutants), 2)
    assert {name: seen for name in chosen if (seen := looking.found(mutants[name]))} == {}


@pytest.mark.long
def test_no_world_finds_any_fault_that_is_called_harmless() -> None:
    assert {name: seen for name, one in listed().items() if (seen := looking.found(one))} == {}


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["exclusion", "scaling"])
def test_of_all_faults_made_by_machine_the_worlds_alone_find_nineteen_of_twenty(protocol: str) -> None:
    mutants = looked_for(protocol)
    missed = [name for name, one in mutants.items() if not looking.found(one)]
    assert len(missed) * 20 <= len(mutants), missed
