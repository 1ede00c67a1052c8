"""Instances that grow and shrink: the handshake, the decision, and messages that cannot be meant."""

from __future__ import annotations

from random import Random

import pytest

from weft.protocol import Effect, Input, Received, Send, decode, encode
from weft.protocol.scaling import (
    Activated,
    Bye,
    Create,
    Drain,
    Drained,
    Ended,
    Grow,
    Heard,
    Instance,
    Leaving,
    NewInstances,
    Place,
    ScaleRule,
    Shrink,
    StartInstance,
    copies,
    ds2_instances,
    leader_copies,
)

MIDDLE = Place("o", ("up",), ("down",))
RULE = ScaleRule()


def told(instance: Instance, *inputs: Input) -> list[Effect]:
    """The effects of the last of some inputs."""
    effects: list[Effect] = []
    for input in inputs:
        effects = instance.handle(input)
    return effects


def middle(keeper: bool = False) -> Instance:
    return Instance("x", MIDDLE, {"u": "up"}, {"d": "down"}, keeper)


def heard(sender: str, number: int = 1) -> Received:
    return Received(sender, Heard(number))


def test_new_instances_start_when_all_neighbours_have_heard_of_them() -> None:
    x = middle()
    new = NewInstances(1, "o", ("x.1", "x.2"))
    assert told(x, Grow(2)) == [Create("x.1"), Create("x.2"), Send("d", new), Send("u", new)]
    assert told(x, heard("d")) == []
    start = StartInstance((("u", "up"),), (("d", "down"),))
    assert told(x, heard("u")) == [Send("x.1", start), Send("x.2", start)]
    assert x.state == "active"


def test_an_instance_drains_when_everyone_upstream_has_heard_and_says_bye_downstream() -> None:
    x = middle()
    assert told(x, Shrink()) == [Send("u", Leaving(1, "o"))]
    assert told(x, heard("u")) == [Drain()]
    assert told(x, Drained()) == [Send("d", Bye("o")), Ended()]
    assert told(x, Received("u", NewInstances(1, "up", ("u.1",)))) == [Send("u", Heard(1))], "it still answers"


def test_a_keeper_never_ends_and_nobody_does_two_things_at_once() -> None:
    assert told(middle(keeper=True), Shrink()) == []
    x = middle()
    assert told(x, Grow(1), Shrink()) == []
    assert x.state == "growing"


def test_one_that_waits_joins_what_it_heard_with_what_it_is_started_with() -> None:
    child = Instance("x.1", MIDDLE)
    told(child, Received("u", NewInstances(1, "up", ("u.1",))), Received("d", Leaving(1, "down")))
    told(child, Received("v", Bye("up")))
    start = StartInstance((("u", "up"), ("v", "up")), (("d", "down"), ("e", "down")))
    assert told(child, Received("x", start)) == [Activated()]
    assert (child.ups, child.downs) == ({"u": "up", "u.1": "up"}, {"e": "down"})


def test_scaling_messages_travel_as_json() -> None:
    for message in (NewInstances(1, "o", ("x.1",)), StartInstance((("u", "up"),), ()), Leaving(1, "o"), Heard(1)):
        assert decode(encode(message)) == message


@pytest.mark.parametrize(
    ("load", "chance", "made"),
    [
        (350, 0.0, 0), (399, 0.0, 0), (401, 0.14, 1), (401, 0.15, 0), (700, 0.999, 1), (1050, 0.999, 2),
        (1085, 0.0, 3), (301, 0.0, 0), (280, 0.19, -1), (280, 0.21, 0), (0, 0.99, -1),
    ],
)  # fmt: skip
def test_a_share_of_a_copy_is_made_by_chance(load: float, chance: float, made: int) -> None:
    assert copies(RULE, load, 500, chance) == made


def test_a_keeper_never_decides_to_end_and_safe_mode_never_makes_too_few() -> None:
    assert copies(RULE, 0, 500, 0.0, keeper=True) == 0
    safe = ScaleRule(target=0.95, high=0.97, safe=True)
    assert [copies(safe, load, 500, 0.999) for load in (501, 999, 1001)] == [1, 1, 2]
    assert [copies(ScaleRule(target=0.95, high=0.97), load, 500, 0.999) for load in (501, 999, 1001)] == [0, 1, 1]


def test_unequal_instances_together_make_what_the_load_needs() -> None:
    rng = Random(1)
    capacities = [250.0, 500.0, 1000.0] * 200
    load = 0.9 * sum(capacities)
    made = sum(copies(RULE, load * own / sum(capacities), own, rng.random(), new_capacity=500.0) for own in capacities)
    wanted = load / 0.7 - sum(capacities)
    assert made * 500 == pytest.approx(wanted, rel=0.1)
    assert copies(RULE, 350, 0.0, 0.5, new_capacity=500.0) == 1, "one that lost its capacity makes room elsewhere"


def test_a_leader_acts_outside_the_bounds_and_ds2_for_the_whole_graph() -> None:
    assert [leader_copies(RULE, load, 500, 10) for load in (3500, 4500, 2000, 100)] == [0, 3, -4, -9]
    graph = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}
    rates = dict.fromkeys(graph, 100.0)
    assert ds2_instances(graph, {"a": 250.0}, rates, {"b": 0.5}) == {"a": 3, "b": 3, "c": 3, "d": 4}
