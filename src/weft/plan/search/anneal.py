"""The search itself: annealing with moves, swaps, chains of moves and chains for chains, judged by what they change."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.chance import Words, below, share
from weft.plan.search.incremental import exchange, fits, shift, trade
from weft.plan.search.move_costs import plain, trial, trial_exchange
from weft.plan.search.packed import Bits

CHAIN_MAX = 12
SWAPS = 0.1
CHAINS = 0.15


@compiled
def drawn(heat: float, chance: Words) -> float:
    """The largest increase of the score that this step accepts (Metropolis), drawn before the step is tried."""
    return float(-heat * np.log(1.0 - share(chance)))


@compiled
def may_stand(i: Ints, b: Bits, op: int, site: int) -> bool:
    """Whether pins and what stands still leave a site to an operator."""
    return not i[c.CHOOSES] or b[op * i[c.SITES] + site] != 0


@compiled
def target(i: Ints, op: int, chance: Words) -> int:
    """A site to try: where a neighbour stands, half of the time, else any."""
    if below(chance, 2) == 0:
        ins = i[i[c.IN_AT] + op + 1] - i[i[c.IN_AT] + op]
        outs = i[i[c.OUT_AT] + op + 1] - i[i[c.OUT_AT] + op]
        if ins + outs > 0:
            at = below(chance, ins + outs)
            if at < ins:
                return int(i[i[c.HOME] + i[i[c.IN_FROM] + i[i[c.IN_AT] + op] + at]])
            return int(i[i[c.HOME] + i[i[c.OUT_TO] + i[i[c.OUT_AT] + op] + at - ins]])
    return below(chance, i[c.SITES])


@compiled
def _move(i: Ints, f: Floats, b: Bits, movable: Ints, most: float, chance: Words) -> float:
    op = movable[below(chance, len(movable))]
    old, new = i[i[c.HOME] + op], target(i, op, chance)
    if new == old or not fits(i, b, op, new):
        return 0.0
    if plain(i, op, old, new):
        return shift(i, f, op, new) if trial(i, f, op, new, most) <= most else 0.0
    change = shift(i, f, op, new)
    if change > most:
        shift(i, f, op, old)
        return 0.0
    return change


@compiled
def _swap(i: Ints, f: Floats, b: Bits, movable: Ints, most: float, chance: Words) -> float:
    one, two = movable[below(chance, len(movable))], movable[below(chance, len(movable))]
    here, there = i[i[c.HOME] + one], i[i[c.HOME] + two]
    if here == there or not may_stand(i, b, one, there) or not may_stand(i, b, two, here):
        return 0.0
    if i[c.FREE] and plain(i, one, here, there) and plain(i, two, there, here):
        return exchange(i, f, one, two) if trial_exchange(i, f, one, two, most) <= most else 0.0
    change = exchange(i, f, one, two)
    good = i[c.FREE] or (fits(i, b, one, there) and fits(i, b, two, here))
    if good and change <= most:
        return change
    exchange(i, f, one, two)
    return 0.0


@compiled
def grow(i: Ints, can_move: Ints, chain: Ints, chance: Words) -> int:
    """Operators joined by streams on one site, from the first of a chain on, up to a length drawn by chance."""
    length_max = 2 + below(chance, CHAIN_MAX - 1)
    size, at = 1, 0
    here = i[i[c.HOME] + chain[0]]
    while at < size < length_max:
        op = chain[at]
        ins = i[i[c.IN_AT] + op + 1] - i[i[c.IN_AT] + op]
        outs = i[i[c.OUT_AT] + op + 1] - i[i[c.OUT_AT] + op]
        for edge in range(ins + outs):
            if edge < ins:
                other = i[i[c.IN_FROM] + i[i[c.IN_AT] + op] + edge]
            else:
                other = i[i[c.OUT_TO] + i[i[c.OUT_AT] + op] + edge - ins]
            if size == length_max or other >= len(can_move) or can_move[other] == 0 or i[i[c.HOME] + other] != here:
                continue
            known = False
            for seen in range(size):
                known = known or chain[seen] == other
            if not known:
                chain[size] = other
                size += 1
        at += 1
    return size


@compiled
def _may_all(i: Ints, b: Bits, ops: Ints, size: int, site: int) -> bool:
    good = True
    for at in range(size):
        good = good and may_stand(i, b, ops[at], site)
    return good


@compiled
def _fit_all(i: Ints, b: Bits, ops: Ints, size: int) -> bool:
    good = True
    for at in range(size):
        good = good and fits(i, b, ops[at], i[i[c.HOME] + ops[at]])
    return good


@compiled
def _chain(
    i: Ints, f: Floats, b: Bits, movable: Ints, can_move: Ints, most: float, chance: Words, chain: Ints, back: Ints,
    both: bool,
) -> float:  # fmt: skip
    """A chain of operators to another site, or two chains each to where the other is."""
    chain[0] = movable[below(chance, len(movable))]
    old = i[i[c.HOME] + chain[0]]
    size, count = grow(i, can_move, chain, chance), 0
    if both:
        back[0] = movable[below(chance, len(movable))]
        new = i[i[c.HOME] + back[0]]
    else:
        new = target(i, chain[below(chance, size)], chance)
    if new == old:
        return 0.0
    if both:
        count = grow(i, can_move, back, chance)
    if not _may_all(i, b, chain, size, new) or not _may_all(i, b, back, count, old):
        return 0.0
    change = trade(i, f, chain, size, new, back, count, most)
    if change == np.inf:
        return 0.0
    good = i[c.FREE] or (_fit_all(i, b, chain, size) and _fit_all(i, b, back, count))
    if good and change <= most:
        return change
    trade(i, f, chain, size, old, back, count, np.inf)
    return 0.0


@compiled
def anneal(
    i: Ints, f: Floats, b: Bits, movable: Ints, can_move: Ints, best: Ints, totals: Floats, hot: float, cold: float,
    steps: int, track: bool, chance: Words, swaps: float, chains: float, trades: float,
) -> None:  # fmt: skip
    """So many steps from hot to cold, shares of them swaps, chains of moves, and chains that trade places.

    `totals` are the score now and the best, whose homes are in `best`.
    """
    m = i[c.OPS]
    chain, back = np.empty(CHAIN_MAX + 1, np.int64), np.empty(CHAIN_MAX + 1, np.int64)
    cooling = (cold / hot) ** (1.0 / max(1, steps)) if hot > 0.0 else 1.0
    heat, now, least = hot, totals[0], totals[1]
    for _ in range(steps):
        kind, most = share(chance), drawn(heat, chance)
        if kind < swaps:
            change = _swap(i, f, b, movable, most, chance)
        elif kind < swaps + trades:
            change = _chain(i, f, b, movable, can_move, most, chance, chain, back, True)
        elif kind < swaps + trades + chains:
            change = _chain(i, f, b, movable, can_move, most, chance, chain, back, False)
        else:
            change = _move(i, f, b, movable, most, chance)
        now += change
        heat *= cooling
        if track and now < least - 1e-12 * abs(least):
            least = now
            best[:] = i[i[c.HOME] : i[c.HOME] + m]
    totals[0] = now
    totals[1] = least


@compiled
def descend(i: Ints, f: Floats, b: Bits, movable: Ints, rounds: int) -> float:
    """Every operator to its best site, over and over, until none moves or the rounds are over."""
    total = 0.0
    for _ in range(rounds):
        moved = False
        for op in movable:
            old, best, gain = i[i[c.HOME] + op], -1, -1e-9
            for new in range(i[c.SITES]):
                if new == old or not fits(i, b, op, new):
                    continue
                if plain(i, op, old, new):
                    change = trial(i, f, op, new, gain)
                else:
                    change = shift(i, f, op, new)
                    shift(i, f, op, old)
                if change < gain:
                    best, gain = new, change
            if best >= 0:
                total += shift(i, f, op, best)
                moved = True
        if not moved:
            break
    return total


@compiled
def rises(i: Ints, f: Floats, b: Bits, movable: Ints, samples: int, chance: Words) -> Floats:
    """What random moves from here would make worse, to know how hot to begin."""
    found = np.zeros(samples)
    count = 0
    for _ in range(samples * 4):
        if count == samples:
            break
        op = movable[below(chance, len(movable))]
        old, new = i[i[c.HOME] + op], below(chance, i[c.SITES])
        if new == old or not fits(i, b, op, new):
            continue
        change = shift(i, f, op, new)
        shift(i, f, op, old)
        if change > 0.0:
            found[count] = change
            count += 1
    return found[:count]
