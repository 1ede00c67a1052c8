"""Chance inside compiled loops: one word of state, seeded from the generator that was passed in."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from weft.plan.compiled import compiled

Words = NDArray[np.uint64]


def seeded(rng: Random) -> Words:
    """A stream of its own, drawn from a generator."""
    return np.array([rng.getrandbits(64) | 1], np.uint64)


@compiled
def draw(chance: Words) -> int:
    """63 random bits (xorshift64*)."""
    word = chance[0]
    word ^= word >> np.uint64(12)
    word ^= word << np.uint64(25)
    word ^= word >> np.uint64(27)
    chance[0] = word
    return np.int64((word * np.uint64(2685821657736338717)) >> np.uint64(1))  # type: ignore[return-value]


@compiled
def below(chance: Words, limit: int) -> int:
    """A whole number from 0 up to a limit, which is out."""
    return draw(chance) % limit


@compiled
def share(chance: Words) -> float:
    """A number from 0 up to 1, which is out."""
    return draw(chance) / 9223372036854775808.0
