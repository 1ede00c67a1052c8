"""The explorer itself, on a world so small that one can count it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from weft.bodies.explorer import Choice, World, run
from weft.bodies.explorer.explore import BOUNDED, ENDS, STEPS_LEGAL
from weft.protocol import Effect, Input, Machine, Received, Send, SetTimer, Step, TimerFired
from weft.protocol.machine import Row
from weft.protocol.messages import FragmentDone, StartFragment


class Asked(Input, frozen=True):
    """Someone wants something."""

    fragment: str = "f"


class Asking(Row, array_like=True):
    """Idle, asking or answered."""

    state: str = "idle"


def ask(machine: Machine, key: str, row: Row, input: Input) -> list[Effect]:
    row.state = "asking"
    return [Send("b", StartFragment(key, 1)), SetTimer(key, 1)]


def ask_once(machine: Machine, key: str, row: Row, input: Input) -> list[Effect]:
    row.state = "asking"
    return [Send("b", StartFragment(key, 1))]


def rest(machine: Machine, key: str, row: Row, input: Input) -> list[Effect]:
    row.state = "answered"
    return []


def answer(machine: Machine, key: str, row: Row, input: Received) -> list[Effect]:
    return [Send(input.sender, FragmentDone(key, 1))]


class Asker(Machine):
    """Asks until it is answered."""

    __slots__ = ()
    ROW = Asking
    STEPS: ClassVar = {
        ("idle", Asked): Step(ask, ("asking",)),
        ("asking", TimerFired): Step(ask, ("asking",)),
        ("answered", TimerFired): Step(rest, ("answered",)),
        ("asking", FragmentDone): Step(rest, ("answered",)),
        ("answered", FragmentDone): Step(rest, ("answered",)),
    }


class OnceAsker(Asker):
    """Asks once and waits for ever."""

    __slots__ = ()
    STEPS: ClassVar = {**Asker.STEPS, ("idle", Asked): Step(ask_once, ("asking",))}


class Answerer(Machine):
    """Answers."""

    __slots__ = ()
    ROW = Asking
    STEPS: ClassVar = {("idle", StartFragment): Step(answer, ("idle",))}


class Bare(msgspec.Struct, frozen=True):
    """A ground on which nothing happens."""

    def perform(self, site: str, effect: Effect) -> Bare:
        return self

    def choices(self) -> Iterable[Choice]:
        return ()

    def crash(self, site: str) -> Bare:
        return self


def small(asker: type[Machine] = Asker, **more: object) -> World:
    return World(
        "small",
        lambda: {"a": asker("a"), "b": Answerer("b")},
        Bare(),
        ((("a", Asked()),),),
        {},
        lambda view: view.machine("a").rows["f"].state == "answered",
    )._replace(**more)


def test_a_small_world_has_the_states_one_can_count() -> None:
    # asked: idle, question under way, answer under way, answered with its timer, answered without.
    assert run(small())[:4] == ("small", 5, 4, ())


def test_a_lost_message_is_survived_by_asking_again() -> None:
    assert run(small(lose=1)).violations == ()


def test_a_wait_without_a_timer_is_found_with_its_shortest_story() -> None:
    assert run(small(OnceAsker)).violations == ()
    (violation,) = run(small(OnceAsker, lose=1)).violations
    assert violation.claim == ENDS
    assert violation.story == (
        "1 a Asked(f) -> a -> b StartFragment(f, epoch 1)",
        "2 b Lost(a, StartFragment(f, epoch 1)) -> nothing",
    )


def test_a_broken_invariant_is_found_with_its_shortest_story() -> None:
    never = {"no one is ever answered": lambda view: "f" not in view.machine("a").rows or not small().quiet(view)}
    (violation,) = run(small(invariants=never)).violations
    assert violation.claim == "no one is ever answered"
    assert len(violation.story) == 3


def test_an_illegal_step_is_a_violation() -> None:
    (violation,) = run(small(scripts=((("a", Asked()), ("a", Asked())),))).violations
    assert violation.claim.startswith(f"{STEPS_LEGAL}: a: Asked(f) in state ")


def test_a_world_without_end_is_stopped_and_says_so() -> None:
    (violation,) = run(small(early=10**6, states_max=500)).violations
    assert violation.claim.startswith(BOUNDED)
