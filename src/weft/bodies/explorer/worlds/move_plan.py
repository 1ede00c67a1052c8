"""What a small world computes: a chain of two operators with a sink each, and one more, cut into pieces by placement.

src -> 1 -> (s1) -> 2      each operator has a sink: k1, k2, k3; s1 is a channel where 1 and 2 run apart
src3 -> 3                  s0 is a channel beside s1 or src3 that never holds anything: it is drained at any time
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from weft.protocol.moving import End, Start
from weft.protocol.words import Parcel

CHANNEL, SIDE = "s1", "s0"
NOWHERE = "-"
TAKEN_OVER = "!"

Sites = tuple[tuple[str, str], ...]


class Piece(NamedTuple):
    """A fragment of one plan."""

    site: str
    operators: str
    reads: str
    writes: tuple[str, ...]

    @property
    def task(self) -> Parcel:
        """What a site is told of it."""
        return Parcel("|".join((*self[:3], *self.writes)))


def piece_of(task: Parcel) -> Piece:
    """The piece that a site was told of."""
    site, operators, reads, *writes = task.text.split("|")
    return Piece(site, operators, reads, tuple(writes))


class MoveCase:
    """One small world: how it begins, how many records sources hold, and what the changes ask for."""

    def __init__(
        self,
        sites: str,
        *changes: str,
        stateful: bool = False,
        records: int = 2,
        impossible: tuple[int, ...] = (),
        refused: tuple[int, ...] = (),
        expected: Mapping[int, bool] | None = None,
        soft: bool = False,
        may_drain: bool = False,
        early: bool = False,
        side: bool = False,
        beside: bool = False,
        outdated: bool = False,
    ) -> None:
        self.sites = _placed(sites)
        self.changes = {number: _placed(change) for number, change in enumerate(changes, 1)}
        self.taken_over = frozenset(number for number, change in enumerate(changes, 1) if TAKEN_OVER in change)
        self.stateful = stateful
        self.faults = (0, 0, 0)
        self.records = records
        self.impossible, self.refused, self.soft, self.may_drain = impossible, refused, soft, may_drain
        self.early, self.outdated = early, outdated
        self.drains = {CHANNEL: (CHANNEL, SIDE) if side else (CHANNEL,), "src3": (SIDE,) if beside else ()}
        never = (*impossible, *refused)
        self.expected = {number: number not in never for number in self.changes} if expected is None else expected

    def after(self, sites: Sites, number: int) -> Sites:
        """The placement with a change applied to it."""
        after = {**dict(sites), **dict(self.changes[number])}
        return tuple(sorted((operator, site) for operator, site in after.items() if site != NOWHERE))

    @cache  # noqa: B019 a case lives as long as its world
    def cut(self, sites: Sites) -> dict[str, Piece]:
        """The pieces of a placement, upstream first; a piece with the stateful operator is named by it."""
        homes = dict(sites)
        pieces: dict[str, Piece] = {}
        if "2" in homes and homes["1"] == homes["2"]:
            pieces["f2" if self.stateful else "f1"] = Piece(homes["1"], "12", "src", ("k1", "k2"))
        elif "2" in homes:
            pieces["f1"] = Piece(homes["1"], "1", "src", ("k1", CHANNEL))
            pieces["f2"] = Piece(homes["2"], "2", CHANNEL, ("k2",))
        elif "1" in homes:
            pieces["f1"] = Piece(homes["1"], "1", "src", ("k1",))
        if "3" in homes:
            pieces["g3"] = Piece(homes["3"], "3", "src3", ("k3",))
        return pieces

    def change(self, sites: Sites, number: int) -> tuple[tuple[End, ...], tuple[Start, ...], tuple[str, ...]]:
        """What a change ends and starts, and what of it is lost."""
        old, new = self.cut(sites), self.cut(self.after(sites, number))
        written = {stream for piece in new.values() for stream in piece.writes}
        ends = tuple(
            End(name, piece.site, () if piece.reads in written else self.drains.get(piece.reads, ()))
            for name, piece in old.items()
            if new.get(name) != piece
        )
        starts = tuple(Start(name, piece.site, piece.task) for name, piece in new.items() if old.get(name) != piece)
        if number not in self.taken_over:
            return ends, starts, ()
        lost = tuple(sorted(end.fragment for end in ends))
        assert lost == tuple(sorted(start.fragment for start in starts)), "what is lost stays cut as it was"
        return (), starts, lost


def _placed(text: str) -> Sites:
    """`1a 2b` as a placement; `3-` takes an operator away, `1!b` takes it over from a site that is gone."""
    return tuple(sorted((word[0], word[-1]) for word in text.split()))
