"""What happens to a batch that arrives at once? The steps of the ordering machine over whole arrays.

Within a batch nothing is late, so delays are measured against the clock before it, and what is due leaves after it.
Nothing depends on the order of the records in the batch: done again after a crash, a batch gives the same.
"""

from __future__ import annotations

import numpy as np

from weft.protocol.ordering.delays import (
    ONE_IN_ALL,
    deviation,
    enough,
    leap_of,
    rank_for_margin,
    rank_for_share,
    run_of_late,
    spent,
    teaching_max,
    tells,
)
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
    FAR_STRIDES,
    HELD,
    HOLD,
    IN_PLACE,
    KNOWN,
    KNOWN_ADVANCES,
    LATE,
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
    Unit,
)


def take(unit: Unit, times: Times, known: Bools) -> tuple[Ints, Flags, Floats, Floats]:
    """Take a batch in: who leaves, how, after which wait; and the delays, by record."""
    i, marks = unit.ints, unit.marks
    numbers = np.arange(i[TAKEN], i[TAKEN] + len(times), dtype=np.int64)
    i[TAKEN] += len(times)
    delays = np.zeros(len(times))
    if i[CLOCKED]:
        delays[known] = np.maximum(marks[CLOCK] - times[known], 0)
    is_late = known & (times < marks[RELEASED]) if i[RELEASED_ANY] else np.zeros(len(times), np.bool_)
    fresh = known & ~is_late
    had_clock = bool(i[CLOCKED])
    new_t, new_n = _sorted(times[fresh], numbers[fresh])
    new_t, new_n, alone = _believed(unit, new_t, new_n, int(known.sum()))
    # Within the hold they would have had their place: others left ahead of them.
    revises = is_late & (delays <= unit.floats[HOLD]) if unit.order.speculate else np.zeros(len(times), np.bool_)
    missed = int((is_late & ~revises).sum())
    i[LATE] += missed
    if had_clock:
        learn(unit, np.sort(delays[known]), missed)
    aside = ~known | is_late
    due, wait = _due(unit, new_t, new_n)
    out = np.concatenate([numbers[aside], alone, due])
    flags = np.full(len(out), IN_PLACE, np.int8)
    flags[: len(out) - len(due)] = TOO_LATE
    flags[: int(aside.sum())][revises[aside]] = REVISION
    waits = np.concatenate([np.where(revises, delays, 0.0)[aside], np.zeros(len(alone)), wait])
    return out, flags, waits, delays


def _sorted(times: Times, numbers: Ints) -> tuple[Times, Ints]:
    order = np.argsort(times, kind="stable")
    return times[order], numbers[order]


def _believed(unit: Unit, times: Times, numbers: Ints, came: int) -> tuple[Times, Ints, Ints]:
    """Advance the clock, but not after the few who are far ahead: those wait for company, or are alone at last."""
    i, f, marks = unit.ints, unit.floats, unit.marks
    waiting = int(i[AHEAD])
    if waiting:
        times = np.concatenate([unit.ahead_t[:waiting], times])
        numbers = np.concatenate([unit.ahead_n[:waiting], numbers])
        times, numbers = _sorted(times, numbers)
        i[AHEAD] = 0
    if not len(times):
        i[AHEAD_SINCE] = 0
        return times, numbers, numbers
    if not i[CLOCKED]:
        i[CLOCKED], marks[CLOCK] = 1, times[0]
    above = np.concatenate([marks[CLOCK : CLOCK + 1], times[times > marks[CLOCK]]])
    gaps = np.diff(above).astype(np.float64)
    strides = gaps[gaps > 0]
    usual = f[STRIDE] if i[ADVANCES] >= KNOWN_ADVANCES else float(np.median(strides)) if len(strides) else 0.0
    known = i[ADVANCES] >= KNOWN_ADVANCES or len(strides) >= KNOWN_ADVANCES
    leaps = np.flatnonzero(gaps > leap_of(f[HOLD], usual)) if known else np.empty(0, np.int64)
    tail = leaps[leaps > len(gaps) - AHEAD_MAX]
    ahead = len(gaps) - int(tail[0]) if len(tail) else 0
    alone = numbers[:0]
    if ahead:
        i[AHEAD_SINCE] = i[AHEAD_SINCE] + came if waiting else ahead
        if i[AHEAD_SINCE] < AHEAD_MAX:
            unit.ahead_t[:ahead], unit.ahead_n[:ahead], i[AHEAD] = times[-ahead:], numbers[-ahead:], ahead
            times, numbers = times[:-ahead], numbers[:-ahead]
        elif not (2 * ahead > i[AHEAD_SINCE] and ahead >= AHEAD_MIN):
            alone = numbers[-ahead:]
            times, numbers = times[:-ahead], numbers[:-ahead]
    if not i[AHEAD]:
        i[AHEAD_SINCE] = 0
    if len(times) and times[-1] > marks[CLOCK]:
        usual_gaps = np.delete(gaps, leaps)
        usual_gaps = usual_gaps[usual_gaps > 0]
        if len(usual_gaps):
            i[ADVANCES] += len(usual_gaps)
            weight = len(usual_gaps) / min(i[ADVANCES], max(STRIDE_OVER, len(usual_gaps)))
            f[STRIDE] += (float(usual_gaps.mean()) - f[STRIDE]) * weight
        marks[CLOCK] = times[-1]
    return times, numbers, alone


