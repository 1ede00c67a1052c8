"""Chance that is the same everywhere: a counter-based generator, and sampling with + - * / and sqrt only.

The n-th draw of a thing is a function of (seed, the thing's name, n), so it depends neither on placement nor on the
order of events. Libm is not used: its last bit differs between machines.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from weft.bodies.twin.loop.pointers import compiled, inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_11, SHIFT_27, SHIFT_30, SHIFT_31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
UNIT = 1.0 / (1 << 53)
LN2 = 0.6931471805599453


def key_of(seed: int, *names: str) -> int:
    """The generator key of a named thing under a seed."""
    text = "\x1f".join((str(seed), *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@inlined
def bits(key: np.uint64, n: int) -> Any:
    """The n-th draw of 53 bits (splitmix64)."""
    z = key + np.uint64(n) * GOLDEN
    z = (z ^ (z >> SHIFT_30)) * MIX_1
    z = (z ^ (z >> SHIFT_27)) * MIX_2
    z = z ^ (z >> SHIFT_31)
    return np.int64(z >> SHIFT_11)


@inlined
def uniform(key: np.uint64, n: int) -> float:
    """The n-th draw from [0, 1)."""
    return np.float64(bits(key, n)) * UNIT


def passing(share: float) -> int:
    """The least draw of bits with which a share and that draw make a whole: `share + uniform >= 1`."""
    least = round((1.0 - share) / UNIT)
    while least > 0 and share + (least - 1) * UNIT >= 1.0:
        least -= 1
    while share + least * UNIT < 1.0:
        least += 1
    return least


@compiled
def log(x: float) -> float:
    """The natural logarithm of a number in (0, 1], to a few units in the last place."""
    e = 0
    while x < 1.52587890625e-05:
        x *= 65536.0
        e -= 16
    while x < 0.70710678118654757:
        x *= 2.0
        e -= 1
    s = (x - 1.0) / (x + 1.0)
    q = s * s
    p = 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 0.2
    p = p * q + 1.0 / 3.0
    p = p * q + 1.0
    return 2.0 * s * p + e * LN2


@compiled
def exponential(key: np.uint64, n: int) -> Any:
    """The n-th draw from the exponential distribution of mean 1."""
    return -log(1.0 - uniform(key, n))


@compiled
def normal(key: np.uint64, n: int) -> Any:
    """The n-th draw from the standard normal distribution, by inversion (Wichura 1988, AS 241, PPND7)."""
    p = uniform(key, n)
    p = UNIT if p < UNIT else p
    q = p - 0.5
    if -0.425 <= q <= 0.425:
        r = 0.180625 - q * q
        above = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179
        below = ((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0
        return q * above / below
    r = np.sqrt(-log(p if q < 0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        above = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777
        below = (0.12021132975 * r + 0.73700164250) * r + 1.0
    else:
        r -= 5.0
        above = ((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150
        below = (0.012258202635 * r + 0.24197894225) * r + 1.0
    value = above / below
    return -value if q < 0 else value
