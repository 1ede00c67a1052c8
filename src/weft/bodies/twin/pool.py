"""Records and their events: a free list of records, a hashed timing wheel, and a heap for the slot at hand.

An event is a record with a TIME. What lies in a later slot of the wheel is an unordered list; when its slot comes,
it enters a small binary heap ordered by (TIME, KEY). KEY is (kind, rank of the stream, number in that stream,
destination), so the order of events at one nanosecond does not depend on how they were scheduled.
"""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.columns import (
    CURSOR,
    DEST_MASK,
    FREE,
    FREE_N,
    HEAP,
    HEAP_N,
    KEY,
    KIND_SHIFT,
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
from weft.bodies.twin.memory import inlined


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
    return m[a + TIME] < m[b + TIME] or (m[a + TIME] == m[b + TIME] and m[a + KEY] < m[b + KEY])


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
    if slot <= m[CURSOR]:
        push(m, r)
    else:
        at = m[WHEEL] + (slot & m[WHEEL_MASK])
        m[r + NEXT] = m[at]
        m[at] = r


@inlined
def refill(m: Any, until: int) -> Any:
    """Turns the wheel to the next slot with an event due and gives the first; NOBODY where none is before `until`."""
    width, mask, wheel = m[WIDTH], m[WHEEL_MASK], m[WHEEL]
    last = (until - 1) >> width
    cursor = m[CURSOR]
    while cursor < last:
        cursor += 1
        r = m[wheel + (cursor & mask)]
        if r == NOBODY:
            continue
        m[CURSOR] = cursor
        if m[r + NEXT] == NOBODY and m[r + TIME] >> width == cursor:
            m[wheel + (cursor & mask)] = NOBODY
            return r
        kept = NOBODY
        while r != NOBODY:
            following = m[r + NEXT]
            if m[r + TIME] >> width == cursor:
                push(m, r)
            else:
                m[r + NEXT] = kept
                kept = r
            r = following
        m[wheel + (cursor & mask)] = kept
        if m[HEAP_N] > 0:
            return pop(m)
    m[CURSOR] = max(cursor, m[CURSOR])
    return NOBODY
