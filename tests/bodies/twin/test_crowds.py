"""Exclusion and scaling in the twin's virtual time, with many at once, slow messages and messages that come twice."""

from __future__ import annotations

import pytest

from tests.bodies.twin.crowd import Crowd
from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import exclusion, scaling

CROWDS = pytest.mark.parametrize("crowds", [exclusion.crowds(), scaling.crowds()], ids=["exclusion", "scaling"])


@CROWDS
def test_many_at_once_break_nothing(crowds: tuple[World, ...]) -> None:
    doubled = 0
    for seed, world in enumerate(crowds[:2]):
        crowd = Crowd(world, seed, twice=0.05)
        assert crowd.run() > 100
        doubled += crowd.doubled
    assert doubled, "no message came twice"


def test_a_crowd_of_the_published_form_is_seen_to_break() -> None:
    broken = 0
    for seed, world in enumerate(scaling.worlds(as_published=True)):
        try:
            Crowd(world, seed).run()
        except AssertionError:
            broken += 1
    assert broken, "the twin's eyes see nothing"


@pytest.mark.long
@CROWDS
def test_a_million_steps_with_faults_break_nothing(crowds: tuple[World, ...]) -> None:
    taken = seed = 0
    while taken < 1_000_000:
        taken += Crowd(crowds[seed % len(crowds)], seed).run()
        seed += 1
