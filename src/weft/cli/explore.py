"""`weft explore`: can any order of arrivals break a protocol?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from weft.cli.output import FAILED, WRONG_INPUT, Json, console, counted, fail, note, print_json, say


def explore(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The protocol; an unknown name lists those there are.")],
    as_published: Annotated[
        bool, typer.Option("--as-published", help="The published form, to see what is wrong with it.")
    ] = False,
    long: Annotated[bool, typer.Option("--long", help="Larger worlds, which take longer.")] = False,
    json: Json = False,
) -> None:
    """Run a protocol's machines through every order of messages, timers, losses and crashes of small worlds.

    A violation is told by the shortest story that leads to it, and gives exit status 1.

    \b
    Example:  weft explore hosting
    """
    from weft.bodies import explorer

    if name not in explorer.NAMES:
        fail(f"no protocol is called `{name}`; there are: {', '.join(explorer.NAMES)}", WRONG_INPUT)
    waiting: Any = nullcontext()
    if sys.stderr.isatty():
        waiting = console(sys.stderr).status(f"exploring {name}")
    else:
        note(f"exploring {name}")
    with waiting:
        found = explorer.explore(name, as_published=as_published, long=long)
    if json:
        print_json(found)
    else:
        _print(name, found)
    if found["violations"]:
        raise typer.Exit(FAILED)


def _print(name: str, found: dict[str, Any]) -> None:
    broken = {violation["world"] for violation in found["violations"]}
    for world in found["worlds"]:
        verdict = "violated" if world["name"] in broken else "holds"
        say(f"{name}: {world['name']}: {verdict}, {world['states']:,} states, {world['steps']:,} steps")
    for violation in found["violations"]:
        say("")
        say(f"broken in {violation['world']}: {violation['claim']}")
        for line in violation["story"]:
            say(f"  {line}")
    say("")
    say(
        f"{found['states']:,} states in {counted(len(found['worlds']), 'world')}, "
        f"{counted(len(found['violations']), 'violation')}"
    )
