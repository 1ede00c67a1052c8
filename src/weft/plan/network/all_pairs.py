"""Least-delay paths between all sites, compiled; of equal delays fewer links, then the first by name, as in `paths`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.plan.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def _first_by_name(before: Ints, start: int, one: int, two: int, hops: int, alphabetical: Ints) -> bool:
    """Whether the path to `one` comes before the path to `two`, both of so many hops from the start."""
    answer = False
    for _ in range(hops + 1):
        if one == two:
            break
        # The difference nearest to the start decides: the last one seen on the way back.
        answer = alphabetical[one] < alphabetical[two]
        one, two = before[start, one], before[start, two]
    return answer


@compiled
def _push(heap: Ints, place: Ints, size: int, node: int, delay: Floats, hops: Ints) -> int:
    at = place[node]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        above = (at - 1) // 2
        other = heap[above]
        if delay[other] < delay[node] or (delay[other] == delay[node] and hops[other] <= hops[node]):
            break
        heap[at] = other
        place[other] = at
        at = above
    heap[at] = node
    place[node] = at
    return size


@compiled
def _pop(heap: Ints, place: Ints, size: int, delay: Floats, hops: Ints) -> int:
    size -= 1
    last = heap[size]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size:
            a, b = heap[right], heap[below]
            if delay[a] < delay[b] or (delay[a] == delay[b] and hops[a] < hops[b]):
                below = right
        other = heap[below]
        if delay[last] < delay[other] or (delay[last] == delay[other] and hops[last] <= hops[other]):
            break
        heap[at] = other
        place[other] = at
        at = below
    if size > 0:
        heap[at] = last
        place[last] = at
    return size


@compiled
def least_delays(starts: Ints, ends: Ints, costs: Floats, alphabetical: Ints) -> tuple[Floats, Ints]:
    """Delay between all sites, and the site before each on its path; links of a site lie from `starts[site]` on."""
    n = len(starts) - 1
    delays = np.full((n, n), np.inf)
    before = np.full((n, n), -1, np.int64)
    heap = np.empty(n, np.int64)
    for start in range(n):
        delay = delays[start]
        hops = np.zeros(n, np.int64)
        place = np.full(n, -1, np.int64)
        done = np.zeros(n, np.bool_)
        delay[start] = 0.0
        size = _push(heap, place, 0, start, delay, hops)
        while size > 0:
            here = heap[0]
            size = _pop(heap, place, size, delay, hops)
            done[here] = True
            for at in range(starts[here], starts[here + 1]):
                there = ends[at]
                reached = delay[here] + costs[at]
                if done[there] or reached > delay[there]:
                    continue
                equal = reached == delay[there]
                if equal and hops[here] + 1 > hops[there]:
                    continue
                if equal and hops[here] + 1 == hops[there]:
                    other = before[start, there]
                    if not _first_by_name(before, start, here, other, hops[here], alphabetical):
                        continue
                delay[there] = reached
                hops[there] = hops[here] + 1
                before[start, there] = here
                size = _push(heap, place, size, there, delay, hops)
    return delays, before
