"""Machines with one fault each, made from the source of moving and hosting, and the search for them in the worlds."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.bodies.explorer.mutants import Faulty, Mutant, mutants
from tests.protocol import test_preparer
from weft.bodies.explorer import World, run
from weft.bodies.explorer.explore import BOUNDED
from weft.protocol.hosting import agent, conductor
from weft.protocol.machine import IllegalStep, Input
from weft.protocol.moving import desk, host, mover, preparer

# What a change of placement brought to hosting; the rest of it has its own worlds and planted faults.
CONDUCTOR = ("on_end", "on_finishing", "on_stopped", "stopping", "up", "ended")
AGENT = ("on_last_batch", "on_finished", "on_finish_timer", "finish")
STEP_S_MAX = 0.5
STATES_MAX = 20_000


def all_mutants() -> list[Mutant]:
    """Every mutant of the mover, the preparer, the desk, the host, and what they changed in hosting."""
    whole = [one for module in (mover, preparer, desk, host) for one in mutants(module)]
    return [*whole, *mutants(conductor, CONDUCTOR), *mutants(agent, AGENT)]


def machines(mutant: Faulty) -> dict[str, type]:
    """The desk and the host of a world, one of them faulty; a step that does not end is an illegal one."""
    made = mutant.load()
    if mutant.module == host.__name__:
        return {"host": guarded(made.Host)}
    for module, part in ((agent, "Agent"), (preparer, "Preparer")):
        if mutant.module == module.__name__:
            return {"host": guarded(_again(host, {part: getattr(made, part)}).Host)}
    if mutant.module == desk.__name__:
        return {"desk": guarded(made.Desk)}
    names = ("Mover",) if mutant.module == mover.__name__ else ("Conductor",)
    beside = _again(desk, {name: getattr(made, name) for name in names})
    return {"desk": guarded(beside.Desk)}


def hosts(mutant: Faulty) -> dict[str, type]:
    """The same for the worlds of hosting, where the fault lies in hosting."""
    if mutant.module == agent.__name__:
        return {"agent": guarded(mutant.load().Agent)}
    return {"conductor": guarded(mutant.load().Conductor)} if mutant.module == conductor.__name__ else {}


def found(mutant: Mutant, worlds: Iterable[World]) -> str | None:
    """The world that sees a fault and the claim it breaks there, or None; one left early has seen nothing."""
    for world in worlds:
        try:
            result = run(world._replace(states_max=STATES_MAX))
        except Exception as error:
            return f"{world.name}: {type(error).__name__}"
        for violation in result.violations:
            if not violation.claim.startswith(BOUNDED):
                return f"{world.name}: {violation.claim}"
    return None


def told_by_hand(mutant: Mutant) -> str | None:
    """The rule of a site, one of those told by hand, that a fault breaks; None where none does."""
    made = machines(mutant).get("host")
    rules = [rule for name, rule in vars(test_preparer).items() if name.startswith("test_")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_preparer, "Host", made or host.Host)
        for rule in rules:
            try:
                rule()
            except (AssertionError, IllegalStep):
                return str(rule.__name__)
    return None


def _again(module: ModuleType, replaced: dict[str, object]) -> ModuleType:
    """A module executed once more, with some of its names replaced."""
    assert module.__file__ is not None
    made = ModuleType(module.__name__)
    with open(module.__file__, encoding="utf-8") as file:
        exec(compile(file.read(), module.__file__, "exec"), made.__dict__)
    made.__dict__.update(replaced)
    return made


def guarded(machine: Any) -> type:
    """A machine whose steps end, if need be with an error."""

    class Guarded(machine):  # type: ignore[misc]
        __slots__ = ()

        def handle(self, input: Input) -> Any:
            signal.setitimer(signal.ITIMER_VIRTUAL, STEP_S_MAX)
            try:
                return super().handle(input)
            except (IllegalStep, AssertionError):
                raise
            except Exception as error:
                raise AssertionError(f"a step fails: {type(error).__name__}") from error
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return Guarded


def guard() -> Iterator[None]:
    """Lets a step that takes too long fail, as a fixture."""

    def expired(*_: object) -> None:
        raise AssertionError("a step does not end")

    before = signal.signal(signal.SIGVTALRM, expired)
    yield
    signal.signal(signal.SIGVTALRM, before)
