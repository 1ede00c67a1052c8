"""What happens at a site: records wait, are served one at a time, are dropped or held back.

A site serves the waiting record that came first (FCFS), or the one with the least rank (birth + DUE) under another
discipline. An operator that is HELD is passed over: its records are parked when their turn comes, and return to
their places when it is released. An idle site starts an arriving record at once, whatever its queue's bound.

A site that serves in batches takes up at a trigger all that waits, and serves it with all that this makes for operators
of the same site; what leaves the site does so when the batch ends. `poke` asks for a look whether one ends or begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.chance import exponential, normal, uniform
from weft.bodies.twin.loop.columns import (
    ACCEPTS,
    AREA,
    ARRIVED,
    AT,
    BATCH,
    BATCH_EVENT,
    BATCHING,
    BEGUN,
    BIRTH,
    BLOCKS,
    BORN,
    BUSY,
    CONSTANT,
    COST,
    COST_A,
    COST_B,
    DOWN,
    DROPPED,
    DROPS_LATE,
    DUE,
    EMPTY,
    END,
    EXPONENTIAL,
    FIRST,
    FIRST_OF,
    FIXED,
    FLOATS,
    HEAD,
    HELD,
    HOME,
    INDEX,
    INTERVAL,
    KEY,
    KEY_COST,
    LIMIT,
    LOSERS,
    LOSERS_N,
    LOST_N,
    NEVER_NS,
    NEXT,
    NOBODY,
    NORMAL,
    OUTSIDE,
    PARKED,
    POKED,
    QUERY_LOSS,
    QUERY_SOURCES,
    QUERY_SOURCES_N,
    RANK,
    RANKED,
    SEQ,
    SERVING,
    SIDE,
    SINCE,
    SOURCE_SIZE,
    SOURCES,
    SOURCES_N,
    SPEED,
    STARTED,
    STREAM,
    TAKES_NS_MAX,
    TIME,
    TODO,
    TODO_N,
    TODO_SIZE,
    TRIGGER,
    UNIFORM,
    WAITING,
    WAITING_MAX,
    WAITS,
)
from weft.bodies.twin.loop.event_queue import give, key_for, schedule
from weft.bodies.twin.loop.pointers import compiled, inlined
from weft.bodies.twin.loop.queues import append, dequeue, enqueue, queue_of


@inlined
def sampled_ns(m: Any, x: Any, o: int, s: int) -> int:
    """How long the site takes for the operator's next record: a nanosecond at least, unless it costs nothing."""
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
    cost = min(cost, TAKES_NS_MAX)
    return max(1, int(cost + 0.5)) if kind != CONSTANT or cost > 0.0 else 0


@inlined
def stay(m: Any, x: Any, s: int, now: int) -> None:
    """Counts the time that records have spent at a site since its number of records last changed."""
    there = m[s + WAITING] + (1 if m[s + SERVING] != NOBODY else 0)
    x[m[s + SPEED] + AREA] += np.float64(there) * np.float64(now - m[s + SINCE])
    m[s + SINCE] = now


@inlined
def begin(m: Any, x: Any, s: int, r: int, now: int) -> None:
    """Starts the service of a record; the first of a batch carries what the batch itself costs."""
    o = m[m[r + AT] + FIRST_OF]
    service = sampled_ns(m, x, o, s)
    if m[s + FIRST] and service < NEVER_NS:
        service += int(m[s + FIXED] / x[m[s + SPEED]] + 0.5)
        m[s + FIRST] = 0
    m[o + BEGUN] += 1
    m[s + SERVING] = r
    m[s + STARTED] = now
    m[r + TIME] = now + service
    m[r + KEY] = key_for(END, m[o + RANK], 0, m[s + INDEX])
    schedule(m, r)


@inlined
def count_busy(m: Any, s: int, now: int) -> None:
    """Books the service that ends or is broken off now."""
    m[s + BUSY] += now - m[s + STARTED]


@compiled
def is_late(m: Any, x: Any, o: int, r: int, now: int) -> Any:
    """Synergy §3.5: whether a record is past its promise, and every query that would lose it lets it be dropped."""
    if now <= m[r + BIRTH] + m[o + DUE]:
        return False
    losers = m[o + LOSERS]
    for at in range(m[losers + LOSERS_N]):
        q = m[losers + LOSERS_N + 1 + at]
        born = 0
        for i in range(m[q + QUERY_SOURCES_N]):
            born += m[m[q + QUERY_SOURCES + i] + BORN]
        if np.float64(m[q + LOST_N] + 1) > x[m[q + QUERY_LOSS]] * np.float64(born):
            return False
    return True


@inlined
def drop(m: Any, o: int, r: int) -> None:
    """A record is lost to an operator, and counted for every query whose results it is behind."""
    m[o + DROPPED] += 1
    losers = m[o + LOSERS]
    for at in range(m[losers + LOSERS_N]):
        m[m[losers + LOSERS_N + 1 + at] + LOST_N] += 1
    give(m, r)


@compiled
def poke(m: Any, s: int, at: int) -> None:
    """Asks for a look at a site's batches at a moment, unless one is to come anyway."""
    if m[s + POKED]:
        return
    m[s + POKED] = 1
    r = m[s + BATCH_EVENT]
    m[r + TIME] = at
    m[r + KEY] = key_for(BATCH, m[s + INDEX], 0, 0)
    schedule(m, r)


