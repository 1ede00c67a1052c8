"""Micro-batches: when one ends its results leave the site, and the next begins at its trigger with all that waits."""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.loop.columns import (
    ARRIVE,
    AT,
    BATCHING,
    DOWN,
    FIRST,
    HEAD,
    INDEX,
    INTERVAL,
    KEY,
    LATER,
    LATER_END,
    MASK,
    NEXT,
    NOBODY,
    OUT,
    POKED,
    RANK,
    RELEASED,
    SEQ,
    SERVING,
    STREAM,
    TAIL,
    TIME,
    TRIGGER,
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
def turn_batch(m: Any, x: Any, s: int, now: int) -> None:
    """Ends a batch that has nothing left to do, and begins the next where its time has come."""
    m[s + POKED] = 0
    if m[s + DOWN]:
        return
    if m[s + BATCHING]:
        if m[s + SERVING] != NOBODY:
            return
        if m[s + HEAD] != NOBODY:
            start_next(m, x, s, now)
            return
        m[s + BATCHING] = 0
        let_out(m, x, s, now)
    if m[s + LATER] == NOBODY:
        return
    if now < m[s + TRIGGER]:
        poke(m, s, m[s + TRIGGER])
        return
    m[s + BATCHING] = 1
    m[s + FIRST] = 1
    m[s + HEAD] = m[s + LATER]
    m[s + TAIL] = m[s + LATER_END]
    m[s + LATER] = NOBODY
    interval = m[s + INTERVAL]
    m[s + TRIGGER] = now + interval - now % interval if interval > 0 else now
    stay(m, x, s, now)
    start_next(m, x, s, now)
