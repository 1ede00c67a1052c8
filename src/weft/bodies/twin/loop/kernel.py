"""The event loop: takes events in order and lets records be born, end their service, hop and arrive.

The tie rule: of events at one nanosecond, ends of service come first, then entries into links, then arrivals, then ends
and beginnings of batches; among
equals the stream that stands first (sources, then operators upstream first), then its earlier record, then the copy
for the site that stands first, then the one whose first reader stands first. What an instance that stops hands on
comes after all other records of its stream, in the order in which it was accepted. When a service
ends, the next waiting record starts before the outcome is handed on, so a local hand-off queues behind it. A source's
record is an arrival, also one that was held back. Steering at a moment comes before all events of that moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.batches import turn_batch
from weft.bodies.twin.loop.births import bear, plan_next
from weft.bodies.twin.loop.chance import bits
from weft.bodies.twin.loop.columns import (
    AHEAD,
    AT,
    BACKLOG,
    BATCH,
    BATCHING,
    BIRTH,
    BIRTHS,
    BUSY,
    DIRECT,
    DONE,
    END,
    ENDED,
    EVENTS,
    EVENTS_MAX,
    FILTER,
    FIRST_OF,
    FLOATS,
    FREE_FROM,
    FREE_N,
    GROW,
    HEAP_N,
    HELD,
    HOME,
    HOP,
    HORIZON,
    INTERVAL,
    JOIN_RECORDS,
    JOIN_SECONDS,
    KEY,
    KEY_SELECTIVITY,
    KIND,
    KIND_SHIFT,
    LOG_FULL,
    LOG_N,
    LOG_ROOM,
    MANY,
    MASK,
    NEED,
    NEXT,
    NOBODY,
    ORDER,
    PARKED,
    PASS,
    PAUSED,
    READERS_N,
    SELECTIVITY,
    SERVING,
    SOURCE_SIZE,
    SOURCES,
    SOURCES_N,
    SPARE,
    STARTED,
    STREAM,
    TIME,
    TODO,
    TODO_DONE,
    TODO_N,
    TODO_SIZE,
)
from weft.bodies.twin.loop.event_queue import give, pop, push, refill, schedule
from weft.bodies.twin.loop.one_event_visits import accept_ahead
from weft.bodies.twin.loop.ordering import end_order
from weft.bodies.twin.loop.pointers import compiled, floats, inlined, ints
from weft.bodies.twin.loop.results import emit, end_join, end_window, results_most, whole
from weft.bodies.twin.loop.sending import arrive_quickly, deliver, deliver_quickly, hop
from weft.bodies.twin.loop.serving import count_busy, poke_next, start_next, stay, unpark


@inlined
def end(m: Any, x: Any, r: int, now: int) -> None:
    """A service ends: the next record starts, then the outcome is handed on."""
    m[EVENTS] += 1
    o = m[m[r + AT] + FIRST_OF]
    s = m[m[r + AT] + HOME]
    if not m[AHEAD]:
        stay(m, x, s, now)
        count_busy(m, s, now)
        m[s + SERVING] = NOBODY
        start_next(m, x, s, now)
    kind = m[o + KIND]
    if not m[o + MANY]:
        if m[o + PASS] > 0 and bits(np.uint64(m[o + KEY_SELECTIVITY]), m[o + ENDED]) < m[o + PASS]:
            give(m, r)
        else:
            m[r + STREAM] = o
            deliver_quickly(m, x, r, s, now)
    elif kind == FILTER:
        results = whole(m, o, x[m[o + FLOATS] + SELECTIVITY])
        birth = m[r + BIRTH]
        give(m, r)
        for _ in range(results):
            emit(m, x, o, s, birth, now)
    elif kind in (JOIN_RECORDS, JOIN_SECONDS):
        end_join(m, x, o, s, r, now)
    elif kind == ORDER:
        end_order(m, x, o, s, r, now)
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
                stay(m, x, s, now)
                start_next(m, x, s, now)
            if m[s + INTERVAL] >= 0 and not m[s + BATCHING]:
                poke_next(m, s, now)
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


@inlined
def travel(m: Any, x: Any, r: int, kind: int, now: int) -> None:
    """What is no end of a service: a birth, an entry into a link, an arrival, a look at batches."""
    if kind == HOP:
        m[EVENTS] += 1
        hop(m, x, r, now)
    elif kind == BATCH:
        turn_batch(m, x, m[r + AT], now)
    elif m[r + MASK] == BIRTHS:
        bear(m, x, m[r + AT], now)
    else:
        arrive_quickly(m, x, r, now)


@compiled
def loop(m: Any, x: Any, now: int, until: int) -> Any:
    """Runs every event before `until`; stops early where the log or the pool is full, and now and then."""
    m[HORIZON] = until
    left = EVENTS_MAX
    while True:
        status = status_of(m)
        left -= 1
        if status != DONE or left < 0:
            return now, status if status != DONE else PAUSED
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
            o = m[m[r + AT] + FIRST_OF]
            if m[o + MANY]:
                most = 1 if m[o + KIND] == ORDER else results_most(m, x, r, now)
                m[NEED] = most * (2 + m[o + READERS_N])
                if m[FREE_N] < m[SPARE] + m[NEED]:
                    schedule(m, r)
                    continue
            end(m, x, r, now)
        elif m[r + MASK] == DIRECT:
            m[EVENTS] += 1
            accept_ahead(m, x, m[r + AT] >> 1, m[r + AT] & 1, r, now)
        else:
            travel(m, x, r, kind, now)


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
def settle(memory: Any, numbers: Any, sites: Any, now: int, busy: Any) -> None:
    """Books the part of services and stays that lies before a moment, and tells how long each site was busy."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    for i in range(sites.shape[0]):
        s = sites[i]
        if m[AHEAD]:
            busy[i] = m[s + BUSY] - max(0, m[s + FREE_FROM] - now)
            continue
        stay(m, x, s, now)
        if m[s + SERVING] != NOBODY:
            count_busy(m, s, now)
            m[s + STARTED] = now
        busy[i] = m[s + BUSY]
