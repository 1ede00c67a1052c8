"""Which event comes next? Records with their moments: a free list, a timing wheel, a heap for the slot at hand.

An event is a record with a TIME. What lies in a later slot of the wheel is an unordered list; when its slot comes,
it enters a small binary heap ordered by (TIME, KEY), unless it is alone there. Which slots hold something stands in a
bit each: the next one with an event is found 64 at a time, and the one after it is fetched while the first is worked
on. What lies beyond one turn of the wheel waits in a coarse wheel, whose slots are turns. KEY is (kind, rank of the
stream, number in that stream, destination), and copies of one record that tie in it have different readers, so the
order of events at one nanosecond does not depend on how they were scheduled.
"""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.loop.columns import (
    AT,
    COARSE,
    COARSE_MASK,
    COARSE_SHIFT,
    CURSOR,
    DEST_MASK,
    FILLED,
    FREE,
    FREE_N,
    HEAP,
    HEAP_N,
    KEY,
    KIND_SHIFT,
    MASK,
    NEXT,
    NOBODY,
    NUMBER_MASK,
    POOL_N,
    POOL_N_MAX,
    RANK_SHIFT,
    TIME,
    WHEEL,
    WHEEL_MASK,
    WIDTH,
)
from weft.bodies.twin.loop.pointers import compiled, fetch_early, inlined, lowest_bit


@inlined
def key_for(kind: int, rank: int, numbered: int, site: int) -> int:
    """The place of an event among those at one nanosecond; `numbered` is a key that has the record's number."""
    return (kind << KIND_SHIFT) | (rank << RANK_SHIFT) | (numbered & NUMBER_MASK) | (site & DEST_MASK)


@inlined
def take(m: Any) -> Any:
    """A free record."""
    r = m[FREE]
    m[FREE] = m[r + NEXT]
    m[FREE_N] -= 1
    m[POOL_N] += 1
    m[POOL_N_MAX] = max(m[POOL_N_MAX], m[POOL_N])
    return r


@inlined
def give(m: Any, r: int) -> None:
    """A record that is done with."""
    m[r + NEXT] = m[FREE]
    m[FREE] = r
    m[FREE_N] += 1
    m[POOL_N] -= 1


@inlined
def before(m: Any, a: int, b: int) -> Any:
    """Whether one event comes before another."""
    if m[a + TIME] != m[b + TIME]:
        return m[a + TIME] < m[b + TIME]
    if m[a + KEY] != m[b + KEY]:
        return m[a + KEY] < m[b + KEY]
    # Two copies of a record for one site: of readers that have moved there, each has its own.
    return m[a + MASK] & -m[a + MASK] < m[b + MASK] & -m[b + MASK]


@inlined
def push(m: Any, r: int) -> None:
    """Puts an event into the heap."""
    heap = m[HEAP]
    i = m[HEAP_N]
    m[HEAP_N] = i + 1
    while i > 0:
        above = (i - 1) >> 1
        if not before(m, r, m[heap + above]):
            break
        m[heap + i] = m[heap + above]
        i = above
    m[heap + i] = r


@inlined
def pop(m: Any) -> Any:
    """Takes the first event out of the heap."""
    heap = m[HEAP]
    first = m[heap]
    n = m[HEAP_N] - 1
    m[HEAP_N] = n
    last = m[heap + n]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= n:
            break
        if below + 1 < n and before(m, m[heap + below + 1], m[heap + below]):
            below += 1
        if not before(m, m[heap + below], last):
            break
        m[heap + i] = m[heap + below]
        i = below
    m[heap + i] = last
    return first


@inlined
def schedule(m: Any, r: int) -> None:
    """Puts an event where its TIME says."""
    slot = m[r + TIME] >> m[WIDTH]
    ahead = slot - m[CURSOR]
    if ahead <= 0:
        push(m, r)
    elif ahead <= m[WHEEL_MASK]:
        put(m, r, slot & m[WHEEL_MASK])
    else:
        at = m[COARSE] + ((slot >> m[COARSE_SHIFT]) & m[COARSE_MASK])
        m[r + NEXT] = m[at]
        m[at] = r


@inlined
def put(m: Any, r: int, place: int) -> None:
    """Puts an event into a slot of the wheel."""
    m[r + NEXT] = m[m[WHEEL] + place]
    m[m[WHEEL] + place] = r
    m[m[FILLED] + (place >> 6)] |= 1 << (place & 63)


@compiled
def spill(m: Any, block: int) -> None:
    """Puts the events of the coming turn of the wheel into their slots."""
    at = m[COARSE] + (block & m[COARSE_MASK])
    r = m[at]
    kept = NOBODY
    while r != NOBODY:
        following = m[r + NEXT]
        slot = m[r + TIME] >> m[WIDTH]
        if slot >> m[COARSE_SHIFT] == block:
            put(m, r, slot & m[WHEEL_MASK])
        else:
            m[r + NEXT] = kept
            kept = r
        r = following
    m[at] = kept


@inlined
def refill(m: Any, until: int) -> Any:
    """Turns the wheel to the next slot with an event due and gives the first; NOBODY where none is before `until`."""
    mask, wheel, filled = m[WHEEL_MASK], m[WHEEL], m[FILLED]
    last = (until - 1) >> m[WIDTH]
    cursor = m[CURSOR]
    while cursor < last:
        cursor += 1
        place = cursor & mask
        if place == 0:
            spill(m, cursor >> m[COARSE_SHIFT])
        held = m[filled + (place >> 6)] >> (place & 63)
        if held == 0:
            cursor |= 63
            continue
        cursor += lowest_bit(held)
        if cursor > last:
            break
        m[CURSOR] = cursor
        place = cursor & mask
        r = m[wheel + place]
        m[wheel + place] = NOBODY
        held = m[filled + (place >> 6)] & ~(1 << (place & 63))
        m[filled + (place >> 6)] = held
        if held:
            following = m[wheel + (place & ~63) + lowest_bit(held)]
            fetch_early(m, following)
            fetch_early(m, m[following + AT] >> 1)  # where one reader is known, its handle
        if m[r + NEXT] == NOBODY:
            return r
        while r != NOBODY:
            following = m[r + NEXT]
            push(m, r)
            r = following
        return pop(m)
    m[CURSOR] = max(last, m[CURSOR])
    return NOBODY
