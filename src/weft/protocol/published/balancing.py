"""The negotiation as published (Neighbor, Listings 1-10), for the explorer to break; `repaired` names what is mended.

Only what the text leaves open is filled in: an operator at an end has no neighbour there, and a transfer to a child
goes to the one its input comes from. A site negotiates from its first request until it has dealt with all replies.
"""

from __future__ import annotations

from typing import Any

from weft.protocol.balancing.loads import BalanceLimits
from weft.protocol.balancing.selection import Selection, Streams
from weft.protocol.balancing.words import Check, Part, Start
from weft.protocol.machine import Effect, Machine, Received, Row, Send, Step
from weft.protocol.words import Message

SELECTION = "selection"
OVERLAPS = "overlaps"
REPLIES = "replies"
IDLE, OFFERING, DEMANDING = "idle", "offering", "demanding"
STATES = (IDLE, OFFERING, DEMANDING)
OFFER, OFFER_REPLY, OFFER_TRANSFER = "opOfferRequest", "opOfferReply", "opOfferTransferRequest"
OFFER_DONE, CLEAR = "opOfferTransferReply", "Clear"
DEMAND, DEMAND_REPLY, DEMAND_TRANSFER = "opDemandRequest", "opDemandReply", "opDemandTransferRequest"


class Letter(Message, frozen=True):
    """The one kind of message there is (Table 2)."""

    kind: str
    transfers: tuple[tuple[Part, ...], ...] = ()
    urgent: bool = False
    size: int = 0


class Drop(Effect, frozen=True):
    """Run operators no more, and pass their streams on."""

    operators: tuple[str, ...]


class Negotiation(Row, array_like=True):
    """What a site is about, the replies it has, and what it wants to be rid of."""

    state: str = IDLE
    replies: tuple[tuple[bool, str, tuple[tuple[Part, ...], ...]], ...] = ()
    excess: int = 0


