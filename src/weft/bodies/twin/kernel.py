"""The event loop: takes events in order and lets records be born, end their service, hop and arrive.

The tie rule: of events at one nanosecond, ends of service come first, then entries into links, then arrivals; among
equals the stream that stands first (sources, then operators upstream first), then its earlier record, then the copy
for the site that stands first. When a service
ends, the next waiting record starts before the outcome is handed on, so a local hand-off queues behind it. A source's
record is an arrival, also one that was held back. Steering at a moment comes before all events of that moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.chance import exponential, uniform
from weft.bodies.twin.columns import (
    ARRIVE,
    AT,
    BACKLOG,
    BIRTH,
    BIRTHS,
    BORN,
    BUSY,
    CONTRIBUTING,
    DONE,
    END,
    ENDED,
    EVENT,
    EVENTS,
    EXACT_NS,
    FILTER,
    FLOATS,
    FREE_N,
    GREATEST,
    GROW,
    HEAP_N,
    HELD,
    HOME,
    HOP,
    JOIN_RATE_RECORDS,
    JOIN_RECORDS,
    JOIN_SECONDS,
    KEY,
    KEY_GAP,
    KEY_SELECTIVITY,
    KIND,
    KIND_SHIFT,
    LATENESS,
    LENGTH,
    LOG_FULL,
    LOG_N,
    LOG_ROOM,
    LOW,
    MANY,
    MASK,
    NEED,
    NEVER_NS,
    NEXT,
    NOBODY,
    NUMBER,
    NUMBER_SHIFT,
    PARKED,
    RANDOM,
    RANK,
    RATE_MAX_0,
    RATE_MAX_1,
    READERS_N,
    RING_0,
    RING_1,
    RING_SIZE,
    SELECTIVITY,
    SERVING,
    SIDE,
    SOURCE_SIZE,
    SOURCES,
    SOURCES_N,
    SPARE,
    STARTED,
    STEP,
    STEP_LAST,
    STEP_RATE,
    STREAM,
    TIME,
    TODO,
    TODO_DONE,
    TODO_N,
    TODO_SIZE,
    WINDOW,
    WINDOW_HEAD,
    WINDOW_SECONDS,
    WINDOWS_N,
)
from weft.bodies.twin.memory import compiled, floats, inlined, ints
from weft.bodies.twin.pool import give, key_for, pop, push, refill, schedule, take
from weft.bodies.twin.stations import append, count_busy, start_next, stay, unpark
from weft.bodies.twin.streams import arrive_quickly, deliver, deliver_quickly, hop


@compiled
def next_birth(m: Any, x: Any, k: int) -> int:
    """When the next record of a source is born: one unit of its process after the last, bent by the rate."""
    n = m[k + BORN]
    left = 0.0 if n == 0 else 1.0
    if m[k + RANDOM]:
        left = exponential(np.uint64(m[k + KEY_GAP]), n)
    at = x[m[k + FLOATS] + EXACT_NS]
    step = m[k + STEP]
    while True:
        rate = x[m[k + STEP_RATE]]
        end = np.float64(m[step])
        if rate > 0.0:
            there = at + left / rate
            if there < end:
                break
            left = max(0.0, left - (end - at) * rate)
        if step == m[k + STEP_LAST]:
            return NEVER_NS
        at = end
        step += 1
        m[k + STEP_RATE] += 1
    m[k + STEP] = step
    x[m[k + FLOATS] + EXACT_NS] = there
    return int(there + 0.5)


@compiled
def plan_next(m: Any, x: Any, k: int) -> None:
    """Schedules a source's next birth."""
    at = next_birth(m, x, k)
    if at < NEVER_NS:
        r = m[k + EVENT]
        m[r + TIME] = at
        m[r + KEY] = key_for(ARRIVE, m[k + RANK], m[k + NUMBER] << NUMBER_SHIFT, 0)
        schedule(m, r)


@compiled
def bear(m: Any, x: Any, k: int, now: int) -> None:
    """A record is born at a source; one that is held keeps it back."""
    m[EVENTS] += 1
    r = take(m)
    m[r + BIRTH] = now
    m[r + STREAM] = k
    m[k + BORN] += 1
    if m[k + HELD]:
        append(m, k + BACKLOG, r)
    else:
        deliver(m, x, r, m[k + HOME], now, True)
    plan_next(m, x, k)


@inlined
def whole(m: Any, o: int, expected: float) -> int:
    """A number of records with this mean: the whole part, and one more by chance."""
    least = int(expected)
    if np.float64(least) == expected:
        return least
    return int(expected + uniform(np.uint64(m[o + KEY_SELECTIVITY]), m[o + ENDED]))


