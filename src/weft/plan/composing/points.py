"""What of a query is asked of others, and of which sites? (Synergy §2.3.2 and §2.3.3)"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Protocol

from weft.plan.composing.values import Piece, QueryPlan


class Network(Protocol):
    """What sites know of the ways between them: delays as measured, and how much one may carry in all."""

    def delay_us(self, start: str, end: str) -> int:
        """How long a record is under way."""

    def kbps(self, start: str, end: str) -> int:
        """What the way carries at most."""


def sharable(plan: QueryPlan, offered: Container[str]) -> tuple[str, ...]:
    """The maximum sharable points: breadth first from the results back to the nearest streams that exist."""
    pieces = {piece.name: piece for piece in plan.pieces}
    shared: list[str] = []
    seen: set[str] = set()
    layer = [piece.name for piece in results(plan)]
    while layer:
        before: list[str] = []
        for name in layer:
            for above in pieces[name].inputs:
                piece = pieces.get(above)
                if piece is None or above in seen:
                    continue
                seen.add(above)
                (shared if piece.stream and piece.stream in offered else before).append(above)
        layer = before
    return tuple(shared)


def results(plan: QueryPlan) -> list[Piece]:
    """The pieces that nobody reads."""
    read = {name for piece in plan.pieces for name in piece.inputs}
    return [piece for piece in plan.pieces if piece.name not in read]


def needed(plan: QueryPlan, shared: Container[str]) -> tuple[str, ...]:
    """The pieces that take part: those behind the results, down to what is shared, that included."""
    wanted = {piece.name for piece in results(plan)}
    for piece in reversed(plan.pieces):
        if piece.name in wanted and piece.name not in shared:
            wanted |= {*piece.inputs}
    return tuple(piece.name for piece in plan.pieces if piece.name in wanted)


def readers(plan: QueryPlan, name: str, among: Container[str], shared: Container[str]) -> list[Piece]:
    """Who reads a piece's stream, of those that take part."""
    return [one for one in plan.pieces if name in one.inputs and one.name in among and one.name not in shared]


def joins(plan: QueryPlan) -> frozenset[str]:
    """The pieces on whose sites several ways must agree."""
    read: dict[str, int] = {}
    for piece in plan.pieces:
        for name in piece.inputs:
            read[name] = read.get(name, 0) + 1
    if all(len(piece.inputs) == 1 for piece in plan.pieces) and max(read.values(), default=0) <= 1:
        return frozenset()
    return frozenset(piece.name for piece in plan.pieces if len(piece.inputs) > 1)


def nearest(sites: Iterable[str], here: str, network: Network, count: int) -> tuple[str, ...]:
    """Those that are reached soonest."""
    return tuple(sorted(sites, key=lambda site: (network.delay_us(here, site), site))[:count])


def probed(candidates: int, ratio: int, least: int) -> int:
    """How many of so many candidates are asked: the probing ratio, in thousandths, but at least a few."""
    return max(least, -(-candidates * ratio // 1_000))


def stages(
    piece: Piece, further: Iterable[Piece], hosts: Mapping[str, tuple[str, ...]], others: tuple[str, ...], here: str,
    network: Network, ratio: int, least: int,
) -> tuple[tuple[str, ...], ...]:  # fmt: skip
    """Sites to ask for a piece, one group after another as long as nobody can: who has it; then a new one (§2.3.2).

    A new one goes beside what it reads where it makes less of it (selectivity of at most 1), else beside who reads it,
    then the other way round; then elsewhere.
    """
    if piece.site:
        return ((piece.site,),)
    have = hosts.get(piece.does, ())
    downs: list[str] = []
    for one in further:
        downs += [one.site] if one.site else hosts.get(one.does, ())
    down = nearest(dict.fromkeys(downs), here, network, probed(len(downs), ratio, least))
    beside = ((here,), down) if piece.selectivity <= 1_000 else (down, (here,))
    groups = (nearest(have, here, network, probed(len(have), ratio, least)), *beside, others)
    asked: set[str] = set()
    found = []
    for group in groups:
        new = tuple(site for site in group if site not in asked)
        asked |= {*new}
        if new:
            found.append(new)
    return tuple(found)