class BalancerAsPublished(Machine):
    """One site; a single resource counts."""

    __slots__ = ("below", "gone", "here", "marks", "parent", "peers", "repaired", "selection")

    ROW = Negotiation

    def __init__(
        self,
        name: str,
        parent: str,
        children: tuple[str, ...],
        streams: Streams,
        here: dict[str, int],
        below: dict[str, str],
        limits: BalanceLimits,
        repaired: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(name)
        self.parent, self.peers = parent, (*((parent,) if parent else ()), *children)
        self.selection = Selection(streams, parent)
        self.marks = limits.thresholds()
        self.here, self.below, self.repaired = here, below, repaired
        self.gone: list[tuple[str, tuple[str, ...]]] = []
        self.rows = {name: Negotiation()}

    def key(self, input: Any) -> str:
        """There is one row."""
        return self.name

    def extra(self) -> Any:
        """What the site runs, what lies below it, and which transfers it has promised."""
        return self.here, self.below, sorted(self.gone)

    def set_extra(self, extra: Any) -> None:
        """Takes it back."""
        self.here, self.below = dict(extra[0]), dict(extra[1])
        self.gone = [(peer, tuple(names)) for peer, names in extra[2]]

    def used(self) -> int:
        """Mem_av."""
        return sum(self.here.values())

    def transfers(self, peer: str) -> list[tuple[Part, ...]]:
        """Transfers to a neighbour that were not promised yet (Listings 1 and 2)."""
        if SELECTION in self.repaired:
            sets = self.selection.transfers(peer, self.here, self.below)
        else:
            sets = sorted({one for operator in self.here if (one := self.together(operator, peer))})
        fresh = [one for one in sets if (peer, one) not in self.gone and set(one) <= set(self.here)]
        return [tuple(Part(operator, (self.here[operator],)) for operator in one) for one in fresh]

    def together(self, operator: str, peer: str) -> tuple[str, ...]:
        """Listing 1: the search starts at the neighbour of an operator, and so passes over it."""
        selection = self.selection
        if operator in selection.pinned:
            return ()
        along = selection.readers if peer == self.parent else selection.inputs
        if peer != self.parent and len(selection.inputs[operator]) != 1:
            return ()
        found, at = [operator], next(iter(along[operator]), "")
        while at and (then := next(iter(along[at]), "")) in self.here:
            found.append(then)
            at = then
        if peer != self.parent and self.feeds(operator) != peer:
            return ()
        return () if selection.pinned & set(found) else tuple(sorted(found))

    def feeds(self, operator: str) -> str:
        """The child that the first input from elsewhere comes from."""
        at = operator
        while (at := next(iter(self.selection.inputs[at]), "")) in self.here:
            pass
        return self.below.get(at, "")

    def on_check(self, key: str, row: Negotiation, input: Check) -> list[Effect]:
        """Listing 3."""
        self.here.update((part.operator, part.loads[0]) for part in input.loads)
        used, target = self.used(), self.marks.target[0]
        if row.state != IDLE or not self.peers:
            return []
        if used > self.marks.high[0]:
            row.state, row.excess = OFFERING, used - target
            fit = {peer: [one for one in self.transfers(peer) if size(one) <= row.excess] for peer in self.peers}
            return [Send(peer, Letter(OFFER, tuple(transfers))) for peer, transfers in fit.items()]
        if used < self.marks.low[0]:
            row.state = DEMANDING
            return [Send(peer, Letter(DEMAND, size=target - used)) for peer in self.peers]
        return []

    def on_letter(self, key: str, row: Negotiation, input: Received) -> list[Effect]:
        """Each kind has its listing; requests that come while negotiating are ignored."""
        letter: Any = input.message
        peer = input.sender
        if letter.kind in (OFFER, DEMAND) and row.state != IDLE:
            reply = Letter(OFFER_REPLY if letter.kind == OFFER else DEMAND_REPLY)
            return [Send(peer, reply)] if REPLIES in self.repaired else []
        match letter.kind:
            case "opOfferRequest":
                return [Send(peer, self.consider(letter))]
            case "opDemandRequest":
                return [Send(peer, self.lend(peer, letter))]
            case "opOfferReply" | "opDemandReply":
                return self.collect(row, peer, letter)
            case "opOfferTransferRequest":
                return [self.load(peer, letter.transfers), Send(peer, Letter(OFFER_DONE, letter.transfers))]
            case "opOfferTransferReply" | "opDemandTransferRequest":
                return self.unload(peer, letter.transfers)
        return []

    def consider(self, letter: Letter) -> Letter:
        """Listing 4: nothing is reserved."""
        if self.used() > self.marks.high[0]:
            return Letter(OFFER_REPLY)
        picked = self.chosen(letter.transfers, self.marks.most[0] - self.used())
        return Letter(OFFER_REPLY, tuple(picked), self.used() <= self.marks.low[0])

    def lend(self, peer: str, letter: Letter) -> Letter:
        """Listing 8: nothing is locked, and all that fits alone is promised."""
        target = min(self.used() - self.marks.target[0], letter.size)
        fit = [one for one in self.transfers(peer) if size(one) <= target]
        if OVERLAPS in self.repaired:
            fit = self.chosen(fit, target)
        return Letter(DEMAND_REPLY, tuple(fit), self.used() >= self.marks.high[0], sum(map(size, fit)))

    def chosen(self, transfers: Any, room: int) -> list[tuple[Part, ...]]:
        """Transfers that fit together; those that share an operator are dropped only where that is repaired."""
        picked: list[tuple[Part, ...]] = []
        for one in transfers:
            shared = any(part in other for part in one for other in picked)
            if sum(map(size, picked)) + size(one) <= room and not (shared and OVERLAPS in self.repaired):
                picked.append(one)
        return picked

    def collect(self, row: Negotiation, peer: str, letter: Letter) -> list[Effect]:
        """Listings 5 and 9, when all replies are in; urgent ones first."""
        row.replies = tuple(sorted((*row.replies, (not letter.urgent, peer, letter.transfers))))
        if len(row.replies) < len(self.peers):
            return []
        offering = row.state == OFFERING
        room = row.excess if offering else self.marks.target[0] - self.used()
        kind = OFFER_TRANSFER if offering else DEMAND_TRANSFER
        effects: list[Effect] = []
        seen: set[str] = set()
        for _, to, transfers in row.replies:
            agreed: list[tuple[Part, ...]] = []
            for one in transfers:
                names = {part.operator for part in one}
                # Line 8 looks into a list that line 14 alone shortens: what came or went meanwhile is not seen.
                gone = (to, tuple(sorted(names))) in self.gone
                if gone or size(one) > room or (seen & names and OVERLAPS in self.repaired):
                    continue
                room -= size(one)
                seen |= names
                agreed.append(one)
                if offering:
                    # Line 14 removes this transfer, and leaves those that share an operator with it.
                    self.gone.append((to, tuple(sorted(names))))
            effects += [self.load(to, tuple(agreed))] if agreed and not offering else []
            effects.append(Send(to, Letter(kind, tuple(agreed)) if agreed else Letter(CLEAR)))
        row.state, row.replies, row.excess = IDLE, (), 0
        return effects

    def load(self, peer: str, transfers: tuple[tuple[Part, ...], ...]) -> Effect:
        """Runs operators at once, though their giver still does (Listings 6 and 9)."""
        for one in transfers:
            for part in one:
                self.here[part.operator] = part.loads[0]
                self.below.pop(part.operator, None)
        names = tuple(part.operator for one in transfers for part in one)
        return Start(names, peer)

    def unload(self, peer: str, transfers: tuple[tuple[Part, ...], ...]) -> list[Effect]:
        """Listings 7 and 10."""
        names = tuple(part.operator for one in transfers for part in one)
        for operator in names:
            if self.here.pop(operator, None) is not None and peer != self.parent:
                self.below[operator] = peer
        self.gone = [(to, held) for to, held in self.gone if not set(held) & set(names)]
        return [Drop(names)]


def size(transfer: tuple[Part, ...]) -> int:
    """totalOpMem."""
    return sum(part.loads[0] for part in transfer)


BalancerAsPublished.STEPS = {
    **{(state, Check): Step(BalancerAsPublished.on_check, (state, OFFERING, DEMANDING)) for state in STATES},
    **{(state, Letter): Step(BalancerAsPublished.on_letter, (state, IDLE)) for state in STATES},
}
