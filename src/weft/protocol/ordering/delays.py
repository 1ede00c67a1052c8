"""How long must a record be held back? Learned from the delays seen lately, up and down.

Order §4.1 takes the greatest delay ever seen and λ times the standard deviation: it only rises, and one straggler sets
it for good. Here the greatest is taken over all but the worst twentieth of the late records seen lately, so that it
falls again when delays fall. With `late_max` the hold is the quantile that leaves so large a share late, and a budget
keeps account: every record adds the share to it, every late one takes one off. As it falls below what it keeps in
reserve, for chance and for another run of late records like the worst so far, the hold covers more delays; as long as
there is a budget only some more, since what the last few delays cost in waiting no later record gives back.

These functions are plain Python, so that they run as they are, or compiled.
"""

from __future__ import annotations

import math
from typing import Any

from weft.protocol.ordering.fields import (
    FAR_STRIDES,
    FIRST,
    FIRST_MAX,
    LATE_FIRST,
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
ONE_IN_LATE, ONE_IN_ALL = 4, 3
"""Once the window is full one in so many enters it: of late records, for the margin; of all records, for the share."""
LEVEL = 0.95
"""The share of late records that the hold covers before the margin."""
SURE = 1000
"""From so many records on the share is kept by them alone; what the first ones had to spare is not spent later."""
SPARE_FIRST, SPARE, SAVED = 400.0, 80.0, 700.0
"""The budget keeps room for what so many records may leave late by chance: many at the start, fewer by and by.

Once it is sure it begins without any, and saves that up again within so many records.
"""
UNTOLD = 1.5
"""And for what so many times a batch may leave late: how many of it were is known only when all of it was taken."""
RUN, WORST_MAX = 1.5, 300.0
"""And for the worst stretch so far that left more than so many times the share late, up to what so many records may."""
REPAY, SPEND = 150.0, 600.0
"""Records within which the share rule makes good what was too late, or uses up what it had to spare."""
STRICT, CAREFUL, GENTLE, EASY = 0.05, 0.2, 0.3, 1.5
"""Parts of the share that it aims between: gently while there is a budget, since the longest delays cost most wait.

While the share is not yet sure it never aims above it: of a stream whose clock hardly moves all that comes later is
measured against what the first records let go.
"""


def enough(measured: int, known: int, ranked: Floats, share: float) -> bool:
    """Whether the first records have told how long to hold."""
    if measured < FIRST or share < 0:
        return measured >= FIRST
    return measured >= FIRST_MAX or (known >= LATE_FIRST and ranked[known - LATE_FIRST] > 0)


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


def rank_for_share(known: int, share: float, budget: float, worst: float, measured: int, at_once: int) -> int:
    """The place, in so many ranked delays, of the hold that leaves a share late: less while the budget is short.

    `at_once` records, more or less, will come before the hold can be changed again.
    """
    worst = min(worst, share * WORST_MAX)
    if measured < SURE:
        reserve = share * (SPARE_FIRST + (SPARE - SPARE_FIRST) * measured / SURE) + worst
        least = CAREFUL
    else:
        reserve = (share * SPARE + worst) * min(1.0, (measured - SURE + at_once) / SAVED)
        least = GENTLE
    if budget <= 0:
        least = STRICT
    over = budget - reserve - share * UNTOLD * at_once
    within = max(SPEND if over > 0 else REPAY, at_once / 2)
    most = EASY if measured >= SURE else 1.0
    level = share * min(most, max(least, 1 + over / within / share)) if share > 0 else 0.0
    return max(0, min(known - 1, math.ceil((1 - level) * known) - 1))


def spent(budget: float, share: float, late: int, more: int, measured: int) -> float:
    """The late records that are still allowed, after so many more records, now so many in all, and the late of them."""
    budget += share * more - late
    return min(0.0, budget) if measured >= SURE > measured - more else budget


def run_of_late(burst: float, share: float, late: int, more: int) -> float:
    """By how much the present run of late records has gone beyond what is no run."""
    return max(0.0, burst + late - RUN * share * more)


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