@compiled
def poke_next(m: Any, s: int, now: int) -> None:
    """Asks for the next batch, at a whole number of intervals."""
    at = max(now, m[s + TRIGGER])
    interval = m[s + INTERVAL]
    if interval > 0:
        at = -(-at // interval) * interval
    poke(m, s, at)


@inlined
def start_next(m: Any, x: Any, s: int, now: int) -> None:
    """Starts the waiting record whose turn it is; records of operators that are held are parked."""
    batched = m[s + INTERVAL] >= 0
    if m[s + DOWN] or (batched and not m[s + BATCHING]):
        return
    while m[s + HEAD] != NOBODY:
        r = dequeue(m, s + HEAD)
        o = m[r + AT]
        if m[o + HELD]:
            append(m, o + PARKED, r)
            continue
        m[o + WAITS] -= 1
        m[s + WAITING] -= 1
        late = m[DROPS_LATE] and is_late(m, x, o, r, now)
        if late:
            drop(m, o, r)
        else:
            begin(m, x, s, r, now)
        if m[RANKED] and m[o + OUTSIDE] != NOBODY:
            maker = m[m[o + OUTSIDE] + STREAM]
            admit(m, o)
            # Where this goes on to the next record, that may be one of those that were held back until now.
            if late and not batched and serves_at(m, maker, s) and m[maker + PARKED] != NOBODY:
                unpark(m, maker)
        if not late:
            return
    if batched:
        poke(m, s, now)


@compiled
def admit(m: Any, o: int) -> None:
    """Lets the first record that waits outside a full queue in; its maker may go on when none is left outside."""
    r = m[o + OUTSIDE]
    m[o + OUTSIDE] = m[r + NEXT]
    s = m[o + HOME]
    join_queue(m, s, queue_of(m, s), o, r)
    let_go(m, m[r + STREAM])


@compiled
def let_go(m: Any, maker: int) -> None:
    """Takes one hold off a source or operator; the last one off puts it on the list of those to be released."""
    m[maker + HELD] -= 1
    if m[maker + HELD] == 0:
        m[m[TODO] + m[TODO_N] % TODO_SIZE] = maker
        m[TODO_N] += 1


@inlined
def join_queue(m: Any, s: int, head: int, o: int, r: int) -> None:
    """Puts a record among those that wait."""
    m[r + SEQ] = m[ACCEPTS]
    m[ACCEPTS] += 1
    m[o + WAITS] += 1
    m[s + WAITING] += 1
    m[s + WAITING_MAX] = max(m[s + WAITING_MAX], m[s + WAITING])
    enqueue(m, head, r)


@inlined
def accept(m: Any, x: Any, o: int, side: int, r: int, now: int) -> None:
    """A record arrives at an operator."""
    s = m[o + HOME]
    m[r + AT] = o
    m[r + SIDE] = side
    m[o + ARRIVED] += 1
    stay(m, x, s, now)
    if m[s + INTERVAL] >= 0 and takes_into_batch(m, x, s, o, r, now):
        return
    if m[s + INTERVAL] < 0 and m[s + SERVING] == NOBODY and not m[s + DOWN] and not m[o + HELD]:
        if m[DROPS_LATE] and is_late(m, x, o, r, now):
            drop(m, o, r)
            return
        m[r + SEQ] = m[ACCEPTS]
        m[ACCEPTS] += 1
        begin(m, x, s, r, now)
    elif m[o + WAITS] < m[o + LIMIT]:
        join_queue(m, s, queue_of(m, s), o, r)
        if m[s + INTERVAL] >= 0 and not m[s + BATCHING]:
            poke_next(m, s, now)
    elif m[o + BLOCKS]:
        append(m, o + OUTSIDE, r)
        m[m[r + STREAM] + HELD] += 1
    else:
        drop(m, o, r)


@inlined
def made_in_batch(m: Any, s: int, r: int) -> Any:
    """Whether a record was made by an operator of this site while it serves a batch."""
    maker = m[r + STREAM]
    source = m[SOURCES] <= maker < m[SOURCES] + m[SOURCES_N] * SOURCE_SIZE
    return 0 < m[s + BATCHING] <= EMPTY and not source and m[maker + HOME] == s


@inlined
def serves_at(m: Any, maker: int, s: int) -> Any:
    """Whether this is an operator of a site that is not held."""
    source = m[SOURCES] <= maker < m[SOURCES] + m[SOURCES_N] * SOURCE_SIZE
    return not source and m[maker + HOME] == s and not m[maker + HELD]


@compiled
def takes_into_batch(m: Any, x: Any, s: int, o: int, r: int, now: int) -> Any:
    """What a batch makes for an operator of the same site is served in the same batch, and never dropped."""
    if not made_in_batch(m, s, r) or m[s + DOWN] or m[o + HELD]:
        return False
    if m[s + SERVING] == NOBODY:
        m[r + SEQ] = m[ACCEPTS]
        m[ACCEPTS] += 1
        begin(m, x, s, r, now)
    else:
        join_queue(m, s, s + HEAD, o, r)
    return True


@compiled
def unpark(m: Any, o: int) -> None:
    """Brings parked records back to their places in the queue of the operator's site."""
    head = queue_of(m, m[o + HOME])
    r = m[o + PARKED]
    m[o + PARKED] = NOBODY
    other = NOBODY
    if not m[RANKED]:
        other = m[head]
        m[head] = NOBODY
    while r != NOBODY or other != NOBODY:
        if other == NOBODY or (r != NOBODY and m[r + SEQ] < m[other + SEQ]):
            following = m[r + NEXT]
            enqueue(m, head, r)
            r = following
        else:
            following = m[other + NEXT]
            enqueue(m, head, other)
            other = following
