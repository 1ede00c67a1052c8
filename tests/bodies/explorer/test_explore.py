"""The explorer itself, on a world so small that one can count it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec
import pytest

from tests.bodies.explorer.slow_explorer import Slow
from weft.bodies.explorer import Choice, World, run, wander
from weft.bodies.explorer.explore import BOUNDED, CIRCLE, ENDS, SENT, STEPS_LEGAL
from weft.bodies.explorer.worlds import exclusion, hosting, scaling
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


def poll(machine: Machine, key: str, row: Row, input: Input) -> list[Effect]:
    return [SetTimer(key, 1)]


class Poller(Asker):
    """Looks again and again after it was answered."""

    __slots__ = ()
    STEPS: ClassVar = {**Asker.STEPS, ("answered", TimerFired): Step(poll, ("answered",))}


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


def test_an_assertion_without_a_word_is_a_violation() -> None:
    class Wordless(Asker):
        __slots__ = ()

        def handle(self, input: Input) -> list[Effect]:
            if isinstance(input, TimerFired):
                raise AssertionError
            return super().handle(input)

    (violation,) = run(small(asker=Wordless)).violations
    assert violation.claim == f"{STEPS_LEGAL}: AssertionError"


def test_a_world_without_end_is_stopped_and_says_so() -> None:
    (violation,) = run(small(early=10**6, states_max=500)).violations
    assert violation.claim.startswith(BOUNDED)


def test_steps_in_a_circle_are_found_where_every_run_must_end() -> None:
    assert run(small(ends=True))[3:] == ((), 2)
    assert run(small(Poller)).violations == ()
    (violation,) = run(small(Poller, ends=True)).violations
    assert violation.claim == CIRCLE


def test_a_run_that_sends_too_much_is_found() -> None:
    (violation,) = run(small(ends=True, sent_max=1)).violations
    assert violation.claim.startswith(SENT)


def test_going_on_after_a_broken_claim_tells_the_first_break_of_each() -> None:
    never = {"nothing is ever said": lambda view: not view.flight, "nobody waits": lambda view: not view.timers}
    found = run(small(OnceAsker, invariants=never, collect=True, lose=1)).violations
    assert [(one.claim, len(one.story)) for one in found] == [("nothing is ever said", 1), (ENDS, 2)]


@pytest.mark.parametrize(
    "world",
    [
        small(lose=1, early=1, overtake=1, double=1),
        hosting.worlds()[1],
        exclusion.world((1, 2), 1, double=1),
        exclusion.world((1, 1, 1), 1),
        scaling.pairs(scaling.CHAIN2, {"a": 2, "b": 2}, ("g", "s"))[1],
    ],
    ids=lambda world: world.name,
)
def test_the_compiled_explorer_counts_what_the_plain_one_does(world: World) -> None:
    result = run(world)
    assert (result.states, result.steps, not result.violations) == Slow(world).run()


def test_machines_that_are_alike_are_explored_once() -> None:
    apart, alike = (run(exclusion.world((2, 2), 1, alike=alike)) for alike in (False, True))
    assert (apart.states, alike.states) == (5_710, 1_540)
    assert (alike.violations, alike.sent_max) == ((), apart.sent_max)


def test_a_story_from_a_world_of_machines_alike_can_be_told() -> None:
    calm = {"nobody ever waits": lambda view: all(phase != exclusion.WAITS for _, phase, _ in view.ground.members)}
    world = exclusion.world((2, 2), 1, alike=True)._replace(invariants=calm)
    (violation,) = run(world).violations
    assert violation.story == ("1 b1 Enter() -> b1 -> a1 AskFork(1, 0); b1 -> a2 AskFork(1, 0)",)


def test_wandering_finds_what_is_wrong_and_says_how_to_find_it_again() -> None:
    found = wander(small(OnceAsker, lose=1), 100, seed=1).violation
    assert found is not None
    assert found.claim.startswith(f"{ENDS} (seed 1, way ")
    assert wander(exclusion.crowds()[0], 300, seed=1).violation is None
    assert wander(scaling.crowds()[0], 100, seed=1).violation is None
