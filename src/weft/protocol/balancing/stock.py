"""What a balancing site has, what it has kept room for, and which of its operators may go where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from weft.protocol.balancing.loads import Amounts, BalanceLimits, each, fits, minus, plus, total
from weft.protocol.balancing.memory import Memory
from weft.protocol.balancing.selection import Selection, Streams
from weft.protocol.balancing.words import Part, Remember, Transfer
from weft.protocol.machine import Machine, Row

IDLE, OFFERED, DEMANDED, ACCEPTED, PROMISED = "idle", "offered", "demanded", "accepted", "promised"
HELD, LENT, TAKING, STOPPING, GIVING = "held", "lent", "taking", "stopping", "giving"
STATES = (IDLE, OFFERED, DEMANDED, ACCEPTED, PROMISED, HELD, LENT, TAKING, STOPPING, GIVING)


class Neighbour(Row, array_like=True):
    """How it stands with a neighbour: `mine` where this site began; `transfers` are offered, kept or under way."""

    state: str = IDLE
    mine: bool = False
    number: int = 0
    transfers: tuple[Transfer, ...] = ()
    urgent: bool = False
    serial: int = 0
    heard: int = 0
    reason: str = ""

    def parts(self) -> Transfer:
        """All operators of its transfers."""
        return tuple(part for transfer in self.transfers for part in transfer)

    def begin(self, state: str, number: int, transfers: Iterable[Transfer], reason: str = "") -> None:
        """Something is under way; it is this site's own doing where it offers or asks."""
        self.state, self.number, self.transfers = state, number, tuple(transfers)
        self.mine, self.reason = state in (OFFERED, DEMANDED), reason

    def rest(self) -> None:
        """Nothing is under way any more."""
        self.state, self.mine, self.number, self.transfers = IDLE, False, 0, ()
        self.urgent, self.serial, self.reason = False, 0, ""


class Stock(Machine):
    """The standing of one site; `memory` is what it starts with, or what an earlier life of it wrote down.

    `looked` says whether the loads in the memory are those of now; where they are not, it waits for the first look.
    """

    __slots__ = ("limits", "looked", "marks", "memory", "none", "peers", "selection", "streams")

    ROW = Neighbour

    def __init__(
        self,
        name: str,
        parent: str,
        children: tuple[str, ...],
        streams: Streams,
        memory: Memory,
        limits: BalanceLimits | None = None,
        looked: bool = True,
    ) -> None:
        super().__init__(name)
        self.peers = (*((parent,) if parent else ()), *children)
        self.streams = streams
        self.selection = Selection(streams, parent)
        self.limits = limits or BalanceLimits()
        self.marks = self.limits.thresholds()
        self.none = (0,) * len(self.limits.capacity)
        self.memory, self.looked = memory, looked
        self.rows = {peer: Neighbour() for peer in (name, *self.peers)}
        for peer, giving in memory.giving.items():
            row = self.rows[peer] = Neighbour(GIVING, False, giving.number, (giving.operators,))
            row.serial, row.reason = giving.serial, giving.reason

    def extra(self) -> tuple[Memory, bool]:
        """What is written down, and whether it has looked."""
        return self.memory, self.looked

    def set_extra(self, extra: Any) -> None:
        """Takes it back."""
        self.memory, self.looked = msgspec.convert(extra, tuple[Memory, bool])

    def remember(
        self, verb: str, peer: str, serial: int, number: int = 0, parts: Transfer = (), reason: str = ""
    ) -> Remember:
        """Writes down what became of a handover, and why it was made."""
        return self.write(Remember(self.memory.count, verb, peer, serial, number, parts, reason))

    def count(self) -> Remember:
        """Writes down that the next number is used."""
        return self.write(Remember(self.memory.count + 1))

    def write(self, what: Remember) -> Remember:
        """Takes on what is written down."""
        self.memory = self.memory.after(what, self.selection.parent)
        return what

    def last(self, peer: str) -> int:
        """The last handover of a neighbour that was answered."""
        return self.memory.answers[peer].serial if peer in self.memory.answers else 0

    def used(self) -> Amounts:
        """What the operators take that are here."""
        return total(self.now(self.memory.here), self.none)

    def now(self, operators: Iterable[str]) -> Transfer:
        """Operators that are here, with their loads as they are now."""
        return tuple(Part(operator, self.memory.here[operator]) for operator in operators)

    def within(self, *states: str) -> list[Part]:
        """The operators of all negotiations in some states."""
        return [part for peer in self.peers if self.rows[peer].state in states for part in self.rows[peer].parts()]

    def committed(self) -> Amounts:
        """What the site takes with all it has kept room for, and with what it hands over, which may come back."""
        return total(self.within(HELD, TAKING, GIVING), self.used())

    def negotiates(self) -> bool:
        """Whether a negotiation of its own is under way."""
        return any(self.rows[peer].mine for peer in self.peers)

    def free(self) -> list[str]:
        """Neighbours with whom nothing is under way."""
        return [peer for peer in self.peers if self.rows[peer].state == IDLE]

    def can_answer(self, row: Neighbour) -> bool:
        """Whether it may enter into what a neighbour begins."""
        return row.state == IDLE and self.looked and not self.negotiates()

    def overloaded(self) -> bool:
        """Whether any resource is above its highest mark."""
        return not fits(self.used(), self.marks.high)

    def underloaded(self) -> bool:
        """Whether every resource is below its lowest mark, with all that it has kept room for."""
        return all(a < b for a, b in each(self.committed(), self.marks.low))

    def size(self, transfer: Transfer) -> Amounts:
        """What a transfer takes."""
        return total(transfer, self.none)

    def spare(self, marks: Amounts) -> Amounts:
        """How much may leave: nothing above its mark falls below the target, the rest may fall as far as it likes.

        Where nothing is above its mark, nothing may leave.
        """
        used = minus(self.used(), total(self.within(LENT, STOPPING), self.none))
        if fits(used, marks):
            return self.none
        marked = each(used, self.marks.target, marks)
        return tuple(load - target if load > mark else load for load, target, mark in marked)

    def leaving(self, peer: str, marks: Amounts) -> list[Transfer]:
        """Transfers to a neighbour that fit what may leave and take something of what is above its mark, the greatest
        first."""
        spare = self.spare(marks)
        above = tuple(load > mark for load, mark in each(self.used(), marks))
        locked = {part.operator for part in self.within(LENT, STOPPING)}
        sets = self.selection.transfers(peer, self.memory.here, self.memory.below)
        made = [self.now(one) for one in sets if not locked & set(one)]
        sizes = {one: self.size(one) for one in made}
        light = [one for one, size in sizes.items() if fits(size, spare)]
        good = [one for one in light if any(load and over for load, over in each(sizes[one], above))]
        return sorted(good, key=lambda one: (*(-load for load in sizes[one]), [part.operator for part in one]))

    def chosen(self, transfers: Iterable[Transfer], *rooms: Amounts) -> list[int]:
        """Places of transfers that share no operator and together fit every room, the first ones first."""
        picked: list[int] = []
        taken: set[str] = set()
        load = self.none
        for place, transfer in enumerate(transfers):
            names = {part.operator for part in transfer}
            more = plus(load, self.size(transfer))
            if not names & taken and all(fits(more, room) for room in rooms):
                picked.append(place)
                taken |= names
                load = more
        return picked

    def standing(self, mark: str, share: int) -> str:
        """Why a negotiation began, as text."""
        greatest = max(100 * a / b for a, b in each(self.used(), self.limits.capacity))
        return f"{self.name} was at {greatest:.0f} %, {mark} {share / 10:g} %"
