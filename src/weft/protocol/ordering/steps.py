"""What happens to each record that arrives? The compiled step of the ordering machine, one record at a time.

1. The clock is the greatest time seen. A leap far beyond the stream's stride is believed when most of the next records
   agree with it; otherwise who leapt is given out flagged, and the clock stays.
2. A record older than one already released is late: it is given out at once, flagged.
3. All others are held until `time + hold <= clock`, and leave sorted by time, then by arrival.
4. Nothing leaves before the first records have been looked at; more records than memory allows leave early.
"""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.protocol.ordering import delays
from weft.protocol.ordering.fields import (
    ADVANCES,
    AHEAD,
    AHEAD_MAX,
    AHEAD_MIN,
    AHEAD_SINCE,
    AT,
    BUDGET,
    BURST,
    CLOCK,
    CLOCKED,
    FAR,
    HELD,
    HOLD,
    IN_PLACE,
    KNOWN,
    KNOWN_ADVANCES,
    LATE,
    LEAP,
    MEASURED,
    RELEASED,
    RELEASED_ANY,
    REVISION,
    SIGMA,
    STARTED,
    STRIDE,
    STRIDE_OVER,
    TAKEN,
    TOLD,
    TOO_LATE,
    WORST,
    Bools,
    Flags,
    Floats,
    Ints,
    Times,
)
from weft.protocol.ordering.heap import exchange, insert, pop, push

SIGMA_EVERY = 64
counts = compiled(delays.counts)
teaching_max = compiled(delays.teaching_max)
leap_of = compiled(delays.leap_of)
rank_for_share = compiled(delays.rank_for_share)
rank_for_margin = compiled(delays.rank_for_margin)
tells = compiled(delays.tells)
spent = compiled(delays.spent)
run_of_late = compiled(delays.run_of_late)
enough = compiled(delays.enough)
deviation = compiled(delays.deviation)


@compiled
def take(  # noqa: PLR0912, PLR0915 one loop, so that nothing it keeps has to leave the registers
    i: Ints, f: Floats, marks: Times, ring: Floats, ranked: Floats, held_t: Times, held_n: Ints, ahead_t: Times,
    ahead_n: Ints, times: Times, known: Bools, share: float, margin: float, waited_part: float, most: int, out: Ints,
    flags: Flags, wait: Floats, seen: Floats, holds: Floats,
) -> int:  # fmt: skip
    """Take records in; returns how many left, into `out`, `flags` and `wait`; delays and holds go by record.

    What the loop touches for every record lies in local names, which the compiler keeps in registers.
    """
    count, window = 0, len(ring)
    first = i[TAKEN]
    clocked, advances, started, held, late = i[CLOCKED], i[ADVANCES], i[STARTED], i[HELD], i[LATE]
    measured, n, at, far, ahead, released_any = i[MEASURED], i[KNOWN], i[AT], i[FAR], i[AHEAD], i[RELEASED_ANY]
    hold, sigma, stride, told = f[HOLD], f[SIGMA], f[STRIDE], f[TOLD]
    budget, burst, worst = f[BUDGET], f[BURST], f[WORST]
    clock, released = marks[CLOCK], marks[RELEASED]
    leap = leap_of(hold, stride)
    one_in = delays.ONE_IN_LATE if share < 0 else delays.ONE_IN_ALL
    for k in range(len(times)):
        time, number = times[k], first + k
        seen[k], holds[k] = 0.0, hold if started else 0.0
        if not known[k]:
            out[count], flags[count], wait[count] = number, TOO_LATE, 0.0
            count += 1
            continue
        if ahead > 0:
            i[AHEAD_SINCE] += 1
        if advances >= KNOWN_ADVANCES and time > clock and float(time - clock) > leap:
            if ahead == 0:
                i[AHEAD_SINCE] = 1
            ahead_t[ahead], ahead_n[ahead] = time, number
            ahead += 1
        else:
            delay, missed = 0.0, 0
            if not clocked:
                clocked, clock = 1, time
            elif time > clock:
                advances += 1
                stride += (float(time - clock) - stride) / min(advances, STRIDE_OVER)
                clock = time
            else:
                delay = float(clock - time)
            if released_any and time < released:
                # Within the hold it would have had its place: others left ahead of it.
                revises = waited_part < 1.0 and delay <= hold
                missed = 0 if revises else 1
                late += missed
                out[count], flags[count], wait[count] = number, REVISION if revises else TOO_LATE, delay
                count += 1
            else:
                push(held_t, held_n, held, time, number)
                held += 1
            measured += 1
            if share >= 0:
                budget = spent(budget, share, missed, 1, measured)
                burst = run_of_late(burst, share, missed, 1)
                worst = max(worst, burst)
            if measured & 1023 == 0:
                far >>= 1
            learns = delay > 0.0 or share >= 0
            if learns and delay > teaching_max(far, stride, most):
                far += 1
                learns = False
            if learns:
                if n < window:
                    insert(ranked, n, delay)
                    n += 1
                elif counts(number, one_in):
                    if ring[at] != delay:
                        exchange(ranked, n, ring[at], delay)
                else:
                    learns = False
            if learns:
                ring[at] = delay
                at = at + 1 if at + 1 < window else 0
                if share < 0:
                    rank = rank_for_margin(n)
                    if margin > 0 and (measured % SIGMA_EVERY == 0 or n < SIGMA_EVERY):
                        sigma = deviation(ranked, rank)
                    hold = ranked[rank] + margin * sigma
                else:
                    hold = ranked[rank_for_share(n, share, budget, worst, measured, 1)]
                if told > 0 and tells(i, f, marks, measured, clock, window):
                    hold = max(hold, told)
                leap = leap_of(hold, stride)
            seen[k], holds[k] = delay, hold if started else 0.0
        due = started == 1
        first_looked = not due and (held > most or enough(measured, n, ranked, share))
        if first_looked or (ahead > 0 and i[AHEAD_SINCE] >= AHEAD_MAX):
            i[AHEAD], i[HELD], i[ADVANCES], i[MEASURED], i[KNOWN], i[AT] = ahead, held, advances, measured, n, at
            f[HOLD], f[STRIDE], marks[CLOCK] = hold, stride, clock
            if ahead > 0 and i[AHEAD_SINCE] >= AHEAD_MAX:
                count = settle(i, f, marks, held_t, held_n, ahead_t, ahead_n, out, flags, wait, count)
            if first_looked:
                left = _leave_out(i, f, marks, held_t, held_n, out, flags, wait, count)
                due = left == count
                count = left
                started = 1 if due else 0
            ahead, held, advances, measured, n, at = i[AHEAD], i[HELD], i[ADVANCES], i[MEASURED], i[KNOWN], i[AT]
            hold, stride, clock = f[HOLD], f[STRIDE], marks[CLOCK]
            leap = leap_of(hold, stride)
        if due:
            while held > 0 and (float(clock - held_t[0]) >= hold * waited_part or held > most):
                released, released_any = held_t[0], 1
                out[count], flags[count] = held_n[0], IN_PLACE
                wait[count] = max(0.0, float(clock - released))
                count += 1
                pop(held_t, held_n, held)
                held -= 1
    i[TAKEN] += len(times)
    i[CLOCKED], i[ADVANCES], i[STARTED], i[HELD], i[LATE] = clocked, advances, started, held, late
    i[MEASURED], i[KNOWN], i[AT], i[FAR], i[AHEAD], i[RELEASED_ANY] = measured, n, at, far, ahead, released_any
    f[HOLD], f[SIGMA], f[STRIDE], f[BUDGET], f[BURST], f[WORST] = hold, sigma, stride, budget, burst, worst
    marks[CLOCK], marks[RELEASED] = clock, released
    return count


