"""The shape of machines: legal steps only, canonical snapshots, diagrams from the table."""

from __future__ import annotations

import pytest

from weft.protocol import IllegalStep, Received, TimerFired
from weft.protocol.diagram import mermaid
from weft.protocol.hosting import Agent, Conductor, Launched, Want, agent, conductor
from weft.protocol.machine import STORY_LINES_MAX, Machine
from weft.protocol.messages import StartFragment


def test_an_illegal_step_tells_machine_state_input_and_story() -> None:
    site = Agent("a")
    site.handle(Received("conductor", StartFragment("f1", 1)))
    site.handle(Launched("f1", 1))
    with pytest.raises(IllegalStep) as raised:
        site.handle(Launched("f1", 1))
    text = str(raised.value)
    assert text.startswith("a: Launched(f1, epoch 1) in state running")
    assert "StartFragment(f1, epoch 1) from conductor -> Remember(f1, epoch 1); Fence(f1, epoch 1)" in text
    assert raised.value.state == "running"


def test_the_story_is_bounded() -> None:
    site = Agent("a")
    for _ in range(100):
        site.handle(Received("conductor", StartFragment("f1", 1)))
    assert len(site.story()) == STORY_LINES_MAX


def test_an_illegal_step_leaves_no_trace_of_an_unknown_fragment() -> None:
    site = Agent("a")
    before = site.snapshot()
    with pytest.raises(IllegalStep):
        site.handle(TimerFired("f9"))
    assert site.snapshot() == before


def test_equal_states_reached_in_another_order_have_equal_bytes() -> None:
    one, other = Agent("a"), Agent("a")
    for fragment in ("f1", "f2"):
        one.handle(Received("conductor", StartFragment(fragment, 1)))
    for fragment in ("f2", "f1"):
        other.handle(Received("conductor", StartFragment(fragment, 1)))
    assert one.snapshot() == other.snapshot()


def test_a_restored_machine_goes_on_as_the_first_would() -> None:
    first = Conductor("conductor")
    first.handle(Want("f1", "a"))
    second = Conductor("conductor")
    second.restore(first.snapshot())
    assert second.snapshot() == first.snapshot()
    assert second.handle(TimerFired("f1")) == first.handle(TimerFired("f1"))
    assert second.snapshot() == first.snapshot()


@pytest.mark.parametrize(("machine", "states"), [(Agent, agent.STATES), (Conductor, conductor.STATES)])
def test_the_table_names_only_known_states_and_every_state_can_be_reached(
    machine: type[Machine], states: tuple[str, ...]
) -> None:
    named = {state for state, _ in machine.STEPS} | {to for step in machine.STEPS.values() for to in step.to}
    assert named == set(states)
    reached = {states[0]}
    for _ in states:
        reached |= {to for (state, _), step in machine.STEPS.items() if state in reached for to in step.to}
    assert reached == set(states)


def test_a_diagram_shows_every_change_of_state_and_loops_on_demand() -> None:
    text = mermaid(Agent)
    assert text.startswith("stateDiagram-v2\n    [*] --> absent\n")
    assert "    launching --> running: Launched\n" in text
    assert "running --> running" not in text
    assert "running --> running: StartFragment, StopFragment" in mermaid(Agent, loops=True)


def test_machines_have_slots_and_no_dict() -> None:
    for machine in (Agent("a"), Conductor("c")):
        assert not hasattr(machine, "__dict__")
