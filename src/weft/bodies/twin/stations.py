"""What happens at a site: records wait, are served one at a time, are dropped or held back.

A site serves the waiting record that came first (FCFS), or the one with the least rank (birth + DUE) under another
discipline. An operator that is HELD is passed over: its records are parked when their turn comes, and return to
their places when it is released. An idle site starts an arriving record at once, whatever its queue's bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.chance import exponential, normal, uniform
from weft.bodies.twin.columns import (
    ACCEPTS,
    AREA,
    ARRIVED,
    AT,
    BEGUN,
    BIRTH,
    BLOCKS,
    BUSY,
    CONSTANT,
    COST,
    COST_A,
    COST_B,
    DOWN,
    DROPPED,
    DUE,
    END,
    EXPONENTIAL,
    FLOATS,
    HEAD,
    HELD,
    HOME,
    KEY,
    KEY_COST,
    LEFT,
    LIMIT,
    NEVER_NS,
    NEXT,
    NOBODY,
    NORMAL,
    OUTSIDE,
    PARKED,
    RANK,
    RANKED,
    SEQ,
    SERVING,
    SIDE,
    SINCE,
    SPEED,
    STARTED,
    STREAM,
    TIME,
    TODO,
    TODO_N,
    TODO_SIZE,
    UNIFORM,
    WAITING,
    WAITING_MAX,
    WAITS,
)
from weft.bodies.twin.memory import compiled, inlined
from weft.bodies.twin.pool import give, key_for, schedule


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
def enqueue(m: Any, s: int, r: int) -> None:
    """Puts a record into a site's queue; it is the last to come, or has a rank."""
    if not m[RANKED]:
        append(m, s + HEAD, r)
        return
    m[r + KEY] = m[r + BIRTH] + m[m[r + AT] + DUE] if m[RANKED] == 2 else 0
    m[r + LEFT] = NOBODY
    m[r + NEXT] = NOBODY
    m[s + HEAD] = meld(m, m[s + HEAD], r)


@inlined
def dequeue(m: Any, s: int) -> Any:
    """Takes the record whose turn it is out of a site's queue."""
    r = m[s + HEAD]
    m[s + HEAD] = meld(m, m[r + LEFT], m[r + NEXT]) if m[RANKED] else m[r + NEXT]
    return r


@inlined
def sampled_ns(m: Any, x: Any, o: int, s: int) -> int:
    """How long the site takes for the operator's next record."""
    n = m[o + BEGUN]
    f = m[o + FLOATS]
    kind = m[o + COST]
    cost = x[f + COST_A]
    if kind != CONSTANT:
        key = np.uint64(m[o + KEY_COST])
        if kind == UNIFORM:
            cost += x[f + COST_B] * uniform(key, n)
        elif kind == EXPONENTIAL:
            cost *= exponential(key, n)
        elif kind == NORMAL:
            cost = max(0.0, cost + x[f + COST_B] * normal(key, n))
        else:
            cost = x[np.int64(cost) + np.int64(x[f + COST_B] * uniform(key, n))]
    speed = x[m[s + SPEED]]
    if speed <= 0.0:
        return NEVER_NS
    if speed != 1.0:  # a division takes as long as all the rest here
        cost /= speed
    return int(cost + 0.5)


@inlined
def stay(m: Any, s: int, now: int) -> None:
    """Counts the time that records have spent at a site since its number of records last changed."""
    there = m[s + WAITING] + (1 if m[s + SERVING] != NOBODY else 0)
    m[s + AREA] += there * (now - m[s + SINCE])
    m[s + SINCE] = now


@inlined
def begin(m: Any, x: Any, s: int, r: int, now: int) -> None:
    """Starts the service of a record."""
    o = m[r + AT]
    service = sampled_ns(m, x, o, s)
    m[o + BEGUN] += 1
    m[s + SERVING] = r
    m[s + STARTED] = now
    m[r + TIME] = now + service
    m[r + KEY] = key_for(END, m[o + RANK], 0, 0)
    schedule(m, r)


@inlined
def count_busy(m: Any, s: int, now: int) -> None:
    """Books the service that ends or is broken off now."""
    m[s + BUSY] += now - m[s + STARTED]


@inlined
def start_next(m: Any, x: Any, s: int, now: int) -> None:
    """Starts the waiting record whose turn it is; records of operators that are held are parked."""
    if m[s + DOWN]:
        return
    while m[s + HEAD] != NOBODY:
        r = dequeue(m, s)
        o = m[r + AT]
        if m[o + HELD]:
            append(m, o + PARKED, r)
            continue
        m[o + WAITS] -= 1
        m[s + WAITING] -= 1
        begin(m, x, s, r, now)
        if m[RANKED] and m[o + OUTSIDE] != NOBODY:
            admit(m, o)
        return


@compiled
def admit(m: Any, o: int) -> None:
    """Lets the first record that waits outside a full queue in; its maker may go on when none is left outside."""
    r = m[o + OUTSIDE]
    m[o + OUTSIDE] = m[r + NEXT]
    join_queue(m, m[o + HOME], o, r)
    let_go(m, m[r + STREAM])


@compiled
def let_go(m: Any, maker: int) -> None:
    """Takes one hold off a source or operator; the last one off puts it on the list of those to be released."""
    m[maker + HELD] -= 1
    if m[maker + HELD] == 0:
        m[m[TODO] + m[TODO_N] % TODO_SIZE] = maker
        m[TODO_N] += 1


@inlined
def join_queue(m: Any, s: int, o: int, r: int) -> None:
    """Puts a record among those that wait."""
    m[r + SEQ] = m[ACCEPTS]
    m[ACCEPTS] += 1
    m[o + WAITS] += 1
    m[s + WAITING] += 1
    m[s + WAITING_MAX] = max(m[s + WAITING_MAX], m[s + WAITING])
    enqueue(m, s, r)


@inlined
def accept(m: Any, x: Any, o: int, side: int, r: int, now: int) -> None:
    """A record arrives at an operator."""
    s = m[o + HOME]
    m[r + AT] = o
    m[r + SIDE] = side
    m[o + ARRIVED] += 1
    stay(m, s, now)
    if m[s + SERVING] == NOBODY and not m[s + DOWN] and not m[o + HELD]:
        m[r + SEQ] = m[ACCEPTS]
        m[ACCEPTS] += 1
        begin(m, x, s, r, now)
    elif m[o + WAITS] < m[o + LIMIT]:
        join_queue(m, s, o, r)
    elif m[o + BLOCKS]:
        append(m, o + OUTSIDE, r)
        m[m[r + STREAM] + HELD] += 1
    else:
        m[o + DROPPED] += 1
        give(m, r)


@compiled
def unpark(m: Any, o: int) -> None:
    """Brings parked records back to their places in the queue of the operator's site."""
    s = m[o + HOME]
    r = m[o + PARKED]
    m[o + PARKED] = NOBODY
    if m[RANKED]:
        while r != NOBODY:
            following = m[r + NEXT]
            enqueue(m, s, r)
            r = following
        return
    other = m[s + HEAD]
    m[s + HEAD] = NOBODY
    while r != NOBODY or other != NOBODY:
        if other == NOBODY or (r != NOBODY and m[r + SEQ] < m[other + SEQ]):
            following = m[r + NEXT]
            enqueue(m, s, r)
            r = following
        else:
            following = m[other + NEXT]
            enqueue(m, s, other)
            other = following
