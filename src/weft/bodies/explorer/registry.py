"""The worlds by name, for the command line."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from weft.bodies.explorer.explore import ENDS, Result, run
from weft.bodies.explorer.replay import BadScenario, Replayed, Scenario, replay
from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import (
    balancing,
    composing,
    connection,
    control,
    counting,
    directory,
    exclusion,
    feedback,
    hosting,
    move,
    ordered_move,
    reporting,
    scaling,
    torn,
)


def _beside(brisk: tuple[World, ...], larger: tuple[World, ...]) -> tuple[World, ...]:
    """Worlds that are seen through in seconds, then larger ones; each name stands for one world."""
    taken = {world.name for world in larger}
    named = (one._replace(name=f"{one.name}, brief") if one.name in taken else one for one in brisk)
    return (*named, *larger)


def _exclusion(as_published: bool, long: bool) -> tuple[World, ...]:
    larger = exclusion.worlds(as_published, long)
    known = {world.name for world in larger}
    return larger if as_published else (*larger, *(one for one in exclusion.telling() if one.name not in known))


def _balancing(as_published: bool, long: bool) -> tuple[World, ...]:
    larger = balancing.worlds(as_published, long)
    return larger if as_published else _beside(balancing.brisk(), larger)


def _scaling(as_published: bool, long: bool) -> tuple[World, ...]:
    larger = scaling.worlds(as_published, long)
    return larger if as_published else _beside(scaling.brisk(), larger)


def _move(as_published: bool, long: bool) -> tuple[World, ...]:
    *first, last = torn.moves()
    return (*_beside((*move.brisk(), *first), move.worlds(as_published, long)), last)


_WORLDS: dict[str, Callable[[bool, bool], tuple[World, ...]]] = {
    "hosting": lambda as_published, long: _beside(torn.hosts(), hosting.worlds(as_published, long)),
    "move": _move,
    "balancing": _balancing,
    "exclusion": _exclusion,
    "scaling": _scaling,
    "control": control.worlds,
    "connection": connection.worlds,
    "counting": counting.worlds,
    "ordered_move": ordered_move.worlds,
    "directory": directory.worlds,
    "composing": composing.worlds,
    "feedback": feedback.worlds,
    "reporting": reporting.worlds,
}
NAMES = tuple(_WORLDS)


def explore(
    name: str, as_published: bool = False, long: bool = False, told: Callable[[Result], None] = lambda result: None
) -> dict[str, Any]:
    """Explores every world of a protocol, telling of each when it is done; KeyError where none has that name."""
    results = list(_results(name, as_published, long, told))
    return {
        "states": sum(result.states for result in results),
        "worlds": [
            {"name": result.world, "states": result.states, "steps": result.steps}
            | ({} if result.sent_max is None else {"messages_max": result.sent_max})
            for result in results
        ],
        "violations": [
            {"world": violation.world, "claim": violation.claim, "story": list(violation.story)}
            for result in results
            for violation in result.violations
        ],
        "claims": claims(name, as_published, long),
    }


def claims(name: str, as_published: bool = False, long: bool = False) -> list[str]:
    """What is asked of all states and steps of a protocol's worlds, each once, in the order of the worlds."""
    asked = [claim for world in _WORLDS[name](as_published, long) for claim in (*world.invariants, *world.steps)]
    return list(dict.fromkeys([*asked, ENDS]))


def replayed(scenario: Scenario) -> Replayed:
    """Takes the way of a scenario again, in the world that it names."""
    if scenario.protocol not in _WORLDS:
        raise BadScenario(f"no protocol is called `{scenario.protocol}`; there are: {', '.join(NAMES)}")
    for long in (False, True):
        for world in _WORLDS[scenario.protocol](scenario.as_published, long):
            if world.name == scenario.world:
                return replay(world, scenario)
    raise BadScenario(f"{scenario.protocol} has no world called `{scenario.world}`")


def _results(name: str, as_published: bool, long: bool, told: Callable[[Result], None]) -> Iterator[Result]:
    """World by world; larger ones on all cores, the largest, which stand last, first."""
    worlds = _WORLDS[name](as_published, long)
    cores = os.cpu_count() or 1
    if not long or cores == 1:
        for world in worlds:
            result = run(world)
            told(result)
            yield result
        return
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        begun = {at: pool.submit(_run_one, name, as_published, at) for at in reversed(range(len(worlds)))}
        for done in as_completed(begun.values()):
            told(done.result())
        yield from (begun[at].result() for at in range(len(worlds)))


def _run_one(name: str, as_published: bool, at: int) -> Result:
    return run(_WORLDS[name](as_published, True)[at])
