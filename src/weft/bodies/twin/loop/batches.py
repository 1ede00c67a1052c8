"""Micro-batches: when one ends its results leave the site, and the next begins at its trigger with all that waits.

On Spark results leave shortly before the end: `AFTER` is left of the batch then.

Where sites share one machine, a batch is slowed by those that are under way when it begins; what batches cost scatters,
and falls from the first ones on. A site that closes windows lets the results of a batch go with the next one, which
comes without records where none wait: only then Spark knows that the watermark has moved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.chance import normal
from weft.bodies.twin.loop.columns import (
    AFTER,
    ARRIVE,
    AT,
    BASE,
    BATCHES_N,
    BATCHING,
    BUSY,
    CLOSES,
    COOLING,
    CROWD,
    DOWN,
    EMPTY,
    EXTRA,
    FIRST,
    FIXED,
    GIVEN,
    HEAD,
    INDEX,
    INTERVAL,
    KEPT,
    KEPT_END,
    KEY,
    KEY_BATCH,
    LATER,
    LATER_END,
    MASK,
    NEXT,
    NOBODY,
    OUT,
    OUT_END,
    POKED,
    RANK,
    RELEASED,
    ROOM,
    SEQ,
    SERVING,
    SHARED,
    SPEED,
    SPREAD,
    STREAM,
    TAIL,
    TIME,
    TRIGGER,
    UNDER_WAY,
)
from weft.bodies.twin.loop.event_queue import key_for, schedule
from weft.bodies.twin.loop.pointers import compiled
from weft.bodies.twin.loop.sending import send
from weft.bodies.twin.loop.serving import poke, start_next, stay


@compiled
def let_out(m: Any, x: Any, s: int, now: int) -> None:
    """The results of a batch leave, in the order they were made."""
    r = m[s + OUT]
    m[s + OUT] = NOBODY
    while r != NOBODY:
        following = m[r + NEXT]
        m[r + SEQ] = RELEASED
        there = m[r + AT]
        if there == s:
            m[r + TIME] = now
            m[r + KEY] = key_for(ARRIVE, m[m[r + STREAM] + RANK], m[r + KEY], m[s + INDEX])
            schedule(m, r)
        else:
            send(m, x, r, s, there, m[r + MASK], now, False)
        r = following


@compiled
def weigh_batch(m: Any, x: Any, s: int) -> None:
    """A batch begins among others: what it costs, and how fast the site is for as long as it lasts."""
    shared = m[SHARED]
    n = m[s + BATCHES_N]
    m[s + BATCHES_N] = n + 1
    m[UNDER_WAY] += 1
    x[m[s + SPEED]] = 1.0 / (1.0 + x[shared + CROWD] * max(0.0, np.float64(m[UNDER_WAY]) - x[shared + ROOM]))
    scatter = max(0.3, 1.0 + x[shared + SPREAD] * normal(np.uint64(m[s + KEY_BATCH]), n))
    m[s + FIXED] = np.int64(np.float64(m[s + BASE] + m[s + EXTRA]) * scatter + 0.5)
    m[s + EXTRA] = np.int64(np.float64(m[s + EXTRA]) * x[shared + COOLING])


@compiled
def give_out(m: Any, x: Any, s: int, now: int) -> bool:
    """What a batch gave leaves, or where windows close, what the one before gave; whether it goes on after that."""
    had = m[s + BATCHING]
    m[s + BATCHING] = 0
    if m[SHARED] != NOBODY and m[s + CLOSES]:
        first, last = m[s + OUT], m[s + OUT_END]
        m[s + OUT], m[s + OUT_END] = m[s + KEPT], m[s + KEPT_END]
        m[s + KEPT], m[s + KEPT_END] = first, last
    let_out(m, x, s, now)
    if m[SHARED] == NOBODY or m[s + AFTER] == 0:
        return False
    m[s + BATCHING] = had + GIVEN
    takes = np.int64(np.float64(m[s + AFTER]) / x[m[s + SPEED]] + 0.5)
    m[s + BUSY] += takes
    poke(m, s, now + takes)
    return True


@compiled
def begin_empty(m: Any, x: Any, s: int, now: int) -> None:
    """A batch without records, which closes windows."""
    weigh_batch(m, x, s)
    m[s + BATCHING] = EMPTY
    takes = np.int64(np.float64(m[s + FIXED]) / x[m[s + SPEED]] + 0.5)
    m[s + BUSY] += takes
    poke(m, s, now + takes)


@compiled
def turn_batch(m: Any, x: Any, s: int, now: int) -> None:
    """Ends a batch that has nothing left to do, and begins the next where its time has come."""
    m[s + POKED] = 0
    if m[s + DOWN]:
        return
    had = m[s + BATCHING]
    if had:
        if had <= EMPTY:
            if m[s + SERVING] != NOBODY:
                return
            if m[s + HEAD] != NOBODY:
                start_next(m, x, s, now)
                return
            if give_out(m, x, s, now):
                return
        m[s + BATCHING] = 0
        if m[SHARED] != NOBODY:
            m[UNDER_WAY] -= 1
    had_records = had in (1, 1 + GIVEN)
    if m[s + LATER] == NOBODY:
        if had_records and m[SHARED] != NOBODY and m[s + CLOSES]:
            begin_empty(m, x, s, now)
        return
    if now < m[s + TRIGGER]:
        poke(m, s, m[s + TRIGGER])
        return
    if m[SHARED] != NOBODY:
        weigh_batch(m, x, s)
    m[s + BATCHING] = 1
    m[s + FIRST] = 1
    m[s + HEAD] = m[s + LATER]
    m[s + TAIL] = m[s + LATER_END]
    m[s + LATER] = NOBODY
    interval = m[s + INTERVAL]
    m[s + TRIGGER] = now + interval - now % interval if interval > 0 else now
    stay(m, x, s, now)
    start_next(m, x, s, now)
