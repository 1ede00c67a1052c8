"""Who waits, and in which order: lists of those that came first, skew heaps where records are ranked."""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.loop.columns import AT, BIRTH, DUE, HEAD, INTERVAL, KEY, LATER, LEFT, NEXT, NOBODY, RANKED, SEQ
from weft.bodies.twin.loop.pointers import compiled, inlined


@inlined
def waits_before(m: Any, a: int, b: int) -> Any:
    """Whether one waiting record is to be served before another, where records are ranked."""
    return m[a + KEY] < m[b + KEY] or (m[a + KEY] == m[b + KEY] and m[a + SEQ] < m[b + SEQ])


@compiled
def meld(m: Any, a: int, b: int) -> int:
    """Joins two skew heaps of waiting records (children in LEFT and NEXT)."""
    if a == NOBODY:
        return b
    if b == NOBODY:
        return a
    if waits_before(m, b, a):
        a, b = b, a
    root = a
    while True:
        right = m[a + NEXT]
        m[a + NEXT] = m[a + LEFT]
        if right == NOBODY:
            m[a + LEFT] = b
            return root
        if waits_before(m, b, right):
            right, b = b, right
        m[a + LEFT] = right
        a = right


@inlined
def append(m: Any, head: int, r: int) -> None:
    """Puts a record at the end of a list; `head` is where its first and, next to it, its last record are kept."""
    m[r + NEXT] = NOBODY
    if m[head] == NOBODY:
        m[head] = r
    else:
        m[m[head + 1] + NEXT] = r
    m[head + 1] = r


@inlined
def enqueue(m: Any, head: int, r: int) -> None:
    """Puts a record into a queue; it is the last to come, or has a rank."""
    if not m[RANKED]:
        append(m, head, r)
        return
    m[r + KEY] = m[r + BIRTH] + m[m[r + AT] + DUE] if m[RANKED] == 2 else 0
    m[r + LEFT] = NOBODY
    m[r + NEXT] = NOBODY
    m[head] = meld(m, m[head], r)


@inlined
def dequeue(m: Any, head: int) -> Any:
    """Takes the record whose turn it is out of a queue."""
    r = m[head]
    m[head] = meld(m, m[r + LEFT], m[r + NEXT]) if m[RANKED] else m[r + NEXT]
    return r


@inlined
def queue_of(m: Any, s: int) -> int:
    """Where records that come to a site wait: for their turn, or for the next batch."""
    return s + (LATER if m[s + INTERVAL] >= 0 else HEAD)
