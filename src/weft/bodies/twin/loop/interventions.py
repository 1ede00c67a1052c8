"""What steering does to the record plane, between two events: hold, release, move, crash, restart, change speed."""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.loop.columns import (
    ARRIVED,
    AT,
    BATCHING,
    DOWN,
    FIRST_OF,
    HANDED_ON,
    HEAD,
    HELD,
    HOME,
    INTERVAL,
    KEY,
    LATER,
    NEVER_NS,
    NEXT,
    NOBODY,
    NUMBER_SHIFT,
    PARKED,
    PARKED_END,
    RANKED,
    READERS,
    READERS_N,
    SEQ,
    SERVING,
    SIDE,
    SPEED,
    STARTED,
    STREAM,
    TAIL,
    TIME,
    WAITING,
    WAITING_MAX,
    WAITS,
)
from weft.bodies.twin.loop.event_queue import schedule
from weft.bodies.twin.loop.pointers import compiled, floats, ints
from weft.bodies.twin.loop.queues import append, dequeue, enqueue
from weft.bodies.twin.loop.sending import copied, hand_over, instance, send
from weft.bodies.twin.loop.serving import count_busy, let_go, poke_next, start_next, stay


@compiled
def break_off(m: Any, x: Any, s: int, now: int) -> Any:
    """Ends the service at a site unfinished; the record, which waits again, is given."""
    old = m[s + SERVING]
    stay(m, x, s, now)
    count_busy(m, s, now)
    r = copied(m, old)
    m[old + AT] = NOBODY  # its event finds nothing to do
    m[s + SERVING] = NOBODY
    m[m[r + AT] + WAITS] += 1
    m[s + WAITING] += 1
    m[s + WAITING_MAX] = max(m[s + WAITING_MAX], m[s + WAITING])
    return r


@compiled
def hold(memory: Any, numbers: Any, o: int, now: int, clean: bool) -> Any:
    """Lets an operator serve no more; clean: its record in service ends first. When that is, or the present moment."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    m[o + HELD] += 1
    s = m[o + HOME]
    r = m[s + SERVING]
    if r == NOBODY or m[r + AT] != o:
        return now
    if clean:
        return m[r + TIME]
    r = break_off(m, x, s, now)
    m[r + NEXT] = m[o + PARKED]
    if m[o + PARKED] == NOBODY:
        m[o + PARKED_END] = r
    m[o + PARKED] = r
    start_next(m, x, s, now)
    return now


@compiled
def unhold(memory: Any, maker: int) -> None:
    """Takes one hold off a source or operator; it goes on with the next event that is run."""
    let_go(ints(memory.ctypes.data), maker)


@compiled
def park(m: Any, head: int, o: int) -> None:
    """Takes an operator's records out of a queue; the others keep their order."""
    kept = NOBODY
    last = NOBODY
    while m[head] != NOBODY:
        r = dequeue(m, head)
        if m[r + AT] == o:
            append(m, o + PARKED, r)
            continue
        m[r + NEXT] = NOBODY
        if kept == NOBODY:
            kept = r
        else:
            m[last + NEXT] = r
        last = r
    while kept != NOBODY:
        r = kept
        kept = m[r + NEXT]
        enqueue(m, head, r)


@compiled
def rehome(memory: Any, numbers: Any, o: int, there: int, now: int) -> None:
    """Takes an operator that is held, and all that waits for it, to another site."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    here = m[o + HOME]
    stay(m, x, here, now)
    stay(m, x, there, now)
    park(m, here + HEAD, o)
    if m[here + INTERVAL] >= 0:
        park(m, here + LATER, o)
    m[o + HOME] = there
    m[here + WAITING] -= m[o + WAITS]
    m[there + WAITING] += m[o + WAITS]
    m[there + WAITING_MAX] = max(m[there + WAITING_MAX], m[there + WAITING])


@compiled
def disband(memory: Any, numbers: Any, o: int, now: int) -> None:
    """An instance that gets no more records hands over those that wait for it; the one in service ends here.

    They go in the order of their turns: those of the running batch before those of the next.
    """
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    s = m[o + HOME]
    stay(m, x, s, now)
    park(m, s + HEAD, o)
    if m[s + INTERVAL] >= 0:
        park(m, s + LATER, o)
    r = m[o + PARKED]
    m[o + PARKED] = NOBODY
    while r != NOBODY:
        following = m[r + NEXT]
        m[o + WAITS] -= 1
        m[o + ARRIVED] -= 1
        m[s + WAITING] -= 1
        stream = m[r + STREAM]
        for i in range(m[stream + READERS_N]):
            at = m[stream + READERS] + 2 * i
            if m[at] == m[o + FIRST_OF] and m[at + 1] == m[r + SIDE]:
                number = HANDED_ON | (m[r + SEQ] & (HANDED_ON - 1))
                m[r + KEY] = number << NUMBER_SHIFT
                target = instance(m, at, number)
                if m[target + HOME] == s:
                    hand_over(m, x, target, m[at + 1], r, now)
                else:
                    send(m, x, r, s, m[target + HOME], 1 << i, now, False)
                break
        r = following


@compiled
def crash(memory: Any, numbers: Any, s: int, now: int) -> None:
    """A site serves no more; the record in service will be served anew."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    m[s + DOWN] = 1
    if m[s + SERVING] != NOBODY:
        put_first(m, s, break_off(m, x, s, now))


@compiled
def put_first(m: Any, s: int, r: int) -> None:
    """Puts a record where its turn is next, or where its rank says."""
    if m[RANKED]:
        enqueue(m, s + HEAD, r)
        return
    m[r + NEXT] = m[s + HEAD]
    if m[s + HEAD] == NOBODY:
        m[s + TAIL] = r
    m[s + HEAD] = r


@compiled
def restart(memory: Any, numbers: Any, s: int, now: int) -> None:
    """A site that was lost serves again."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    m[s + DOWN] = 0
    stay(m, x, s, now)
    if m[s + SERVING] == NOBODY:
        start_next(m, x, s, now)
    if m[s + INTERVAL] >= 0 and not m[s + BATCHING]:
        poke_next(m, s, now)


@compiled
def set_speed(memory: Any, numbers: Any, s: int, speed: float, now: int) -> None:
    """A site works faster or slower from now on; what is left of the record in service takes accordingly."""
    m, x = ints(memory.ctypes.data), floats(numbers.ctypes.data)
    before = x[m[s + SPEED]]
    x[m[s + SPEED]] = speed
    r = m[s + SERVING]
    if r == NOBODY:
        return
    if before <= 0.0 or speed <= 0.0:
        put_first(m, s, break_off(m, x, s, now))
        start_next(m, x, s, now)
        return
    count_busy(m, s, now)
    again = copied(m, r)
    m[again + TIME] = min(NEVER_NS, now + int((m[r + TIME] - now) * before / speed + 0.5))
    m[r + AT] = NOBODY
    m[s + SERVING] = again
    m[s + STARTED] = now
    schedule(m, again)
