"""Where sites fill up, which placement suffers least? Changes judged by the fluid, most of them away from what is full.

Beyond saturation, or while sources swing, no formula of a steady queue tells good from bad. Each try runs the whole
fluid, a thousand times the work of a step of annealing, so there are few, and they begin where other searches ended.
"""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.anneal import CHAIN_MAX, CHAINS, SWAPS, drawn, grow, target
from weft.plan.search.chance import Words, below, share
from weft.plan.search.fluid import Flow, Tides, flow, fluid_ms, tides
from weft.plan.search.incremental import broken, fits
from weft.plan.search.packed import Bits, pack
from weft.plan.search.problem import Problem
from weft.plan.stop import AfterSeconds, AfterSteps, Stop

TRIES_AT_ONCE = 20
# Tries that come with a budget of steps, times operators: some seconds.
WORK = 600_000
TRIES_MIN, TRIES_MAX = 500, 20_000
HOT, COLD = 3e-3, 3e-5
# The share of tries in which two chains trade places.
TRADES = 0.1
LOOKED_AT = 3
# Gains below this share are less than the fluid can tell: in the twin as many of them were losses.
TOLD = 0.02


def relieved(given: Problem, starts: list[Ints], movable: Ints, can_move: Ints, chance: Words, stop: Stop) -> Ints:
    """The placement that the fluid likes best, from the best of these on."""
    packed = pack(given.flat)
    i, f, b = packed
    stream, scratch = flow(given), tides(given)
    m, home = len(given.operators), i[c.HOME]
    worth = []
    for homes in starts:
        i[home : home + m] = homes
        worth.append((broken(i, f), _judged(i, f, stream, scratch)))
    (most, least), first = min(worth), starts[worth.index(min(worth))]
    best = first.copy()
    if len(movable) == 0:
        return best
    totals = np.array([least] * 2)
    i[home : home + m] = best
    _judged(i, f, stream, scratch)
    budget = stop if isinstance(stop, AfterSeconds) else AfterSteps(max(TRIES_MIN, min(TRIES_MAX, WORK // m)))
    began, tried = budget.progress(0), 0
    while not budget(tried):
        at = (budget.progress(tried) - began) / (1.0 - began)
        heat = totals[1] * HOT * (COLD / HOT) ** at
        _climb(i, f, b, stream, scratch, movable, can_move, best, totals, heat, TRIES_AT_ONCE, chance, most)
        tried += TRIES_AT_ONCE
    return best if totals[1] < (1.0 - TOLD) * least else first


@compiled
def _judged(i: Ints, f: Floats, flow: Flow, tides: Tides) -> float:
    """The fluid's word on where operators are now, and the price of those that left where they ran."""
    total = fluid_ms(i, f, flow, i[i[c.HOME] : i[c.HOME] + i[c.NODES]], tides)
    if i[c.RUNS]:
        for op in range(i[c.OPS]):
            before = i[i[c.RUNNING] + op]
            if before >= 0 and before != i[i[c.HOME] + op]:
                total += f[c.PRICE]
    return total


@compiled
def _full(i: Ints, movable: Ints, tides: Tides, chance: Words) -> int:
    """An operator from a site where much waits: of a few drawn, the one behind the longest backlog."""
    op = movable[below(chance, len(movable))]
    for _ in range(LOOKED_AT):
        other = movable[below(chance, len(movable))]
        if tides.backlog[i[i[c.HOME] + other]] > tides.backlog[i[i[c.HOME] + op]]:
            op = other
    return int(op)


@compiled
def _empty(i: Ints, f: Floats, tides: Tides, chance: Words) -> int:
    """A site with room: of a few drawn, the one that is least busy."""
    site = below(chance, i[c.SITES])
    for _ in range(LOOKED_AT):
        other = below(chance, i[c.SITES])
        if tides.load[other] / f[i[c.SPEED] + other] < tides.load[site] / f[i[c.SPEED] + site]:
            site = other
    return site


@compiled
def _propose(
    i: Ints, f: Floats, b: Bits, tides: Tides, movable: Ints, can_move: Ints, ops: Ints, olds: Ints, chance: Words
) -> int:
    """Moves an operator or a chain of them, or two of these to where the other is; how many moved, 0 where none may."""
    home = i[c.HOME]
    ops[0] = _full(i, movable, tides, chance) if below(chance, 2) else movable[below(chance, len(movable))]
    kind = share(chance)
    both = kind < SWAPS + TRADES
    chains = SWAPS <= kind < SWAPS + TRADES + CHAINS
    first = grow(i, can_move, ops, chance) if chains else 1
    size, old = first, i[home + ops[0]]
    if both:
        ops[first] = movable[below(chance, len(movable))]
        new = i[home + ops[first]]
        size += grow(i, can_move, ops[first:], chance) if chains else 1
    else:
        new = target(i, ops[below(chance, first)], chance) if below(chance, 2) else _empty(i, f, tides, chance)
    if new == old:
        return 0
    for at in range(size):
        olds[at] = i[home + ops[at]]
        i[home + ops[at]] = new if at < first else old
    for at in range(size):
        if not fits(i, b, ops[at], i[home + ops[at]]):
            for back in range(size):
                i[home + ops[back]] = olds[back]
            return 0
    return size


@compiled
def _climb(
    i: Ints, f: Floats, b: Bits, flow: Flow, tides: Tides, movable: Ints, can_move: Ints, best: Ints, totals: Floats,
    heat: float, tries: int, chance: Words, most: int,
) -> None:  # fmt: skip
    """So many tries from the placement in `i`; `totals` are the word on it and on the best, with homes in `best`."""
    ops, olds = np.empty(2 * (CHAIN_MAX + 1), np.int64), np.empty(2 * (CHAIN_MAX + 1), np.int64)
    m, home = i[c.OPS], i[c.HOME]
    for _ in range(tries):
        size = _propose(i, f, b, tides, movable, can_move, ops, olds, chance)
        if size == 0:
            continue
        value = _judged(i, f, flow, tides)
        if value - totals[0] <= drawn(heat, chance) and broken(i, f) <= most:
            totals[0] = value
            if value < totals[1]:
                totals[1] = value
                best[:] = i[home : home + m]
        else:
            for at in range(size):
                i[home + ops[at]] = olds[at]
