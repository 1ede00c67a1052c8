"""A counterexample as a file, and the way it tells taken again.

protocol: exclusion
as published: yes
world: 2-FGME 2+1 x1
claim: every wait ends: from here no quiet state can be reached
----
1 a1 Enter() -> a1 -> b1 Req(1)
2 ...
"""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.bodies.explorer.alphabet import Alphabet
from weft.bodies.explorer.claims import Answers, Eyes
from weft.bodies.explorer.explore import ENDS, STEPS_LEGAL, Violation
from weft.bodies.explorer.story import Told, steps, told
from weft.bodies.explorer.world import World
from weft.protocol import parse_story_line
from weft.protocol.story import input_text

RULE = "----"


class BadScenario(Exception):
    """A file that tells no way through a world."""


class Scenario(NamedTuple):
    """Which world, and the lines of the story."""

    protocol: str
    as_published: bool
    world: str
    claim: str
    lines: tuple[str, ...]


class Replayed(NamedTuple):
    """The story as it went this time, and the claims that do not hold where it ends."""

    story: tuple[str, ...]
    broken: tuple[str, ...]


def write(protocol: str, as_published: bool, violation: Violation) -> str:
    """A violation as a scenario file."""
    head = (
        f"protocol: {protocol}", f"as published: {'yes' if as_published else 'no'}", f"world: {violation.world}",
        f"claim: {violation.claim}", RULE,
    )  # fmt: skip
    return "\n".join([*head, *violation.story]) + "\n"


def read(text: str) -> Scenario:
    """The scenario in a file."""
    lines = text.splitlines()
    if RULE not in lines:
        raise BadScenario(f"no line `{RULE}` between the head and the story")
    at = lines.index(RULE)
    head = dict(line.split(": ", 1) for line in lines[:at] if ": " in line)
    for name in ("protocol", "world"):
        if name not in head:
            raise BadScenario(f"the head has no line `{name}: ...`")
    story = tuple(line for line in lines[at + 1 :] if line.strip())
    return Scenario(head["protocol"], head.get("as published") == "yes", head["world"], head.get("claim", ""), story)


def replay(world: World, scenario: Scenario) -> Replayed:
    """Takes the steps of a scenario, by who takes them and what comes in; effects may be others than then."""
    alphabet = Alphabet(world)
    row = alphabet.first()
    way: list[Told] = []
    for number, text in enumerate(scenario.lines, 1):
        try:
            line = parse_story_line(text)
        except ValueError as error:
            raise BadScenario(f"line {number} of the story: {error}") from error
        found = [
            (one, after) for one, after in steps(alphabet, row)
            if one.site == line.site and input_text(one.input) == line.input
        ]  # fmt: skip
        if not found:
            raise BadScenario(f"line {number} of the story cannot happen here: {text}")
        one, row = found[0]
        way.append(one)
        if one.illegal:
            return Replayed(told(way), (f"{STEPS_LEGAL}: {one.illegal}",))
    return Replayed(told(way), tuple(_broken(world, alphabet, row)))


def _broken(world: World, alphabet: Alphabet, row: Any) -> list[str]:
    alphabet.offers_for(row)
    eyes, rows = Eyes(alphabet), row.reshape(1, -1)
    broken = [claim for claim, holds in world.invariants.items() if not Answers(eyes, holds).of(rows)[0]]
    quiet = Answers(eyes, lambda view: view.told and world.quiet(view)).of(rows)[0]
    onward = list(steps(alphabet, row))
    if not quiet and not onward:
        broken.append(ENDS)
    return broken + [f"{STEPS_LEGAL}: {one.illegal}" for one, _ in onward if one.illegal]
