"""How records travel: one copy per destination site, over the links of the least-delay path, duplicated on arrival.

A link sends one record after another at its bandwidth, then each takes the delay; so what is in flight never exceeds
bandwidth times delay. A copy carries the readers it was sent for (MASK); one that has moved meanwhile gets its copy
forwarded from where the record arrives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.columns import (
    AHEAD,
    ARRIVE,
    AT,
    BIRTH,
    BYTES,
    CUT_UNTIL,
    DELAY,
    EVENTS,
    EVERYONE,
    FLOATS,
    FREE_AT,
    FREE_N,
    HEAP,
    HEAP_N,
    HOME,
    HOP,
    INDEX,
    INSTANCES,
    INSTANCES_N,
    INTERVAL,
    KEY,
    LINK_BUSY,
    LINK_FLOATS,
    LOG,
    LOG_N,
    LOG_ROOM,
    LOST,
    MANY,
    MASK,
    NEVER_NS,
    NOBODY,
    NUMBER,
    NUMBER_MASK,
    NUMBER_SHIFT,
    OUT,
    QUICK_DELAY,
    QUICK_READER,
    QUICK_SITE,
    RANK,
    READERS,
    READERS_MAX,
    READERS_N,
    RECORD_SIZE,
    RELEASED,
    SENT,
    SEQ,
    SINK_NUMBER,
    SITES_N,
    SOURCE_SIZE,
    SOURCES,
    SOURCES_N,
    SPARE,
    STREAM,
    TAKES_NS_MAX,
    TIME,
    TODO_N,
    WAYS,
)
from weft.bodies.twin.loop.event_queue import give, key_for, schedule, take
from weft.bodies.twin.loop.one_event_visits import accept_ahead
from weft.bodies.twin.loop.pointers import compiled, inlined, ints
from weft.bodies.twin.loop.queues import append
from weft.bodies.twin.loop.serving import accept, made_in_batch


@inlined
def copied(m: Any, r: int) -> Any:
    """A copy of a record in flight."""
    c = take(m)
    for i in range(RECORD_SIZE):
        m[c + i] = m[r + i]
    return c


@inlined
def instance(m: Any, at: int, number: int) -> Any:
    """Who gets the record of this number, for a reader noted at `at`: its instances in turn."""
    reader = m[at]
    if m[at + 1] < 0 or m[reader + INSTANCES_N] == 0:
        return reader
    return m[m[reader + INSTANCES] + number % m[reader + INSTANCES_N]]


@compiled
def hand_over(m: Any, x: Any, reader: int, side: int, r: int, now: int) -> None:
    """Gives a record to one reader, an operator or (side -1) a sink."""
    if side >= 0:
        if m[AHEAD]:
            accept_ahead(m, x, reader, side, r, now)
        else:
            accept(m, x, reader, side, r, now)
        return
    at = m[LOG] + 3 * m[LOG_N]
    m[at] = m[reader + SINK_NUMBER]
    m[at + 1] = now
    m[at + 2] = now - m[r + BIRTH]
    m[LOG_N] += 1
    give(m, r)


@inlined
def stays_in_batch(m: Any, s: int, r: int) -> Any:
    """Whether a result has to wait for the end of the batch that made it."""
    return m[s + INTERVAL] >= 0 and m[r + SEQ] != RELEASED and made_in_batch(m, s, r)


@compiled
def arrive(m: Any, x: Any, r: int, now: int) -> None:
    """A record reaches its destination site: every reader it was sent for gets one."""
    m[EVENTS] += 1
    stream, site, mask = m[r + STREAM], m[r + AT], m[r + MASK]
    first = m[stream + READERS]
    number = (m[r + KEY] & NUMBER_MASK) >> NUMBER_SHIFT
    for i in range(m[stream + READERS_N]):
        reader = instance(m, first + 2 * i, number)
        there = m[reader + HOME]
        wanted = there == site if mask == EVERYONE else (mask >> i) & 1 == 1
        if not wanted:
            continue
        c = copied(m, r)
        if m[first + 2 * i + 1] < 0 and there == site and mask != EVERYONE and stays_in_batch(m, site, r):
            m[c + MASK] = 1 << i
            append(m, site + OUT, c)
        elif there == site:
            hand_over(m, x, reader, m[first + 2 * i + 1], c, now)
        else:
            send(m, x, c, site, there, EVERYONE if mask == EVERYONE else 1 << i, now, False)
    give(m, r)


@inlined
def arrive_quickly(m: Any, x: Any, r: int, now: int) -> None:
    """As `arrive`, the common case first: one reader, an operator, where the record was sent."""
    reader = m[m[r + STREAM] + QUICK_READER]
    if reader >= 0 and not m[AHEAD] and m[(reader >> 1) + HOME] == m[r + AT]:
        m[EVENTS] += 1
        accept(m, x, reader >> 1, reader & 1, r, now)
    else:
        arrive(m, x, r, now)


@compiled
def send(m: Any, x: Any, r: int, start: int, end: int, mask: int, now: int, alone: bool) -> None:
    """Sets a record on its way from one site to another; `alone` where nothing else happens at this nanosecond."""
    way = m[WAYS] + 2 * (m[start + INDEX] * m[SITES_N] + m[end + INDEX])
    delay = m[way]
    if delay < 0:
        m[LOST] += 1
        give(m, r)
        return
    m[r + AT] = end
    m[r + MASK] = mask
    if m[start + INTERVAL] >= 0 and stays_in_batch(m, start, r):
        append(m, start + OUT, r)
        return
    if m[way + 1] == NOBODY:
        m[r + SEQ] = RELEASED
        m[r + TIME] = now + delay
        m[r + KEY] = key_for(ARRIVE, m[m[r + STREAM] + RANK], m[r + KEY], m[end + INDEX])
        schedule(m, r)
    else:
        m[r + SEQ] = m[way + 1]
        if alone:
            m[EVENTS] += 1
            hop(m, x, r, now)
        else:
            m[r + TIME] = now
            m[r + KEY] = key_for(HOP, m[m[r + STREAM] + RANK], m[r + KEY], m[end + INDEX])
            schedule(m, r)


@compiled
def hop(m: Any, x: Any, r: int, now: int) -> None:
    """Takes a record into its next link, and on to the entry of the link after it or to its destination."""
    at = now
    place = m[r + SEQ]
    stream = m[r + STREAM]
    number = m[r + KEY]
    end = m[m[r + AT] + INDEX]
    while m[place] != NOBODY:
        if at > now:
            m[r + SEQ] = place
            m[r + TIME] = at
            m[r + KEY] = key_for(HOP, m[stream + RANK], number, end)
            schedule(m, r)
            return
        link = m[place]
        sends = max(at, m[link + FREE_AT], m[link + CUT_UNTIL])
        takes = np.int64(min(x[m[stream + FLOATS] + BYTES] * x[m[link + LINK_FLOATS]], TAKES_NS_MAX) + 0.5)
        sent = min(sends + takes, NEVER_NS)
        m[link + FREE_AT] = sent
        m[link + SENT] += 1
        m[link + LINK_BUSY] += sent - sends
        at = sent + m[link + DELAY]
        place += 1
    m[r + SEQ] = RELEASED
    m[r + TIME] = at
    m[r + KEY] = key_for(ARRIVE, m[stream + RANK], number, end)
    schedule(m, r)


@compiled
def deliver(m: Any, x: Any, r: int, start: int, now: int, arriving: bool) -> None:
    """Sends a new record of a stream to everyone who reads it; `arriving` where it arrives in this very event."""
    stream = m[r + STREAM]
    number = m[stream + NUMBER]
    m[r + KEY] = number << NUMBER_SHIFT
    m[stream + NUMBER] += 1
    first = m[stream + READERS]
    n = m[stream + READERS_N]
    if n == 1:
        depart(m, x, r, start, m[instance(m, first, number) + HOME], 1, now, arriving, True)
        return
    for i in range(n):
        there = m[instance(m, first + 2 * i, number) + HOME]
        fresh = True
        for j in range(i):
            if m[instance(m, first + 2 * j, number) + HOME] == there:
                fresh = False
                break
        if not fresh:
            continue
        mask = EVERYONE
        if n <= READERS_MAX:
            mask = 0
            for j in range(i, n):
                if m[instance(m, first + 2 * j, number) + HOME] == there:
                    mask |= 1 << j
        depart(m, x, copied(m, r), start, there, mask, now, arriving, False)
    give(m, r)


@compiled
def depart(m: Any, x: Any, r: int, start: int, there: int, mask: int, now: int, arriving: bool, only: bool) -> None:
    """One copy leaves for one site, which may be this one; `only` where there is no other copy."""
    # Where nothing else happens at this nanosecond, the event need not be scheduled to be the next.
    alone = (m[HEAP_N] == 0 or m[m[m[HEAP]] + TIME] > now) and m[TODO_N] == 0
    if there != start:
        send(m, x, r, start, there, mask, now, alone and only)
        return
    m[r + AT] = there
    m[r + MASK] = mask
    if arriving or (alone and m[LOG_N] < m[LOG_ROOM] and m[FREE_N] > m[SPARE]):
        arrive(m, x, r, now)
        return
    m[r + TIME] = now
    m[r + KEY] = key_for(ARRIVE, m[m[r + STREAM] + RANK], m[r + KEY], m[there + INDEX])
    schedule(m, r)


@compiled
def shorten(memory: Any, makers: Any) -> None:
    """Notes for streams with one reader who that is, and how far, where nothing limits the way."""
    m = ints(memory.ctypes.data)
    for maker in makers:
        m[maker + QUICK_READER] = NOBODY
        m[maker + QUICK_DELAY] = NOBODY
        if m[maker + READERS_N] != 1:
            continue
        reader, side = m[m[maker + READERS]], m[m[maker + READERS] + 1]
        here, there = m[maker + HOME], m[reader + HOME]
        source = m[SOURCES] <= maker < m[SOURCES] + m[SOURCES_N] * SOURCE_SIZE
        several = (not source and m[maker + INSTANCES_N] > 0) or (side >= 0 and m[reader + INSTANCES_N] > 0)
        if several:
            continue
        ends_ahead = m[AHEAD] and not source and not m[maker + MANY]
        if side < 0:
            if ends_ahead and here == there:
                m[maker + QUICK_READER] = -2 - m[reader + SINK_NUMBER]
                m[maker + QUICK_DELAY] = 0
            continue
        m[maker + QUICK_READER] = reader << 1 | side
        way = m[WAYS] + 2 * (m[here + INDEX] * m[SITES_N] + m[there + INDEX])
        wanted = source or ends_ahead if m[AHEAD] else here != there and (source or m[here + INTERVAL] < 0)
        if wanted and m[way] >= 0 and m[way + 1] == NOBODY:
            m[maker + QUICK_DELAY] = m[way]
            m[maker + QUICK_SITE] = there


@inlined
def deliver_quickly(m: Any, x: Any, r: int, start: int, now: int) -> None:
    """As `deliver`, the common case first: one reader, at another site, with nothing but a delay between."""
    stream = m[r + STREAM]
    delay = m[stream + QUICK_DELAY]
    if delay == NOBODY:
        deliver(m, x, r, start, now, False)
        return
    m[r + AT] = m[stream + QUICK_SITE]
    m[r + MASK] = 1
    m[r + SEQ] = RELEASED
    m[r + TIME] = now + delay
    # One reader means one copy: its destination need not be in the key.
    m[r + KEY] = key_for(ARRIVE, m[stream + RANK], m[stream + NUMBER] << NUMBER_SHIFT, 0)
    m[stream + NUMBER] += 1
    schedule(m, r)