def learn(unit: Unit, delays: Floats, late: int = 0) -> None:
    """Take in sorted delays: evenly chosen ones, as many as the window has room for, in an order that mixes them."""
    i, f, window = unit.ints, unit.floats, len(unit.ring)
    share, came = unit.order.late_max, len(delays)
    i[MEASURED] += came
    if share is not None:
        f[BUDGET] = spent(f[BUDGET], share, late, len(delays), int(i[MEASURED]))
        f[BURST] = run_of_late(f[BURST], share, late, len(delays))
        f[WORST] = max(f[WORST], f[BURST])
    i[FAR] = i[FAR] // 2 + int((delays > FAR_STRIDES * f[STRIDE]).sum())
    if share is None:
        delays = delays[delays > 0]
    delays = delays[delays <= teaching_max(int(i[FAR]), f[STRIDE], unit.order.held_max)]
    if share is not None and i[KNOWN] == window:
        delays = delays[int(i[MEASURED]) * 2654435761 % 2**32 % ONE_IN_ALL :: ONE_IN_ALL]
    if len(delays) > window:
        delays = delays[np.linspace(0, len(delays) - 1, window).astype(np.int64)]
    if len(delays):
        golden = np.argsort(np.arange(len(delays)) * 0.6180339887498949 % 1.0, kind="stable")
        places = (i[AT] + np.arange(len(delays))) % window
        unit.ring[places] = delays[golden]
        i[AT] = (i[AT] + len(delays)) % window
        i[KNOWN] = min(window, i[KNOWN] + len(delays))
        unit.ranked[: i[KNOWN]] = np.sort(unit.ring[: i[KNOWN]])
    set_hold(unit, came)


def set_hold(unit: Unit, came: int) -> None:
    """The hold that the window asks for, where so many records came at once."""
    i, f, share = unit.ints, unit.floats, unit.order.late_max
    n = int(i[KNOWN])
    hold = 0.0
    if n and share is not None:
        hold = unit.ranked[rank_for_share(n, share, f[BUDGET], f[WORST], int(i[MEASURED]), came)]
    elif n:
        rank = rank_for_margin(n)
        f[SIGMA] = deviation(unit.ranked, rank)
        hold = unit.ranked[rank] + unit.order.lambda_ * f[SIGMA]
    told = tells(i, f, unit.marks, int(i[MEASURED]), unit.marks[CLOCK], len(unit.ring))
    f[HOLD] = max(hold, f[TOLD]) if told else hold


def _due(unit: Unit, times: Times, numbers: Ints) -> tuple[Ints, Floats]:
    i, f, marks = unit.ints, unit.floats, unit.marks
    held = int(i[HELD])
    times, numbers = _sorted(np.concatenate([unit.held_t[:held], times]), np.concatenate([unit.held_n[:held], numbers]))
    share = unit.order.late_max
    if not i[STARTED] and enough(int(i[MEASURED]), int(i[KNOWN]), unit.ranked, -1.0 if share is None else share):
        i[STARTED] = 1
    waits = (marks[CLOCK] - times).astype(np.float64)
    count = int((waits >= f[HOLD] * (1 - unit.order.speculate)).sum()) if i[STARTED] else 0
    count = max(count, len(times) - unit.order.held_max)
    if count:
        i[STARTED], i[RELEASED_ANY], marks[RELEASED] = 1, 1, times[count - 1]
    unit.held_t, unit.held_n, i[HELD] = times[count:], numbers[count:], len(times) - count
    return numbers[:count], np.maximum(waits[:count], 0.0)
