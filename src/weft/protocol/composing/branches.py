"""One branch of a search: sites asked for a piece, group after group, until one can or nobody is left."""

from __future__ import annotations

from collections.abc import Iterable, Set

import msgspec
from msgspec import field

from weft.plan.composing.points import Network, nearest, probed, readers, results, stages
from weft.plan.composing.values import LATENCY, SILENCE, Broken, Graph, Piece
from weft.protocol.composing.words import Answer, Probe, Quest
from weft.protocol.words import Effect, Send

BROKEN_FEW = 4
"""How many reasons are told on: the least."""
_RANK = {LATENCY: 0, SILENCE: 2}


class Branch(msgspec.Struct, array_like=True):
    """What was asked and found for a piece that reads `before`."""

    piece: str
    before: str
    start: str
    groups: tuple[tuple[str, ...], ...]
    group: int = 0
    pending: list[str] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    touched: list[tuple[str, str]] = field(default_factory=list)
    tight: bool = False

    def ask(self, quest: Quest, so_far_us: int, round: int) -> list[Effect]:
        """Asks the next group; nothing where there is none left."""
        if self.group >= len(self.groups):
            return []
        self.pending = list(self.groups[self.group])
        self.group += 1
        probe = Probe(quest, self.piece, self.before, self.start, so_far_us, round)
        return [Send(site, probe) for site in self.pending]

    def hear(self, site: str, answer: Answer) -> None:
        """Takes an answer."""
        self.pending.remove(site)
        self.graphs += answer.graphs
        if answer.broken:
            self.broken = least_broken((*self.broken, *answer.broken))
        self.touched += answer.touched
        self.tight = self.tight or answer.tight

    def give_up(self) -> None:
        """Who has not answered will not."""
        self.broken = least_broken((*self.broken, *(Broken(SILENCE, site, self.piece) for site in self.pending)))
        self.touched += [(site, self.piece) for site in self.pending]
        self.pending, self.group = [], len(self.groups)

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return not self.pending and (bool(self.graphs) or self.group >= len(self.groups))


def least_broken(found: Iterable[Broken]) -> list[Broken]:
    """The reasons that came nearest to none: a promise says more than silence, and the least miss of it the most."""
    reasons = dict.fromkeys(found)
    return sorted(reasons, key=_telling)[:BROKEN_FEW] if len(reasons) > 1 else list(reasons)


def _telling(one: Broken) -> tuple[int, int, str, str]:
    return _RANK.get(one.what, 1), one.by, one.site, one.piece


def piece_of(quest: Quest, name: str) -> Piece | None:
    """A piece of a quest."""
    for one in quest.plan.pieces:
        if one.name == name:
            return one
    return None


def branch_to(quest: Quest, piece: Piece, before: str, start: str, network: Network, shared: Set[str]) -> Branch:
    """The branch to a piece that reads a stream at a site; `shared` are the names of those that are there already."""
    hosts = {one.does: one.sites for one in quest.hosts}
    further = readers(quest.plan, piece.name, quest.takes, shared)
    # Where streams meet, all who come there must ask the same sites: those nearest to where results go.
    here = results(quest.plan)[0].site or start if piece.name in quest.joins else start
    groups = stages(piece, further, hosts, quest.others, here, network, quest.ratio, quest.least)
    if quest.dry:  # the nearest promise is that of the best of all, so nobody is asked only after others
        groups = (tuple(site for group in groups for site in group),)
    return Branch(piece.name, before, start, groups)


def branch_on(quest: Quest, piece: str, network: Network, to: str) -> Branch:
    """The branch to those who make a stream that is shared; those nearest to where results go come first."""
    sites = dict.fromkeys(one.site for name, one in quest.shared if name == piece)
    count = probed(len(sites), quest.ratio, quest.least)
    chosen = nearest(sites, to, network, count) if to else tuple(sorted(sites))[:count]
    return Branch(piece, "", "", (chosen,))


def branches_from(quest: Quest, piece: str, here: str, network: Network) -> list[Branch]:
    """A branch to each that reads a piece's stream."""
    shared = shared_names(quest)
    found = readers(quest.plan, piece, quest.takes, shared)
    return [branch_to(quest, one, piece, here, network, shared) for one in found]


def shared_names(quest: Quest) -> frozenset[str]:
    """The pieces whose streams are there already."""
    return frozenset(name for name, _ in quest.shared)
