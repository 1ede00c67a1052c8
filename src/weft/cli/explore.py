"""`weft explore`: can any order of arrivals break a protocol?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.output import FAILED, WRONG_INPUT, Json, console, counted, fail, note, print_json, say

if TYPE_CHECKING:
    from weft.bodies import explorer


def explore(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The protocol: hosting, move, balancing, exclusion, scaling, control, connection, counting, "
            "composing, directory, feedback, ordered_move or reporting.",
        ),
    ],
    as_published: Annotated[
        bool, typer.Option("--as-published", help="The published form, to see what is wrong with it.")
    ] = False,
    long: Annotated[bool, typer.Option("--long", help="Larger worlds, which take longer.")] = False,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write each violation as a scenario file into this folder.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the steps of a scenario file again, and nothing else.")
    ] = None,
    json: Json = False,
) -> None:
    """Run a protocol's machines through every order of messages, timers, losses and crashes of small worlds.

    A violation is told by the shortest story that leads to it, and gives exit status 1.

    \b
    Example:  weft explore exclusion --as-published --save found
              weft explore exclusion --replay found/01.txt
    """
    from weft.bodies import explorer

    if name not in explorer.NAMES:
        fail(f"no protocol is called `{name}`; there are: {', '.join(explorer.NAMES)}", WRONG_INPUT)
    if replay is not None:
        _replay(name, replay, json)
        return
    waiting: Any = nullcontext()
    if sys.stderr.isatty():
        waiting = console(sys.stderr).status(f"exploring {name}")
    else:
        note(f"exploring {name}")
    with waiting:
        found = explorer.explore(name, as_published=as_published, long=long, told=_told if long else lambda world: None)
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        for number, one in enumerate(found["violations"], 1):
            violation = explorer.Violation(one["world"], one["claim"], tuple(one["story"]))
            text = explorer.scenario_text(name, as_published, violation)
            (save / f"{number:02}.txt").write_text(text, encoding="utf-8")
    if json:
        print_json(found)
    else:
        _print(name, found)
    if found["violations"]:
        raise typer.Exit(FAILED)


def _told(result: explorer.Result) -> None:
    note(f"{result.world}: {result.states:,} states")


def _replay(name: str, path: Path, json: bool) -> None:
    from weft.bodies import explorer

    try:
        scenario = explorer.read_scenario(path.read_text(encoding="utf-8"))
        if scenario.protocol != name:
            fail(f"{path} is a scenario of {scenario.protocol}, not of {name}", WRONG_INPUT)
        found = explorer.replayed(scenario)
    except (OSError, UnicodeDecodeError, explorer.BadScenario) as error:
        fail(f"{path}: {error}", WRONG_INPUT)
    if json:
        print_json({"world": scenario.world, "story": list(found.story), "broken": list(found.broken)})
    else:
        for line in found.story:
            say(line)
        say("")
        for claim in found.broken or ("nothing is broken here",):
            say(f"broken: {claim}" if found.broken else claim)
    if found.broken:
        raise typer.Exit(FAILED)


def _print(name: str, found: dict[str, Any]) -> None:
    from weft.bodies import explorer

    broken = {violation["world"] for violation in found["violations"]}
    for world in found["worlds"]:
        sent = f", at most {world['messages_max']:,} messages" if "messages_max" in world else ""
        verdict = "violated" if world["name"] in broken else "holds"
        say(f"{name}: {world['name']}: {verdict}, {world['states']:,} states, {world['steps']:,} steps{sent}")
    if found.get("claims"):
        say("")
        say("holds: of every state that can be reached, and of every step, it is so that")
        for claim in found["claims"]:
            say(f"  {claim.partition(':')[0] if claim == explorer.ENDS else claim}")
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
