"""Worlds of hosting and of a change of placement in which machines crash between two effects of one step."""

from __future__ import annotations

from typing import Any

from weft.bodies.explorer.world import World
from weft.bodies.explorer.worlds import hosting, move
from weft.bodies.explorer.worlds.move_plan import MoveCase
from weft.protocol.hosting import Unwant, Want


def hosts(**machines: Any) -> tuple[World, ...]:
    """Fragments started, moved and stopped, while agents and the conductor crash in the midst of a step."""
    start, go, stop = Want("f1", "a"), Want("f1", "b"), Unwant("f1")
    every = ("a", "b", "conductor")
    return (
        hosting.world("started, a torn step", (start,), sites=("a",), mortal=("a", "conductor"), crash=1, torn=1,
                      lose=1, **machines),
        hosting.world("a move, a torn step", (start, go), mortal=every, crash=1, torn=1, **machines),
        hosting.world("a move and back, a torn step and a death", (start, go, start), mortal=every, crash=1, torn=1,
                      deaths=1, **machines),
        hosting.world("a move, a crash and a torn step", (start, go), mortal=every, crash=2, torn=1, **machines),
        hosting.world("stopped, the inputs end, a torn step", (start, stop), mortal=every, crash=1, torn=1, lose=1,
                      may_drain=True, **machines),
        hosting.world("wanted again where it does not halt", (start, stop, start), sites=("a",), mortal=(), tries=1,
                      early=4, **machines),
        hosting.world("given up, words that overtake", (start,), sites=("a",), mortal=(), deaths=1, restarts=0,
                      overtake=1, early=1, **machines),
    )  # fmt: skip


def moves(**machines: Any) -> tuple[World, ...]:
    """Changes of placement while agents and the desk crash in the midst of a step."""
    return (
        move.world("a move, a torn step", MoveCase("1a", "1b", records=1), crash=1, torn=1, **machines),
        move.world("a full disk, a torn step", MoveCase("1a", "1b", records=1), crash=1, torn=1, undecided=1,
                   **machines),
        move.world("into a fragment, a torn step", MoveCase("1a 2b", "1b", records=1), crash=1, torn=1, **machines),
    )  # fmt: skip
