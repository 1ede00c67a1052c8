"""Rooms: members of groups that enter so many times each, in virtual time; what that takes in messages and waiting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.lab.virtual import LINKS, LONG_LINKS, Virtual, seeded
from weft.protocol import Effect
from weft.protocol.exclusion import Enter, Entered, Exit, Member, Refuse
from weft.protocol.published.two_groups import TwoGroups
from weft.protocol.rivals.joung import Ra1, Ra2

ALGORITHMS: dict[str, Any] = {"forks": Member, "2-FGME": TwoGroups, "RA1": Ra1, "RA2": Ra2}
ASK_EVERYONE = ("RA1", "RA2")


class Storm(Exception):
    """More messages than a run may take."""

    def __init__(self, messages: int) -> None:
        super().__init__(f"{messages} messages")
        self.messages = messages


@dataclass(slots=True)
class Visit:
    """What one run gave; `inside` has the numbers inside and wanting to be, per group, whenever they changed."""

    messages: int = 0
    entries: int = 0
    waits_ms: dict[str, list[float]] = field(default_factory=dict)
    inside_max: dict[str, int] = field(default_factory=dict)
    occupancy: list[tuple[float, str, int, int]] = field(default_factory=list)


def visit(
    algorithm: str,
    sizes: tuple[int, ...],
    entries: int,
    pause_ms: float,
    inside_ms: float,
    link: str,
    seed: int,
    conflicts: Mapping[str, str] | None = None,
    messages_max: int = 5_000_000,
) -> Visit:
    """One run: each member pauses, asks, stays inside, and so on; the first pauses are drawn from one pause.

    `conflicts` says for each group which others it excludes; without it, all exclude one another.
    """
    groups = {f"{letter}{at}": letter for letter, size in zip("abcdefgh", sizes, strict=False) for at in range(size)}
    letters = sorted(set(groups.values()))
    excluded = conflicts or {one: "".join(other for other in letters if other != one) for one in letters}

    def others(me: str) -> dict[str, str]:
        everyone = algorithm in ASK_EVERYONE
        return {
            name: group for name, group in groups.items()
            if name != me and (everyone or group in excluded[groups[me]])
        }  # fmt: skip

    rng = seeded(algorithm, sizes, entries, pause_ms, inside_ms, link, seed)
    machines = {name: ALGORITHMS[algorithm](name, group, others(name)) for name, group in groups.items()}
    body = Virtual(machines, (LINKS | LONG_LINKS)[link], rng)
    found = Visit(waits_ms={name: [] for name in groups}, inside_max=dict.fromkeys(letters, 0))
    asked: dict[str, float] = {}
    inside: set[str] = set()

    def perform(site: str, effect: Effect) -> None:
        assert not isinstance(effect, Refuse), effect
        if isinstance(effect, Entered):
            rivals = [one for one in inside if groups[one] in excluded[groups[site]]]
            assert not rivals, f"{site} is inside with {rivals}"
            inside.add(site)
            found.entries += 1
            found.waits_ms[site].append(body.now_ms - asked[site])
            body.at(body.now_ms + inside_ms, site, Exit())
            note(groups[site])

    def note(group: str) -> None:
        within = sum(groups[name] == group for name in inside)
        found.inside_max[group] = max(found.inside_max[group], within)
        wanting = sum(groups[name] == group for name in asked if name in waiting or name in inside)
        found.occupancy.append((body.now_ms, group, within, wanting))

    waiting: set[str] = set()
    tell = body.tell

    def told(site: str, input: Any) -> None:
        if isinstance(input, Enter):
            asked[site] = body.now_ms
            waiting.add(site)
        elif isinstance(input, Exit):
            inside.discard(site)
            waiting.discard(site)
            if len(found.waits_ms[site]) < entries:
                body.at(body.now_ms + pause_ms, site, Enter())
        tell(site, input)
        if isinstance(input, Enter | Exit):
            note(groups[site])
        if body.sent > messages_max:
            raise Storm(body.sent)

    body.tell = told  # type: ignore[method-assign]
    body.perform = perform
    for name in groups:
        body.at(rng.uniform(0.0, pause_ms), name, Enter())
    body.run()
    found.messages = body.sent
    assert found.entries == entries * len(groups), f"{found.entries} entries"
    return found
