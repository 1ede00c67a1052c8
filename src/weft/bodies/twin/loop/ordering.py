"""How long does ordering keep a record back? The learned hold of an ordering operator, over the loop's memory.

The rule is that of `protocol/ordering`; a record's event time is its birth. What comes too late for its place is put
aside, as live: it is in no result, and counts as dropped. Two simplifications: a record leaves when its hold is over by
the clock on the wall, not when the next record moves the stream's own clock past it; and it is late if it comes after
its hold, whether or not a younger one has left meanwhile.
"""

from __future__ import annotations

import math
from typing import Any

from weft.bodies.twin.loop.columns import (
    ARRIVE,
    AT,
    BIRTH,
    INDEX,
    KEY,
    MASK,
    NUMBER,
    NUMBER_SHIFT,
    ORDER_AT,
    ORDER_CLOCK,
    ORDER_FLOATS,
    ORDER_HEAD,
    ORDER_HOLD,
    ORDER_KNOWN,
    ORDER_LATE,
    ORDER_SEEN,
    ORDER_WAITED,
    ORDER_WINDOW,
    RANK,
    READERS_N,
    STREAM,
    TIME,
    WINDOW,
)
from weft.bodies.twin.loop.event_queue import key_for, schedule
from weft.bodies.twin.loop.pointers import compiled
from weft.bodies.twin.loop.sending import deliver
from weft.bodies.twin.loop.serving import drop
from weft.protocol.ordering import delays
from weft.protocol.ordering.fields import FIRST, FIRST_MAX, LATE_FIRST

ONE_IN_LATE, ONE_IN_ALL, SIGMA_EVERY = delays.ONE_IN_LATE, delays.ONE_IN_ALL, 64
counts = compiled(delays.counts)
rank_for_share = compiled(delays.rank_for_share)
rank_for_margin = compiled(delays.rank_for_margin)
spent = compiled(delays.spent)
run_of_late = compiled(delays.run_of_late)


@compiled
def learn(m: Any, x: Any, w: int, delay: int, late: int) -> None:
    """Takes in how late a record was, and sets the hold."""
    f = m[w + ORDER_FLOATS]
    share, margin = x[f], x[f + 1]
    if share >= 0:
        x[f + 3] = spent(x[f + 3], share, late, 1, m[w + ORDER_SEEN])
        x[f + 4] = run_of_late(x[f + 4], share, late, 1)
        x[f + 5] = max(x[f + 5], x[f + 4])
    if share < 0 and delay == 0:
        return
    ring = w + ORDER_HEAD
    ranked = ring + ORDER_WINDOW
    n, at = m[w + ORDER_KNOWN], m[w + ORDER_AT]
    if n < ORDER_WINDOW:
        place = n
        m[w + ORDER_KNOWN] = n = n + 1
    else:
        if not counts(m[w + ORDER_SEEN], ONE_IN_LATE if share < 0 else ONE_IN_ALL):
            return
        place = 0
        while m[ranked + place] != m[ring + at]:
            place += 1
    while place > 0 and m[ranked + place - 1] > delay:
        m[ranked + place] = m[ranked + place - 1]
        place -= 1
    while place < n - 1 and m[ranked + place + 1] < delay:
        m[ranked + place] = m[ranked + place + 1]
        place += 1
    m[ranked + place] = delay
    m[ring + at] = delay
    m[w + ORDER_AT] = (at + 1) % ORDER_WINDOW
    if share >= 0:
        m[w + ORDER_HOLD] = m[ranked + rank_for_share(n, share, x[f + 3], x[f + 5], m[w + ORDER_SEEN], 1)]
        return
    rank = rank_for_margin(n)
    if margin > 0 and (m[w + ORDER_SEEN] % SIGMA_EVERY == 0 or n < SIGMA_EVERY):
        mean = 0.0
        for k in range(rank + 1):
            mean += m[ranked + k]
        mean /= rank + 1
        squares = 0.0
        for k in range(rank + 1):
            squares += (m[ranked + k] - mean) ** 2
        x[f + 2] = math.sqrt(squares / (rank + 1))
    m[w + ORDER_HOLD] = m[ranked + rank] + int(margin * x[f + 2])


@compiled
def knows(m: Any, x: Any, w: int) -> Any:
    """Whether the first records have told how long to hold; until then none has left, and none is late."""
    seen, known = m[w + ORDER_SEEN], m[w + ORDER_KNOWN]
    if seen < FIRST or x[m[w + ORDER_FLOATS]] < 0:
        return seen >= FIRST
    return seen >= FIRST_MAX or (known >= LATE_FIRST and m[w + ORDER_HEAD + ORDER_WINDOW + known - LATE_FIRST] > 0)


@compiled
def end_order(m: Any, x: Any, o: int, s: int, r: int, now: int) -> None:
    """A record has reached its ordering operator: it goes on when its hold is over; where it is late, never."""
    w = m[o + WINDOW]
    birth = m[r + BIRTH]
    m[w + ORDER_CLOCK] = max(m[w + ORDER_CLOCK], birth)
    delay = m[w + ORDER_CLOCK] - birth
    m[w + ORDER_SEEN] += 1
    hold = m[w + ORDER_HOLD]
    late = 1 if delay > hold and knows(m, x, w) else 0
    m[w + ORDER_LATE] += late
    learn(m, x, w, delay, late)
    if late:
        drop(m, o, r)
        return
    m[r + STREAM] = o
    wait = hold - delay
    if wait <= 0:
        deliver(m, x, r, s, now, False)
        return
    m[w + ORDER_WAITED] += wait
    m[r + AT] = s
    # It arrives here, later, and goes to each reader from here.
    m[r + MASK] = (1 << m[o + READERS_N]) - 1
    m[r + TIME] = now + wait
    m[r + KEY] = key_for(ARRIVE, m[o + RANK], m[o + NUMBER] << NUMBER_SHIFT, m[s + INDEX])
    m[o + NUMBER] += 1
    schedule(m, r)
