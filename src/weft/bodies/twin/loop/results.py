"""What becomes of a record that was served: filters pass it on, windows and joins make others of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin.loop.chance import uniform
from weft.bodies.twin.loop.columns import (
    AT,
    BIRTH,
    CONTRIBUTING,
    ENDED,
    FILTER,
    FIRST_OF,
    FLOATS,
    GREATEST,
    JOIN_RATE_RECORDS,
    JOIN_RECORDS,
    JOIN_SECONDS,
    KEY_SELECTIVITY,
    KIND,
    LATENESS,
    LENGTH,
    LOW,
    RATE_MAX_0,
    RATE_MAX_1,
    RESULTS_MAX,
    RING_0,
    RING_1,
    RING_SIZE,
    SELECTIVITY,
    SEQ,
    SIDE,
    STREAM,
    WINDOW,
    WINDOW_HEAD,
    WINDOW_SECONDS,
    WINDOWS_N,
)
from weft.bodies.twin.loop.event_queue import give, take
from weft.bodies.twin.loop.pointers import compiled, inlined
from weft.bodies.twin.loop.sending import deliver


@inlined
def whole(m: Any, o: int, expected: float) -> int:
    """A number of records with this mean: the whole part, and one more by chance."""
    least = int(min(expected, RESULTS_MAX))
    if np.float64(least) == expected:
        return least
    return int(min(expected, RESULTS_MAX) + uniform(np.uint64(m[o + KEY_SELECTIVITY]), m[o + ENDED]))


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
        return min(seen, np.int64(length), size), selectivity * 0.5 * min(most, counted * 1e9 / max(span, 1))
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
    m[r + SEQ] = 0
    deliver(m, x, r, s, now, False)


@compiled
def results_most(m: Any, x: Any, r: int, now: int) -> Any:
    """A bound on how many results the end of a service will give."""
    o = m[m[r + AT] + FIRST_OF]
    kind = m[o + KIND]
    selectivity = x[m[o + FLOATS] + SELECTIVITY]
    if kind == FILTER:
        return int(min(selectivity, RESULTS_MAX)) + 1
    if kind in (JOIN_RECORDS, JOIN_SECONDS):
        return int(min(partners(m, x, o, m[r + SIDE], now)[1], RESULTS_MAX)) + 1
    w = m[o + WINDOW]
    most = 1
    for k in range(m[w + WINDOWS_N]):
        most += int(min((m[w + WINDOW_HEAD + 2 * k] + 1) * selectivity, RESULTS_MAX)) + 1
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
