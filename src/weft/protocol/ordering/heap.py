"""Which held record is due next? A binary heap by time, then by arrival, over two flat arrays; and a ranked window."""

from __future__ import annotations

from weft.plan.compiled import compiled
from weft.protocol.ordering.fields import Floats, Ints, Times


@compiled
def push(times: Times, numbers: Ints, size: int, time: float, number: int) -> None:
    """Put a record into a heap of the given size; the arrays have room for it."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if times[above] < time or (times[above] == time and numbers[above] < number):
            break
        times[at], numbers[at] = times[above], numbers[above]
        at = above
    times[at], numbers[at] = time, number


@compiled
def pop(times: Times, numbers: Ints, size: int) -> None:
    """Take the first record out of a heap of the given size; read it before."""
    last = size - 1
    time, number = times[last], numbers[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        right = below + 1
        if right < last and (
            times[right] < times[below] or (times[right] == times[below] and numbers[right] < numbers[below])
        ):
            below = right
        if time < times[below] or (time == times[below] and number < numbers[below]):
            break
        times[at], numbers[at] = times[below], numbers[below]
        at = below
    times[at], numbers[at] = time, number


@compiled
def exchange(ranked: Floats, known: int, old: float, new: float) -> None:
    """Put a value in the place of another, keeping the ranks."""
    hole, goal = place(ranked, known, old), place(ranked, known, new)
    if goal > hole:
        goal -= 1
        for k in range(hole, goal):
            ranked[k] = ranked[k + 1]
    else:
        for k in range(hole, goal, -1):
            ranked[k] = ranked[k - 1]
    ranked[goal] = new


@compiled
def insert(ranked: Floats, known: int, new: float) -> None:
    """Put a value in its place; there is room for it."""
    goal = place(ranked, known, new)
    for k in range(known, goal, -1):
        ranked[k] = ranked[k - 1]
    ranked[goal] = new


@compiled
def place(ranked: Floats, known: int, value: float) -> int:
    """The first of the ranked that is not less than a value."""
    low, high = 0, known
    while low < high:
        middle = (low + high) >> 1
        if ranked[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
