"""What would anyone write first? Annealing by single moves, compiled, as the rival that `benchmarks.placement` has."""

from __future__ import annotations

from typing import Any

from weft.plan.compiled import compiled
from weft.plan.search import packed as c
from weft.plan.search.anneal import drawn
from weft.plan.search.chance import below
from weft.plan.search.incremental import fits, shift
from weft.plan.search.move_costs import plain, trial


@compiled
def textbook(
    i: Any, f: Any, b: Any, movable: Any, can_move: Any, best: Any, totals: Any, hot: float, cold: float, steps: int,
    track: bool, chance: Any, swaps: float, chains: float, trades: float,
) -> None:  # fmt: skip
    """Any operator to any site, kept by Metropolis, called as `anneal` is: the rival that has ten times as long."""
    now, least = totals[0], totals[1]
    for _ in range(steps):
        op, new = movable[below(chance, len(movable))], below(chance, i[c.SITES])
        old = i[i[c.HOME] + op]
        if new == old or not fits(i, b, op, new):
            continue
        stays = plain(i, op, old, new)
        most = drawn(hot, chance)
        change = trial(i, f, op, new, most) if stays else shift(i, f, op, new)
        if change <= most:
            now += shift(i, f, op, new) if stays else change
            if now < least:
                least = now
                best[:] = i[i[c.HOME] : i[c.HOME] + i[c.OPS]]
        elif not stays:
            shift(i, f, op, old)
    totals[0], totals[1] = now, least
