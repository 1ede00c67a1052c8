"""The worlds of exclusion and scaling: nothing is found in what is in use, what was published breaks as it should."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.bodies.explorer import groups_by_hand
from weft.bodies.explorer import NAMES, World, explore, read_scenario, replayed, run, scenario_text, wander
from weft.bodies.explorer.explore import ENDS
from weft.bodies.explorer.worlds import exclusion, scaling
from weft.cli.app import app
from weft.protocol.exclusion import Core, Member
from weft.protocol.published.two_groups import TwoGroups, TwoGroupsAsPublished
from weft.protocol.rivals.joung import Ra2
from weft.protocol.scaling import CoreInstance, Instance


@pytest.mark.parametrize("world", exclusion.brisk(), ids=lambda world: world.name)
def test_no_order_brings_groups_in_conflict_inside_together_or_makes_anyone_wait_for_ever(world: World) -> None:
    assert run(world).violations == ()


def test_two_groups_of_two_with_two_requests_each_hold_within_their_bound_of_messages() -> None:
    world = exclusion.world((2, 2), 2, alike=True)
    result = run(world)
    assert result.violations == ()
    assert result.sent_max == 42
    assert world.sent_max == 48


def test_what_cannot_be_meant_is_refused_and_changes_nothing() -> None:
    groups_by_hand.member_by_hand(Member)
    groups_by_hand.instance_by_hand(Instance)
    groups_by_hand.core_by_hand(Core)
    groups_by_hand.core_instance_by_hand(CoreInstance)


@pytest.mark.parametrize(
    ("sizes", "requests", "states", "stories"),
    [
        ((1, 1), 1, 35, {}),
        ((1, 1), 2, 161, {}),
        ((1, 2), 1, 499, {}),
        ((2, 1), 1, 737, {ENDS: 16}),
        ((2, 1), 2, 19_186, {ENDS: 18, exclusion.UNASKED: 21, exclusion.TOGETHER: 25}),
        ((1, 2), 2, 13_996, {ENDS: 26, exclusion.UNASKED: 26, exclusion.TOGETHER: 32}),
    ],
)
def test_2_fgme_as_published_breaks_in_the_known_number_of_steps(
    sizes: tuple[int, int], requests: int, states: int, stories: dict[str, int]
) -> None:
    result = run(exclusion.world(sizes, requests, member=TwoGroupsAsPublished, collect=True, sent_each=None))
    assert result.states == states
    assert {one.claim: len(one.story) for one in result.violations} == stories


@pytest.mark.parametrize(("sizes", "states"), [((1, 2), 511), ((2, 1), 761), ((2, 2), 220_649)])
def test_2_fgme_corrected_holds(sizes: tuple[int, int], states: int) -> None:
    result = run(exclusion.world(sizes, 1, member=TwoGroups, sent_each=None))
    assert (result.states, result.violations) == (states, ())


def test_ra2_holds_beside_a_captured_member() -> None:
    assert run(exclusion.world((2, 1), 1, member=Ra2, all_others=True, sent_each=None)).violations == ()


@pytest.mark.parametrize("world", exclusion.in_turn(), ids=lambda world: world.name)
def test_taking_the_exclusion_upstream_then_downstream_never_ends_in_a_circle(world: World) -> None:
    assert run(world).violations == ()


@pytest.mark.parametrize("world", scaling.cores(), ids=lambda world: world.name)
def test_cores_of_neighbouring_operators_never_scale_at_the_same_time(world: World) -> None:
    assert run(world).violations == ()


@pytest.mark.parametrize("world", scaling.brisk(), ids=lambda world: world.name)
def test_no_order_of_growing_and_shrinking_loses_a_record_or_a_neighbour(world: World) -> None:
    assert run(world).violations == ()


def test_the_published_handshake_breaks_in_every_known_way() -> None:
    found = [violation for world in scaling.worlds(as_published=True) for violation in run(world).violations]
    shortest: dict[str, int] = {}
    for violation in found:
        claim = violation.claim.split(":")[0]
        shortest[claim] = min(shortest.get(claim, 99), len(violation.story))
    assert shortest == {
        scaling.EARLY: 2,
        scaling.LOST: 5,
        scaling.KNOWN: 7,
        ENDS.split(":")[0]: 7,
    }


def test_protocols_are_known_by_name() -> None:
    assert {"exclusion", "scaling"} <= set(NAMES)


def test_a_counterexample_is_replayed_from_its_file(tmp_path: Path) -> None:
    (violation,) = run(exclusion.published()[3]).violations
    text = scenario_text("exclusion", True, violation)
    again = replayed(read_scenario(text))
    assert again.story == violation.story
    assert again.broken == (ENDS,)
    path = tmp_path / "01.txt"
    path.write_text(text)
    told = CliRunner().invoke(app, ["explore", "exclusion", "--replay", str(path)])
    assert told.exit_code == 1
    assert told.stdout.endswith(f"broken: {ENDS}\n")
    path.write_text(text.replace("1 a1 Enter()", "1 a9 Enter()"))
    told = CliRunner().invoke(app, ["explore", "exclusion", "--replay", str(path)])
    assert told.exit_code == 2
    assert "line 1 of the story cannot happen here" in told.stderr


@pytest.mark.long
def test_no_order_breaks_exclusion_or_scaling_in_larger_worlds() -> None:
    for name, states in (("exclusion", 10_000_000), ("scaling", 10_000_000)):
        answer = explore(name, long=True)
        assert answer["violations"] == []
        assert answer["states"] > states


@pytest.mark.long
@pytest.mark.parametrize("crowds", [exclusion.crowds(), scaling.crowds()], ids=["exclusion", "scaling"])
def test_a_million_random_steps_with_doubled_messages_break_nothing(crowds: tuple[World, ...]) -> None:
    taken = 0
    for seed, world in enumerate(crowds):
        found = wander(world, 1_000_000 // len(crowds) + 1, seed)
        assert found.violation is None, found.violation
        taken += found.steps
    assert taken >= 1_000_000
