"""Worlds for group mutual exclusion: small groups whose members want to be inside a few times each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from weft.bodies.explorer.world import Choice, View, World
from weft.bodies.explorer.worlds import strange
from weft.bodies.explorer.worlds.exclusion_claims import STEPS, in_order, rules, unmeant
from weft.protocol import Effect
from weft.protocol.exclusion import Core, Enter, Entered, Exit, Member, Refuse
from weft.protocol.exclusion.member import INSIDE
from weft.protocol.published.two_groups import TwoGroups, TwoGroupsAsPublished
from weft.protocol.rivals.joung import Ra1, Ra2

OUT, WAITS, IN = "out", "waits", "in"
TOGETHER = "groups in conflict are never inside together"
UNASKED = "only who asked enters, and only once"
REFUSED = "no message is refused"

FORKS_SENT_MAX = 3
"""Messages for each request and competitor, on average over any run. The rules alone give 6 (see decision 010)."""

SAYS = "who is inside says so, and nobody else does"

Conflicts = frozenset[tuple[str, str]]


class Room(msgspec.Struct, frozen=True):
    """Who is out, waits or is in, and how many requests each has left; `fault` is what was wrong first."""

    members: tuple[tuple[str, str, int], ...]
    fault: str = ""

    def perform(self, site: str, effect: Effect) -> Room:
        """The room after an effect."""
        match effect:
            case Entered():
                asked = (site, WAITS) in {(name, phase) for name, phase, _ in self.members}
                return self.but(site, IN, fault=self.fault or ("" if asked else UNASKED))
            case Refuse():
                return self if self.fault else msgspec.structs.replace(self, fault=REFUSED)
        return self

    def choices(self) -> Iterator[Choice]:
        """Whoever is out may want to be in; whoever is in goes out."""
        for name, phase, left in self.members:
            if phase == OUT and left:
                yield Choice(name, Enter(), self.but(name, WAITS, left - 1))
            elif phase == IN:
                yield Choice(name, Exit(), self.but(name, OUT))

    def crash(self, site: str) -> Room:
        """Members do not crash (Decentral §5.2.1)."""
        raise AssertionError(f"{site} does not crash")

    def renamed(self, names: Mapping[str, str]) -> Room:
        """The room when some are called otherwise."""
        members = ((names.get(name, name), phase, left) for name, phase, left in self.members)
        return Room(tuple(sorted(members)), self.fault)

    def but(self, who: str, phase: str, left: int | None = None, fault: str | None = None) -> Room:
        """The room with one member elsewhere."""
        members = tuple(
            (name, phase, was_left if left is None else left) if name == who else (name, was, was_left)
            for name, was, was_left in self.members
        )
        return Room(members, self.fault if fault is None else fault)


def names(sizes: Iterable[int]) -> dict[str, str]:
    """Members with their groups: a1, a2 of a, b1 of b."""
    return {f"{group}{at}": group for group, size in zip("abcdef", sizes, strict=False) for at in range(1, size + 1)}


def quiet(view: View) -> bool:
    """Everyone has been inside as often as it wanted, and nothing is under way."""
    return not view.busy and all(phase == OUT for _, phase, _ in view.ground.members)


def says(view: View) -> bool:
    """Whether members say that they are inside where they are."""
    return all((view.machine(name).state == INSIDE) == (phase == IN) for name, phase, _ in view.ground.members)


def invariants(groups: Mapping[str, str], conflicts: Conflicts, refusals: bool) -> dict[str, Any]:
    """What holds in every state; what comes twice is refused."""

    def apart(view: View) -> bool:
        inside = {groups[name] for name, phase, _ in view.ground.members if phase == IN}
        return not any(one in inside and other in inside for one, other in conflicts)

    claims = {TOGETHER: apart, UNASKED: lambda view: view.ground.fault != UNASKED}
    return claims if refusals else {**claims, REFUSED: lambda view: view.ground.fault != REFUSED}


def world(
    sizes: tuple[int, ...],
    requests: tuple[int, ...] | int = 1,
    chain: bool = False,
    member: Any = Member,
    label: str = "",
    all_others: bool = False,
    sent_each: int | None = FORKS_SENT_MAX,
    alike: bool = False,
    unmeant_too: bool = False,
    **more: Any,
) -> World:
    """Groups of these sizes; each member wants to be inside so many times. All groups exclude one another, or as a
    chain only those side by side. A member knows its competitors, or `all_others` where its algorithm asks everyone.
    With `unmeant_too`, every member hears in every state what cannot be meant."""
    groups = names(sizes)
    counts = (requests,) * len(groups) if isinstance(requests, int) else requests
    letters = sorted(set(groups.values()))
    pairs = [(one, other) for at, one in enumerate(letters) for other in letters[at + 1 :]]
    conflicts = frozenset((one, other) for one, other in pairs if not chain or ord(other) - ord(one) == 1)

    def competitors(me: str, group: str) -> dict[str, str]:
        if all_others:
            return {name: other for name, other in groups.items() if name != me}
        both = {(one, other) for one, other in conflicts} | {(other, one) for one, other in conflicts}
        return {name: other for name, other in groups.items() if (group, other) in both}

    asked = sum(count * len(competitors(name, groups[name])) for name, count in zip(groups, counts, strict=True))
    kinds: dict[tuple[str, int], list[str]] = {}
    for name, count in zip(groups, counts, strict=True):
        kinds.setdefault((groups[name], count), []).append(name)
    each = f"x{requests}" if isinstance(requests, int) else "x" + "".join(map(str, requests))
    name = f"{'-'.join(map(str, sizes)) if chain else '+'.join(map(str, sizes))} {each}"
    if more.get("double"):
        name += ", a message twice"

    def machines() -> dict[str, Any]:
        return {name: member(name, group, competitors(name, group)) for name, group in groups.items()}

    claims = invariants(groups, conflicts, refusals=bool(more.get("double"))) | (rules(groups) if sent_each else {})
    if unmeant_too:
        claims |= {SAYS: says} | strange.refusing(machines, groups, unmeant, Refuse)
    if unmeant_too and not hasattr(member, "onward"):  # a core has several members, not one
        rivals = [(one, other) for one in groups for other in competitors(one, groups[one]) if one < other]
        claims |= in_order(rivals)
    return World(
        f"{label}{' ' if label else ''}{name}",
        machines,
        Room(tuple((name, OUT, count) for name, count in zip(groups, counts, strict=True))),
        (),
        claims,
        quiet,
        states_max=200_000_000,
        ends=True,
        sent_max=sent_each * asked if sent_each else None,
        steps=STEPS if sent_each else {},
        alike=tuple(tuple(names) for names in kinds.values() if len(names) > 1) if alike else (),
        **more,
    )


def published(collect: bool = True) -> tuple[World, ...]:
    """2-FGME as printed, in the smallest worlds that break it."""
    small: tuple[tuple[tuple[int, int], int], ...] = (
        ((1, 1), 1), ((1, 1), 2), ((1, 2), 1), ((2, 1), 1), ((1, 2), 2), ((2, 1), 2), ((2, 2), 1),
    )  # fmt: skip
    return tuple(world(sizes, count, member=TwoGroupsAsPublished, label="2-FGME", collect=collect, sent_each=None)
                 for sizes, count in small)  # fmt: skip


def corrected(member: Any = TwoGroups) -> tuple[World, ...]:
    """2-FGME with the two corrections."""
    small = (((1, 1), 2), ((1, 2), 1), ((2, 1), 1), ((1, 2), 2), ((2, 1), 2), ((2, 2), 1))
    return tuple(world(sizes, count, member=member, label="2-FGME corrected", sent_each=None) for sizes, count in small)


def brisk(member: Any = Member) -> tuple[World, ...]:
    """Worlds of forks that are seen through in seconds, which together see what the larger ones do."""
    small: tuple[tuple[tuple[int, ...], int, bool], ...] = (
        ((1, 1), 2, False), ((1, 2), 2, False), ((2, 1), 2, False), ((1, 1, 1), 1, False), ((2, 2), 1, False),
        ((1, 2, 1), 1, True), ((1, 1, 1), 2, False),
    )  # fmt: skip
    twice = (((1, 1), 2), ((1, 2), 1), ((2, 1), 1))
    return (
        *(world(sizes, count, chain, member, unmeant_too=len(sizes) == 2) for sizes, count, chain in small),
        *(world(sizes, count, member=member, double=1) for sizes, count in twice),
    )


def telling(member: Any = Member) -> tuple[World, ...]:
    """Worlds in which doors are opened, forks lent and called back; with `brisk` they see nearly every fault."""
    some: tuple[tuple[tuple[int, ...], Any], ...] = (
        ((2, 2), (1, 1, 2, 2)), ((2, 2), (2, 2, 1, 1)), ((2, 1, 1), 1), ((3, 1), (1, 1, 1, 2)),
        ((3, 1), (2, 1, 1, 2)), ((2, 2), 2),
    )  # fmt: skip
    return tuple(world(sizes, counts, member=member, alike=True) for sizes, counts in some)


def in_turn(core: Any = Core) -> tuple[World, ...]:
    """Chains of operators whose cores take the exclusion upstream, then downstream."""
    small: tuple[tuple[tuple[int, ...], int], ...] = (((1, 1, 1), 2), ((1, 2, 1), 1), ((2, 1, 1), 1), ((1, 1, 1, 1), 1))
    return tuple(
        world(sizes, count, chain=True, member=core, label="in turn", unmeant_too=True) for sizes, count in small
    )


def worlds(as_published: bool = False, long: bool = False) -> tuple[World, ...]:
    """The worlds of exclusion: 2-FGME as published, or 2-FGME corrected, rivals and the forks in use."""
    if as_published:
        return published()
    rivals = tuple(
        world(sizes, 1, member=member, label=member.__name__.upper(), all_others=True, sent_each=None)
        for member in (Ra1, Ra2) for sizes in ((1, 1), (1, 2), (2, 1))
    )  # fmt: skip
    usual = (
        *brisk(), world((2, 2), 2), world((1, 3), 2), world((3, 1), 2), world((2, 1, 1), 1),
        world((1, 2, 1), (2, 1, 1, 2), chain=True), *in_turn(), *corrected(), *rivals,
    )  # fmt: skip
    if not long:
        return usual
    return (
        *usual, world((3, 2), 1), world((2, 3), (2, 1, 1, 1, 1), alike=True), world((2, 1, 1), 2, alike=True),
        world((2, 2), 3, alike=True),
        world((2, 2, 1), 1), world((1, 1, 1, 1), 1), world((1, 2, 1), 2, chain=True),
        world((1, 1, 1, 1), 2, chain=True, member=Core, label="in turn"),
        *(
            world(sizes, counts, member=TwoGroups, label="2-FGME corrected", sent_each=None)
            for sizes, counts in (((2, 2), (2, 1, 1, 1)), ((1, 3), 2), ((3, 1), 2), ((2, 2), (2, 2, 1, 1)))
        ),
    )  # fmt: skip


def crowds() -> tuple[World, ...]:
    """Worlds too large to be explored whole, to be wandered through; messages come twice now and then."""
    return (
        world((4, 4), 4, double=4), world((3, 3, 3), 3, double=4), world((2, 3, 2, 3), 3, chain=True, double=4),
        world((2, 2, 2, 2), 3, chain=True, member=Core, label="in turn", double=4),
    )  # fmt: skip