@compiled
def partners(m: Any, x: Any, o: int, side: int, now: int) -> Any:
    """Join: how many records of the other side are in the window, and how many results are expected.

    Potential §2.2.1: the output rate is the selectivity times the product of the input rates, so a record on one side
    expects selectivity x rate of the other / 2. That rate is measured over the last 32 arrivals there (all, where
    they are fewer, and never above what the sources can give), or over the window where it is one of seconds.
    """
    ring = m[o + RING_1] if side == 0 else m[o + RING_0]
    seen = m[ring]
    if seen == 0:
        return 0, 0.0
    size = m[o + RING_SIZE]
    selectivity = x[m[o + FLOATS] + SELECTIVITY]
    length = x[m[o + FLOATS] + LENGTH]
    if m[o + KIND] == JOIN_RECORDS:
        counted = min(seen, JOIN_RATE_RECORDS)
        span = now
        if seen > JOIN_RATE_RECORDS:
            span = now - m[ring + 1 + (seen - 1 - JOIN_RATE_RECORDS) % size]
        most = x[m[o + FLOATS] + (RATE_MAX_1 if side == 0 else RATE_MAX_0)]
        return min(seen, np.int64(length)), selectivity * 0.5 * min(most, counted * 1e9 / max(span, 1))
    inside = 0
    while inside < min(seen, size) and now - m[ring + 1 + (seen - 1 - inside) % size] <= length:
        inside += 1
    expected = np.float64(inside)
    if inside == size:
        expected = inside * length / max(1, now - m[ring + 1 + seen % size])
    return inside, expected * selectivity * 0.5 * 1e9 / length


@compiled
def emit(m: Any, x: Any, o: int, s: int, birth: int, now: int) -> None:
    """A new record of an operator."""
    r = take(m)
    m[r + BIRTH] = birth
    m[r + STREAM] = o
    deliver(m, x, r, s, now, False)


@compiled
def results_most(m: Any, x: Any, r: int, now: int) -> Any:
    """A bound on how many results the end of a service will give."""
    o = m[r + AT]
    kind = m[o + KIND]
    selectivity = x[m[o + FLOATS] + SELECTIVITY]
    if kind == FILTER:
        return int(selectivity) + 1
    if kind in (JOIN_RECORDS, JOIN_SECONDS):
        return int(partners(m, x, o, m[r + SIDE], now)[1]) + 1
    w = m[o + WINDOW]
    most = 1
    for k in range(m[w + WINDOWS_N]):
        most += int((m[w + WINDOW_HEAD + 2 * k] + 1) * selectivity) + 1
    return most


@compiled
def end_join(m: Any, x: Any, o: int, s: int, r: int, now: int) -> None:
    """A record has met the window of the other side, and enters its own."""
    birth = m[r + BIRTH]
    mine = m[o + RING_0] if m[r + SIDE] == 0 else m[o + RING_1]
    other = m[o + RING_1] if m[r + SIDE] == 0 else m[o + RING_0]
    inside, expected = partners(m, x, o, m[r + SIDE], now)
    results = whole(m, o, expected)
    give(m, r)
    size = m[o + RING_SIZE]
    for k in range(results):
        partner = m[other + 1 + size + (m[other] - 1 - k % inside) % size]
        emit(m, x, o, s, max(birth, partner), now)
    at = mine + 1 + m[mine] % size
    m[at] = now
    m[at + size] = birth
    m[mine] += 1


@compiled
def enter(m: Any, w: int, k: int, birth: int) -> None:
    """Counts a record into a window."""
    at = w + WINDOW_HEAD + 2 * (k % m[w + WINDOWS_N])
    m[at] += 1
    m[at + 1] = max(m[at + 1], birth)


