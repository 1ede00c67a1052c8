"""What a desk tells the balancers of a tree to begin with, and what each of them says of itself since.

Balancers know where operators are by what they hand over. A desk moves operators for others, too, and queries come
and go: then what balancers believe is wrong, and the desk begins a new *era*. A site balances by what it is told of the
greatest era that it has heard of, and balancers of two eras never hear one another.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from weft.protocol.balancing.loads import BalanceLimits
from weft.protocol.balancing.memory import Memory
from weft.protocol.balancing.selection import Streams
from weft.protocol.balancing.words import PARTS_MAX, Amount, Name, Number, Reason, Transfer
from weft.protocol.words import Message

Positive = Annotated[float, msgspec.Meta(gt=0)]


class Declared(msgspec.Struct, frozen=True, array_like=True):
    """What a file says of an operator: the mean work per record, None where it says nothing, and its state."""

    cost_ms: float | None = None
    state_kb: float = 0.0


class BalanceFrom(Message, frozen=True):
    """Balance from here on: the neighbours of a site, what is where and may move, its marks, and how often it looks."""

    era: Number
    parent: Annotated[str, msgspec.Meta(max_length=500)]
    children: tuple[Name, ...]
    streams: Streams
    memory: Memory
    limits: BalanceLimits
    resources: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=8)]
    operators: dict[Name, Declared]
    period_s: Positive


class Agreed(msgspec.Struct, frozen=True, array_like=True):
    """A handover that a balancer has taken in an era: who gave, by which number of its own, what, and why."""

    giver: Name
    serial: Number
    operators: Transfer
    reason: Reason = ""


class BalanceNow(msgspec.Struct, frozen=True, array_like=True):
    """How a balancer stands: its era, what it took in it that is still there, and what all took at its last look."""

    era: Number
    took: Annotated[tuple[Agreed, ...], msgspec.Meta(max_length=PARTS_MAX)] = ()
    looked: tuple[Amount, ...] = ()
