"""Arithmetic on loads, resource by resource, and the thresholds of a site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from weft.protocol.balancing.words import Part

Amounts = tuple[int, ...]
PER_MILLE = 1_000


def each(*amounts: Amounts) -> Iterator[tuple[int, ...]]:
    """Resource by resource."""
    return zip(*amounts, strict=True)


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Both together."""
    return tuple(a + b for a, b in each(one, other))


def minus(one: Amounts, other: Amounts) -> Amounts:
    """What one has more than the other; below 0 where it has less."""
    return tuple(a - b for a, b in each(one, other))


def fits(one: Amounts, room: Amounts) -> bool:
    """Whether no resource takes more than there is room for."""
    return all(a <= b for a, b in each(one, room))


def total(parts: Iterable[Part], none: Amounts) -> Amounts:
    """What operators take together; `none` is what no operator takes."""
    for part in parts:
        none = plus(none, part.loads)
    return none


class Thresholds(NamedTuple):
    """The marks of a site in units of load, one per resource (Neighbor §3.3: Lt, Tt, Ut, and up to where it takes)."""

    low: Amounts
    target: Amounts
    high: Amounts
    most: Amounts


class BalanceLimits(msgspec.Struct, frozen=True):
    """A site's capacity for each resource that counts, its marks in thousandths of it, and how long a site waits.

    Room is kept longer than the other side can take to ask for it: for its answers, and to stop what it gives.
    """

    capacity: Amounts = (100,)
    low: int = 400
    target: int = 500
    high: int = 600
    margin: int = 10
    reply_ms_max: int = 2_000
    keep_ms_max: int = 30_000
    stop_ms_max: int = 20_000
    answer_ms_max: int = 5_000

    def thresholds(self) -> Thresholds:
        """The marks in units of load; a site takes up to a margin below the highest (Listing 4, line 5)."""
        marks = (self.low, self.target, self.high, self.high - self.margin)
        return Thresholds(*(tuple(mark * one // PER_MILLE for one in self.capacity) for mark in marks))
