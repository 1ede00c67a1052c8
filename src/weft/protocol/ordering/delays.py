"""How long must a record be held back? Learned from the delays seen lately, up and down.

Order §4.1 takes the greatest delay ever seen and λ times the standard deviation: it only rises, and one straggler sets
it for good. Here the greatest is taken over all but the worst twentieth of the late records seen lately, so that it
falls again when delays fall. With `late_max` the hold is the quantile that leaves so large a share late; what is
late beyond that share, at the start or after a change, is made good by holding longer for a while.

These functions are plain Python, so that they run as they are, or compiled.
"""

from __future__ import annotations

import math
from typing import Any

from weft.protocol.ordering.fields import (
    FAR_STRIDES,
    LEAP,
    NEWS,
    RECURS,
    TOLD,
    TOLD_AT,
    TOLD_UNTIL,
    Floats,
    Ints,
    Times,
)

WINDOW = 512
"""Delays that are kept to look back on."""
ONE_IN_LATE, ONE_IN_ALL = 4, 2
"""Once the window is full one in so many enters it: of late records, for the margin; of all records, for the share."""
LEVEL = 0.95
"""The share of late records that the hold covers before the margin."""
REPAY = 300.0
"""Records within which the share rule makes good what was too late."""
STRICT = 0.1
"""The share rule never aims below this part of what is asked."""


def counts(number: int, one_in: int) -> bool:
    """Whether a delay enters a window that is full, by a hash that no pattern of the stream meets."""
    return ((number * 2654435761) >> 16) % one_in == 0


def teaching_max(far: int, stride: float, most: int) -> float:
    """The greatest delay that is learned from.

    One record from long ago is no reason to hold all others, nor is what memory could never be held back for.
    """
    if stride <= 0:
        return math.inf
    return most * stride if far >= RECURS else FAR_STRIDES * stride


def leap_of(hold: float, stride: float) -> float:
    """How far ahead of the clock a record may be to be believed at once."""
    return max(8 * hold, LEAP * stride)


def rank_for_share(known: int, share: float, late: int, measured: int) -> int:
    """The place, in so many ranked delays, of the hold that leaves a share late."""
    owed = late - share * measured
    level = share if owed <= 0 else max(share * STRICT, share - owed / REPAY)
    return max(0, min(known - 1, math.ceil((1 - level) * known) - 1))


def rank_for_margin(known: int) -> int:
    """The place of the greatest delay that the margin is added to."""
    return min(known - 1, math.ceil(LEVEL * known))


def deviation(ranked: Floats, rank: int) -> float:
    """The standard deviation of the delays up to a place."""
    mean = 0.0
    for k in range(rank + 1):
        mean += ranked[k]
    mean /= rank + 1
    squares = 0.0
    for k in range(rank + 1):
        squares += (ranked[k] - mean) ** 2
    return math.sqrt(squares / (rank + 1))


def tells(i: Ints, f: Floats, marks: Times, measured: int, clock: Any, window: int) -> bool:
    """Whether what upstream announced still counts: until, once its records can be here, a window of them was seen."""
    if f[TOLD] <= 0:
        return False
    if i[TOLD_AT] == NEWS:
        marks[TOLD_UNTIL] = clock + f[TOLD]
    if i[TOLD_AT] == NEWS or clock < marks[TOLD_UNTIL]:
        i[TOLD_AT] = measured
    return bool(measured - i[TOLD_AT] < window)
