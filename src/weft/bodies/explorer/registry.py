"""The worlds by name, for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.bodies.explorer.explore import run
from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import balancing, hosting, move

_WORLDS: dict[str, Callable[[bool, bool], tuple[World, ...]]] = {
    "hosting": hosting.worlds,
    "move": move.worlds,
    "balancing": balancing.worlds,
}
NAMES = tuple(_WORLDS)


def explore(name: str, as_published: bool = False, long: bool = False) -> dict[str, Any]:
    """Explores every world of a protocol; KeyError where there is none of that name."""
    results = [run(world) for world in _WORLDS[name](as_published, long)]
    return {
        "states": sum(result.states for result in results),
        "worlds": [{"name": result.world, "states": result.states, "steps": result.steps} for result in results],
        "violations": [
            {"world": violation.world, "claim": violation.claim, "story": list(violation.story)}
            for result in results
            for violation in result.violations
        ],
    }
