"""Where nothing can interrupt a service, a record's visit is one event: its end is known when it arrives.

First come, first served, at a speed that does not change: an arriving record starts when all before it have been
served, so what becomes of it is sent on its way at once, to arrive later. What waits is kept in a list of starts, to
bound queues and to count; what lies beyond the end of the run is taken back there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.chance import bits
from weft.bodies.twin.loop.columns import (
    AREA,
    ARRIVE,
    ARRIVED,
    AT,
    BEGUN,
    BIRTH,
    BUSY,
    DIRECT,
    END,
    ENDED,
    EVENTS,
    FREE,
    FREE_FROM,
    FREE_N,
    GAVE_LATER,
    HEAD,
    HOME,
    HORIZON,
    KEY,
    KEY_SELECTIVITY,
    LAST,
    LAST_GAVE,
    LIMIT,
    LOG,
    LOG_N,
    LOG_ROOM,
    MASK,
    NEXT,
    NOBODY,
    NUMBER,
    NUMBER_SHIFT,
    PASS,
    QUICK_DELAY,
    QUICK_READER,
    RANK,
    SERVICE,
    SIDE,
    SPEED,
    STREAM,
    TAIL,
    TIME,
    WAITING,
    WAITING_MAX,
    WAITS,
)
from weft.bodies.twin.loop.event_queue import give, key_for, schedule
from weft.bodies.twin.loop.pointers import compiled, floats, inlined, ints
from weft.bodies.twin.loop.serving import drop, sampled_ns


@inlined
def begin_due(m: Any, s: int, now: int) -> None:
    """Records whose turn has come wait no more."""
    w = m[s + HEAD]
    while w != NOBODY and m[w + TIME] <= now:
        m[m[w + AT] + WAITS] -= 1
        m[s + WAITING] -= 1
        m[s + LAST] = m[w + AT]
        m[s + LAST_GAVE] = m[w + MASK]
        following = m[w + NEXT]
        m[w + NEXT] = m[FREE]
        m[FREE] = w
        m[FREE_N] += 1
        w = following
    m[s + HEAD] = w


@inlined
def note_waiting(m: Any, s: int, o: int, start: int, gave: int) -> None:
    """Keeps when a waiting record will start."""
    w = m[FREE]
    m[FREE] = m[w + NEXT]
    m[FREE_N] -= 1
    m[w + TIME] = start
    m[w + AT] = o
    m[w + MASK] = gave
    m[w + NEXT] = NOBODY
    if m[s + HEAD] == NOBODY:
        m[s + HEAD] = w
    else:
        m[m[s + TAIL] + NEXT] = w
    m[s + TAIL] = w
    m[o + WAITS] += 1
    m[s + WAITING] += 1
    m[s + WAITING_MAX] = max(m[s + WAITING_MAX], m[s + WAITING])


@inlined
def outcome(m: Any, o: int, s: int, r: int, end: int, delay: int) -> int:
    """Sends on what an operator with one reader makes of a record, if anything."""
    m[EVENTS] += 1
    n = m[o + ENDED]
    m[o + ENDED] = n + 1
    if m[o + PASS] > 0 and bits(np.uint64(m[o + KEY_SELECTIVITY]), n) < m[o + PASS]:
        give(m, r)
        return 0
    number = m[o + NUMBER]
    m[o + NUMBER] = number + 1
    reader = m[o + QUICK_READER]
    if reader < 0 and end < m[HORIZON] and 2 * m[LOG_N] < m[LOG_ROOM]:
        m[EVENTS] += 1
        at = m[LOG] + 3 * m[LOG_N]
        m[at] = -2 - reader
        m[at + 1] = end
        m[at + 2] = end - m[r + BIRTH]
        m[LOG_N] += 1
        give(m, r)
        return 1
    m[r + STREAM] = o
    m[r + TIME] = end + delay
    # One reader means one copy: its destination need not be in the key.
    m[r + KEY] = key_for(ARRIVE, m[o + RANK], number << NUMBER_SHIFT, 0)
    if reader < 0:
        m[r + AT] = s
        m[r + MASK] = 1
    else:
        m[r + AT] = reader
        m[r + MASK] = DIRECT
    schedule(m, r)
    return 1


@inlined
def accept_ahead(m: Any, x: Any, o: int, side: int, r: int, now: int) -> None:
    """A record arrives at an operator: it is dropped, or its service lies fixed."""
    s = m[o + HOME]
    m[o + ARRIVED] += 1
    if m[s + HEAD] != NOBODY:
        begin_due(m, s, now)
    start = max(now, m[s + FREE_FROM])
    if start > now and m[o + WAITS] >= m[o + LIMIT]:
        drop(m, o, r)
        return
    service = m[o + SERVICE]
    if service < 0:
        service = sampled_ns(m, x, o, s)
    begun = m[o + BEGUN]
    m[o + BEGUN] = begun + 1
    end = start + service
    m[s + FREE_FROM] = end
    m[s + BUSY] += service
    x[m[s + SPEED] + AREA] += np.float64(end - now)
    delay = m[o + QUICK_DELAY]
    gave = GAVE_LATER
    if delay == NOBODY:
        m[r + AT] = o
        m[r + SIDE] = side
        m[r + TIME] = end
        m[r + KEY] = key_for(END, m[o + RANK], begun << NUMBER_SHIFT, 0)
        schedule(m, r)
    else:
        gave = outcome(m, o, s, r, end, delay)
    if start > now:
        note_waiting(m, s, o, start, gave)
    else:
        m[s + LAST] = o
        m[s + LAST_GAVE] = gave


@compiled
def take_back(m: Any, o: int, gave: int) -> int:
    """Uncounts the end of a service that lies beyond the run; whether it had been counted."""
    if gave == GAVE_LATER:
        return 0
    m[o + ENDED] -= 1
    m[o + NUMBER] -= gave
    return 1


@compiled
def cut_off(memory: Any, numbers: Any, sites: Any, now: int, final: bool) -> None:
    """Parts what lies before a moment from what lies after it: at the end of a run the latter is uncounted, at the
    end of a warm-up the former."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    events = 0
    for i in range(sites.shape[0]):
        s = sites[i]
        begin_due(m, s, now - 1)
        after = 0.0
        w = m[s + HEAD]
        end = m[s + FREE_FROM] if w == NOBODY else m[w + TIME]
        if m[s + LAST] != NOBODY and end >= now:
            after += np.float64(end - now)
            if final:
                events += take_back(m, m[s + LAST], m[s + LAST_GAVE])
            else:
                events += int(m[s + LAST_GAVE] != GAVE_LATER)
        while w != NOBODY:
            following = m[w + NEXT]
            end = m[s + FREE_FROM] if following == NOBODY else m[following + TIME]
            after += np.float64(end - now)
            if final:
                m[m[w + AT] + BEGUN] -= 1
                events += take_back(m, m[w + AT], m[w + MASK])
            else:
                events += int(m[w + MASK] != GAVE_LATER)
            w = following
        left = max(0, m[s + FREE_FROM] - now)
        area = m[s + SPEED] + AREA
        if final:
            m[s + BUSY] -= left
            m[s + FREE_FROM] = min(now, m[s + FREE_FROM])
            x[area] -= after
        else:
            m[s + BUSY] = left
            x[area] = after
    if final:
        m[EVENTS] -= events
    else:
        m[EVENTS] = events