@compiled
def end_window(m: Any, x: Any, o: int, s: int, r: int, now: int) -> None:
    """A record closes the windows whose end it moves past, and enters its own."""
    birth = m[r + BIRTH]
    give(m, r)
    w = m[o + WINDOW]
    size = m[w + WINDOWS_N]
    length = np.int64(x[m[o + FLOATS] + LENGTH])
    low = m[w + LOW]
    timed = m[o + KIND] == WINDOW_SECONDS
    if timed:
        m[w + GREATEST] = max(m[w + GREATEST], birth)
        reached = max(low, (m[w + GREATEST] - m[w + LATENESS]) // length)
    else:
        enter(m, w, low, birth)
        reached = low + (1 if m[w + WINDOW_HEAD + 2 * (low % size)] >= length else 0)
    m[w + LOW] = reached
    for k in range(low, min(reached, low + size)):
        at = w + WINDOW_HEAD + 2 * (k % size)
        results = whole(m, o, m[at] * x[m[o + FLOATS] + SELECTIVITY])
        youngest = m[at + 1] if m[CONTRIBUTING] else birth
        m[at] = 0
        m[at + 1] = 0
        for _ in range(results):
            emit(m, x, o, s, youngest, now)
    if timed and birth // length >= low:  # else its window is closed: it is late
        enter(m, w, birth // length, birth)


@inlined
def end(m: Any, x: Any, r: int, now: int) -> None:
    """A service ends: the next record starts, then the outcome is handed on."""
    m[EVENTS] += 1
    o = m[r + AT]
    s = m[o + HOME]
    stay(m, s, now)
    count_busy(m, s, now)
    m[s + SERVING] = NOBODY
    start_next(m, x, s, now)
    kind = m[o + KIND] if m[o + MANY] else FILTER
    if kind == FILTER:
        results = whole(m, o, x[m[o + FLOATS] + SELECTIVITY])
        birth = m[r + BIRTH]
        if results == 0:
            give(m, r)
        else:
            m[r + STREAM] = o
            deliver_quickly(m, x, r, s, now)
        for _ in range(1, results):
            emit(m, x, o, s, birth, now)
    elif kind in (JOIN_RECORDS, JOIN_SECONDS):
        end_join(m, x, o, s, r, now)
    else:
        end_window(m, x, o, s, r, now)
    m[o + ENDED] += 1


@compiled
def release(m: Any, x: Any, now: int) -> None:
    """Lets sources and operators go on whose last hold was taken off, first come first."""
    sources_end = m[SOURCES] + m[SOURCES_N] * SOURCE_SIZE
    while m[TODO_DONE] < m[TODO_N]:
        maker = m[m[TODO] + m[TODO_DONE] % TODO_SIZE]
        if m[SOURCES] <= maker < sources_end:
            while m[maker + HELD] == 0 and m[maker + BACKLOG] != NOBODY:
                if m[FREE_N] < m[SPARE]:
                    return
                r = m[maker + BACKLOG]
                m[maker + BACKLOG] = m[r + NEXT]
                deliver(m, x, r, m[maker + HOME], now, True)
        elif not m[maker + HELD]:
            if m[maker + PARKED] != NOBODY:
                unpark(m, maker)
            s = m[maker + HOME]
            if m[s + SERVING] == NOBODY:
                stay(m, s, now)
                start_next(m, x, s, now)
        m[TODO_DONE] += 1
    m[TODO_N] = 0
    m[TODO_DONE] = 0


@inlined
def status_of(m: Any) -> int:
    """Why the loop must pause, DONE where it need not."""
    if m[LOG_N] >= m[LOG_ROOM]:
        return LOG_FULL
    if m[FREE_N] < m[SPARE] + m[NEED]:
        return GROW
    m[NEED] = 0
    return DONE


@compiled
def loop(m: Any, x: Any, now: int, until: int) -> Any:
    """Runs every event before `until`; stops early where the log, the pool or the limit on records is full."""
    while True:
        status = status_of(m)
        if status != DONE:
            return now, status
        if m[TODO_N]:
            release(m, x, now)
            continue
        r = pop(m) if m[HEAP_N] > 0 else refill(m, until)
        if r == NOBODY:
            return until, DONE
        if m[r + TIME] >= until:
            push(m, r)
            return until, DONE
        now = m[r + TIME]
        kind = m[r + KEY] >> KIND_SHIFT
        if m[r + AT] == NOBODY:  # a service that was broken off
            give(m, r)
        elif kind == END:
            o = m[r + AT]
            if m[o + MANY]:
                m[NEED] = results_most(m, x, r, now) * (2 + m[o + READERS_N])
                if m[FREE_N] < m[SPARE] + m[NEED]:
                    schedule(m, r)
                    continue
            end(m, x, r, now)
        elif kind == HOP:
            m[EVENTS] += 1
            hop(m, x, r, now)
        elif m[r + MASK] == BIRTHS:
            bear(m, x, m[r + AT], now)
        else:
            arrive_quickly(m, x, r, now)


@compiled
def advance(memory: Any, numbers: Any, now: int, until: int) -> Any:
    """Runs events from where the last call stopped (`now`) up to `until`; gives where it stopped, and why."""
    return loop(ints(memory.ctypes.data), floats(numbers.ctypes.data), now, until)


@compiled
def start_sources(memory: Any, numbers: Any) -> None:
    """Schedules the first birth of every source."""
    m = ints(memory.ctypes.data)
    for i in range(m[SOURCES_N]):
        plan_next(m, floats(numbers.ctypes.data), m[SOURCES] + i * SOURCE_SIZE)


@compiled
def settle(memory: Any, sites: Any, now: int, busy: Any) -> None:
    """Books the part of services and stays that lies before a moment, and tells how long each site was busy."""
    m = ints(memory.ctypes.data)
    for i in range(sites.shape[0]):
        s = sites[i]
        stay(m, s, now)
        if m[s + SERVING] != NOBODY:
            count_busy(m, s, now)
            m[s + STARTED] = now
        busy[i] = m[s + BUSY]
