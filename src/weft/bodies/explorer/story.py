"""The way to a state, told as a story."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from weft.bodies.explorer import kernel
from weft.bodies.explorer.alphabet import Alphabet, Offer
from weft.bodies.explorer.values import CrashedAfter
from weft.protocol import Effect, Input
from weft.protocol import story_line as line


class Told(NamedTuple):
    """One step: who took it, what came in, what was done; and why that is illegal, where it is."""

    site: str
    input: Input
    effects: tuple[Effect, ...]
    illegal: str = ""


def steps(alphabet: Alphabet, row: Any) -> Iterator[tuple[Told, Any]]:
    """Every step from a row, and the row after it."""
    alphabet.offers_for(row)
    busy = bool(alphabet.busy[row].any())
    for place in range(row.size):
        for at, offer in enumerate(alphabet.offers_of.get(int(row[place]), ())):
            how, after, cuts = alphabet.take(row, place, at, busy)
            if how != kernel.FORBIDDEN:
                yield as_told(alphabet, offer, row), after
            for cut in range(cuts):
                how, after, _ = alphabet.take(row, place, at, busy, cut)
                if how != kernel.FORBIDDEN:
                    yield as_told(alphabet, offer, row, cut), after


def as_told(alphabet: Alphabet, offer: Offer, row: Any, cut: int = kernel.WHOLE) -> Told:
    """How an offer that was taken from a row, whole or up to a cut, is told."""
    if offer.unheard is not None:
        return Told(offer.site, offer.unheard, ())
    assert offer.input is not None
    key = int(row[alphabet.places[offer.site]]), alphabet.op(("tell", offer.input))
    effects = alphabet.told.get(key, ())
    if cut != kernel.WHOLE:
        done = alphabet.cuts_of(offer.site, effects)[cut]
        return Told(offer.site, CrashedAfter(offer.input, done), effects[:done])
    return Told(offer.site, offer.input, effects, alphabet.illegal.get(key, ""))


class Path:
    """Ways from the first state to any other."""

    def __init__(self, alphabet: Alphabet, marks: Any, parents: Any) -> None:
        self.alphabet, self.marks, self.parents = alphabet, marks, parents

    def to(self, state: int) -> list[Told]:
        """The steps to a state, the shortest way."""
        way = []
        while state:
            way.append(state)
            state = int(self.parents[state])
        row = self.alphabet.first()
        told = []
        for at in reversed(way):
            for one, after in steps(self.alphabet, row):
                if not one.illegal and np.array_equal(self.alphabet.least_mark(after), self.marks[at]):
                    told.append(one)
                    row = after
                    break
            else:
                raise AssertionError("a state that no step leads to")
        return told


def told(way: list[Told]) -> tuple[str, ...]:
    """Steps as lines of a story; time is their number."""
    return tuple(line(time, one.site, one.input, one.effects) for time, one in enumerate(way, 1))