@compiled
def settle(
    i: Ints, f: Floats, marks: Times, held_t: Times, held_n: Ints, ahead_t: Times, ahead_n: Ints, out: Ints,
    flags: Flags, wait: Floats, count: int,
) -> int:  # fmt: skip
    """Decide on those ahead of the clock: the stream went there, or they are alone and leave flagged."""
    n = i[AHEAD]
    believed = 2 * n > i[AHEAD_SINCE] and n >= AHEAD_MIN
    for a in range(1, n):  # few: sorted where they lie
        time, number, b = ahead_t[a], ahead_n[a], a
        while b > 0 and ahead_t[b - 1] > time:
            ahead_t[b], ahead_n[b] = ahead_t[b - 1], ahead_n[b - 1]
            b -= 1
        ahead_t[b], ahead_n[b] = time, number
    i[AHEAD] = 0
    for a in range(n):
        # Of those who leapt together, one far beyond the rest is still alone.
        if a > 0 and float(ahead_t[a] - marks[CLOCK]) > leap_of(f[HOLD], f[STRIDE]):
            believed = False
        if believed:
            push(held_t, held_n, i[HELD], ahead_t[a], ahead_n[a])
            i[HELD] += 1
            marks[CLOCK] = ahead_t[a]
        else:
            out[count], flags[count], wait[count] = ahead_n[a], TOO_LATE, 0.0
            count += 1
    return count


@compiled
def _leave_out(
    i: Ints, f: Floats, marks: Times, held_t: Times, held_n: Ints, out: Ints, flags: Flags, wait: Floats, count: int
) -> int:
    """Flag those of the first records that are far ahead of the rest; the start is then made again without them."""
    n = i[HELD]
    ranked = np.sort(held_t[:n])
    last = n - 1
    for top in range(n - 1, max(1, n - AHEAD_MAX), -1):
        span = float(ranked[top - 1] - ranked[0])
        if span > 0 and float(ranked[top] - ranked[top - 1]) > LEAP * span / top:
            last = top - 1
    if last == n - 1:
        return count
    f[STRIDE], f[HOLD] = float(ranked[last] - ranked[0]) / (last + 1), 0.0
    marks[CLOCK] = ranked[last]
    i[ADVANCES], i[MEASURED], i[KNOWN], i[AT], i[HELD] = KNOWN_ADVANCES, 0, 0, 0, 0
    for k in range(n):
        time, number = held_t[k], held_n[k]
        if time > ranked[last]:
            out[count], flags[count], wait[count] = number, TOO_LATE, 0.0
            count += 1
        else:
            push(held_t, held_n, i[HELD], time, number)
            i[HELD] += 1
    return count
