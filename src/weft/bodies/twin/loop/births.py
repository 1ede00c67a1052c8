"""How do records come into being? Each source has one event, its next birth."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.chance import exponential
from weft.bodies.twin.loop.columns import (
    AHEAD,
    ARRIVE,
    AT,
    BACKLOG,
    BIRTH,
    BORN,
    DIRECT,
    EVENT,
    EVENTS,
    EXACT_NS,
    FLOATS,
    HELD,
    HOME,
    KEY,
    KEY_GAP,
    MASK,
    NEVER_NS,
    NOBODY,
    NUMBER,
    NUMBER_SHIFT,
    QUICK_DELAY,
    QUICK_READER,
    RANDOM,
    RANK,
    STEP,
    STEP_LAST,
    STEP_RATE,
    STREAM,
    TIME,
)
from weft.bodies.twin.loop.event_queue import key_for, schedule, take
from weft.bodies.twin.loop.one_event_visits import accept_ahead
from weft.bodies.twin.loop.pointers import compiled, inlined
from weft.bodies.twin.loop.queues import append
from weft.bodies.twin.loop.sending import deliver


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
        m[r + KEY] = key_for(ARRIVE, m[k + RANK], m[k + BORN] << NUMBER_SHIFT, 0)
        schedule(m, r)


@inlined
def bear_ahead(m: Any, x: Any, k: int, r: int, now: int) -> None:
    """Hands a new record to the source's one reader, or sends it there."""
    reader = m[k + QUICK_READER]
    number = m[k + NUMBER]
    m[k + NUMBER] = number + 1
    if m[(reader >> 1) + HOME] == m[k + HOME]:
        m[EVENTS] += 1
        accept_ahead(m, x, reader >> 1, reader & 1, r, now)
        return
    m[r + AT] = reader
    m[r + MASK] = DIRECT
    m[r + TIME] = now + m[k + QUICK_DELAY]
    m[r + KEY] = key_for(ARRIVE, m[k + RANK], number << NUMBER_SHIFT, 0)
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
    elif m[AHEAD] and m[k + QUICK_DELAY] != NOBODY:
        bear_ahead(m, x, k, r, now)
    else:
        deliver(m, x, r, m[k + HOME], now, True)
    plan_next(m, x, k)
