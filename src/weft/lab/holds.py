"""What would a fixed hold have done? Known afterwards: every hold's wait and late records, and the best of them."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.protocol.ordering.fields import Floats, Times
from weft.protocol.ordering.heap import pop, push

NEAR = 1e-4
"""A hold is the smallest when one smaller by this part of the greatest delay is not enough."""


@compiled
def fixed_hold(times: Times, hold: float, batch: int = 1) -> tuple[int, float]:
    """How many records a fixed hold leaves late, and the mean wait of the others, so many records at a time."""
    held_t, held_n = np.empty(len(times), times.dtype), np.empty(len(times), np.int64)
    held, late, count = 0, 0, 0
    waited = 0.0
    clock, released, any_released = times[0], times[0], False
    for k in range(len(times)):
        time = times[k]
        clock = max(clock, time)
        if any_released and time < released:
            late += 1
        else:
            push(held_t, held_n, held, time, k)
            held += 1
        if (k + 1) % batch:
            continue  # within a batch nothing leaves, so nothing is late for another of it
        while held > 0 and float(clock - held_t[0]) >= hold:
            released, any_released = held_t[0], True
            waited += float(clock - released)
            count += 1
            pop(held_t, held_n, held)
            held -= 1
    for k in range(held):
        waited += float(clock - held_t[k])
    return late, waited / max(1, count + held)


def delays_of(times: Times, batch: int = 1) -> Floats:
    """How far each record is behind the greatest time seen, before its batch where that is larger than one."""
    clock = np.maximum.accumulate(times)
    if batch > 1:
        clock = clock[np.maximum(np.arange(len(times)) // batch * batch - 1, 0)]
    behind: Floats = np.maximum(clock - times, 0).astype(np.float64)
    return behind


def least_hold(times: Times, late: int, batch: int = 1) -> tuple[float, float]:
    """The smallest fixed hold that leaves no more late than so many, and its mean wait."""
    candidates = np.unique(np.append(delays_of(times, batch), 0.0))
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if fixed_hold(times, candidates[middle], batch)[0] <= late:
            high = middle
        else:
            low = middle + 1
    least = float(candidates[low])
    under = float(candidates[low - 1]) if low else 0.0
    while least - under > NEAR * candidates[-1]:
        # Who is late is older than one that has left, which may be younger than the hold asks: less may do.
        middle_hold = (least + under) / 2
        if fixed_hold(times, middle_hold, batch)[0] <= late:
            least = middle_hold
        else:
            under = middle_hold
    return least, fixed_hold(times, least, batch)[1]
