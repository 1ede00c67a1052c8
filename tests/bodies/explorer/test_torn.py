"""Crashes between two effects of one step, on a world so small that one can count it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec
import pytest

from tests.bodies.explorer.slow_explorer import Slow
from weft.bodies.explorer import Choice, World, run, wander
from weft.bodies.explorer.replay import Scenario, replay
from weft.bodies.explorer.worlds import balancing, balancing_trees, hosting
from weft.protocol import CancelTimer, Effect, Input, Machine, Send, SetTimer, Step
from weft.protocol.hosting import Remember, Want
from weft.protocol.machine import Row
from weft.protocol.messages import StartFragment

TOLD = "what was told is remembered"


class Asked(Input, frozen=True):
    """Someone wants something."""

    fragment: str = "f"


class Idle(Row, array_like=True):
    """Idle, or asked."""

    state: str = "idle"


class Careful(Machine):
    """Remembers before it tells."""

    __slots__ = ()
    ROW = Idle

    def effects(self) -> list[Effect]:
        return [SetTimer("f", 1), Remember("f", 1), Send("b", StartFragment("f", 1)), CancelTimer("f")]

    def on_asked(self, key: str, row: Row, input: Input) -> list[Effect]:
        row.state = "asked"
        return self.effects()

    STEPS: ClassVar = {("idle", Asked): Step(on_asked, ("asked",))}


class Careless(Careful):
    """Tells before it remembers."""

    __slots__ = ()

    def effects(self) -> list[Effect]:
        return [Send("b", StartFragment("f", 1)), SetTimer("f", 1), Remember("f", 1), CancelTimer("f")]


class Listener(Machine):
    """Hears, and says nothing."""

    __slots__ = ()
    ROW = Idle
    STEPS: ClassVar = {("idle", StartFragment): Step(lambda *_: [], ("idle",))}


class Disk(msgspec.Struct, frozen=True):
    """Whether something was remembered."""

    written: bool = False

    def perform(self, site: str, effect: Effect) -> Disk:
        return Disk(self.written or isinstance(effect, Remember))

    def choices(self) -> Iterable[Choice]:
        return ()

    def crash(self, site: str) -> Disk:
        return self


def small(teller: type[Machine], **more: Any) -> World:
    return World(
        "small",
        lambda: {"a": teller("a"), "b": Listener("b")},
        Disk(),
        ((("a", Asked()),),),
        {TOLD: lambda view: not view.flight or view.ground.written},
        lambda view: not view.busy,
        lambda name, ground: teller(name),
        ("a",),
    )._replace(**more)


def test_a_crash_before_or_after_a_step_does_not_see_what_is_told_before_it_is_remembered() -> None:
    assert run(small(Careless, crash=1)).violations == ()


def test_a_crash_in_the_midst_of_a_step_does_and_its_story_says_after_how_many_effects() -> None:
    assert run(small(Careful, crash=1, torn=1)).violations == ()
    (violation,) = run(small(Careless, crash=1, torn=1)).violations
    assert violation.claim == TOLD
    assert violation.story == ("1 a CrashedAfter(Asked(f), 1) -> a -> b StartFragment(f, epoch 1)",)
    again = replay(small(Careless, crash=1, torn=1), Scenario("small", False, "small", TOLD, violation.story))
    assert (again.story, again.broken) == (violation.story, (TOLD,))


def test_torn_steps_are_crashes_of_mortal_machines_and_counted_as_such() -> None:
    assert run(small(Careless, torn=1)).violations == ()
    assert run(small(Careless, torn=1, crash=1, mortal=("b",))).violations == ()
    # Whole: idle, told and heard, and each of them after one crash; torn, the first is as if nothing had been told.
    whole, torn = (run(small(Careful, crash=1, torn=torn)) for torn in (0, 1))
    assert (whole.states, torn.states - whole.states) == (10, 3)
    twice = run(small(Careful, crash=2, torn=2))
    once = run(small(Careful, crash=2, torn=1))
    assert twice.states > once.states > run(small(Careful, crash=2)).states


def test_what_a_crash_clears_makes_no_cut() -> None:
    class Timed(Careful):
        __slots__ = ()

        def effects(self) -> list[Effect]:
            return [SetTimer("f", 1), CancelTimer("f"), Remember("f", 1), SetTimer("f", 1), SetTimer("g", 1)]

    assert run(small(Timed, crash=1, torn=1)).states == run(small(Timed, crash=1)).states


@pytest.mark.parametrize(
    "world",
    [
        small(Careful, crash=2, torn=1, lose=1, double=1),
        hosting.world("started", (Want("f1", "a"),), sites=("a",), mortal=("a", "conductor"), crash=1, torn=1),
        balancing.world("an offer", balancing_trees.OFFER, crash=1, torn=1),
    ],
    ids=lambda world: world.name,
)
def test_the_compiled_explorer_counts_torn_steps_as_the_plain_one_does(world: World) -> None:
    result = run(world)
    assert (result.states, result.steps, not result.violations) == Slow(world).run()


def test_wandering_comes_upon_torn_steps() -> None:
    found = wander(small(Careless, crash=1, torn=1), 200, seed=1).violation
    assert found is not None
    assert found.claim.startswith(TOLD)
