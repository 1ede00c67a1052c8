"""What would a fixed hold have done? Known afterwards: every hold's wait and late records, and the best of them."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.protocol.ordering.fields import Floats, Times
from weft.protocol.ordering.heap import pop, push


@compiled
def fixed_hold(times: Times, hold: float) -> tuple[int, float]:
    """How many records a fixed hold leaves late, and the mean wait of the others, a record at a time."""
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
        while held > 0 and float(clock - held_t[0]) >= hold:
            released, any_released = held_t[0], True
            waited += float(clock - released)
            count += 1
            pop(held_t, held_n, held)
            held -= 1
    for k in range(held):
        waited += float(clock - held_t[k])
    return late, waited / max(1, count + held)


def delays_of(times: Times) -> Floats:
    """How far each record is behind the greatest time seen."""
    return (np.maximum.accumulate(times) - times).astype(np.float64)


def least_hold(times: Times, late: int) -> tuple[float, float]:
    """The smallest fixed hold that leaves no more late than so many, and its mean wait."""
    candidates = np.unique(np.append(delays_of(times), 0.0))
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if fixed_hold(times, candidates[middle])[0] <= late:
            high = middle
        else:
            low = middle + 1
    return float(candidates[low]), fixed_hold(times, candidates[low])[1]
