"""A placement while it is being searched: sums per site, link and query, kept true move by move.

`shift` moves one operator and returns what that changes; it costs the operator's streams and the sites touched, not the
whole sum. `trade` and `exchange` move several. `i`, `f` and `b` are the three arrays of `memory`.
"""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.arrays import EXCESS_MS
from weft.plan.search.packed import Bits
from weft.plan.search.site_costs import correlation_of, site_value, slowness
from weft.plan.search.stream_costs import pulled, reroute, streams_value


@compiled
def query_ms(i: Ints, f: Floats, query: int) -> float:
    """The slowest way through a query; what is not placed yet takes no time."""
    home, n = i[c.HOME], i[c.SITES]
    for at in range(i[i[c.QUERY_AT] + query], i[i[c.QUERY_AT] + query + 1]):
        node = i[i[c.QUERY_NODE] + at]
        here = i[home + node]
        latest = 0.0
        for edge in range(i[i[c.IN_AT] + node], i[i[c.IN_AT] + node + 1]):
            other = i[i[c.IN_FROM] + edge]
            there = i[home + other]
            arrival = f[i[c.DONE] + other]
            if here >= 0 and there >= 0:
                arrival += f[i[c.DELAY] + there * n + here]
            latest = max(latest, arrival)
        if node < i[c.OPS] and here >= 0:
            speed = f[i[c.SPEED] + here]
            busy = f[i[c.SITE_ASKED] + here] / (1000.0 * speed)
            latest += f[i[c.COST] + node] / speed * slowness(busy)
            if busy >= 1.0:
                latest += EXCESS_MS
        f[i[c.DONE] + node] = latest
    slowest = 0.0
    for at in range(i[i[c.END_AT] + query], i[i[c.END_AT] + query + 1]):
        slowest = max(slowest, f[i[c.DONE] + i[i[c.END_NODE] + at]])
    return slowest


@compiled
def _again(i: Ints, f: Floats, group: int) -> float:
    """What the promises of queries that share operators cost anew, nothing where they are kept: the difference."""
    new = 0.0
    for query in range(i[i[c.GROUP_AT] + group], i[i[c.GROUP_AT] + group + 1]):
        slowest, promise = query_ms(i, f, query), f[i[c.PROMISE] + query]
        new += f[c.BROKEN] * (2.0 - promise / slowest) if slowest > promise else 0.0
    change = new - f[i[c.BREACH] + group]
    f[i[c.BREACH] + group] = new
    return float(change)


@compiled
def broken(i: Ints, f: Floats) -> int:
    """How many promises break where operators are now, whatever the sums of sites were."""
    asked, count = i[c.SITE_ASKED], 0
    if i[c.QUERIES] == 0:
        return count
    f[asked : asked + i[c.SITES]] = 0.0
    for op in range(i[c.OPS]):
        f[asked + i[i[c.HOME] + op]] += f[i[c.ASKED] + op]
    for query in range(i[c.QUERIES]):
        count += query_ms(i, f, query) > f[i[c.PROMISE] + query]
    return count


@compiled
def _bound_here(i: Ints, f: Floats, site: int) -> float:
    """Queries bound by a promise with operators on a site, each looked at once per tick."""
    change = 0.0
    if i[i[c.BOUND] + site] == 0:
        return change
    op = i[i[c.FIRST] + site]
    while op >= 0:
        group = i[i[c.QUERY_OF] + op]
        if group >= 0 and i[i[c.STAMP] + group] != i[c.TICKS]:
            i[i[c.STAMP] + group] = i[c.TICKS]
            change += _again(i, f, group)
        op = i[i[c.NEXT] + op]
    return change


@compiled
def _count(i: Ints, f: Floats, op: int, site: int, sign: int) -> None:
    i[i[c.COUNT] + site] += sign
    if i[i[c.QUERY_OF] + op] >= 0:
        i[i[c.BOUND] + site] += sign
    # An empty site is exactly empty, whatever rounding its operators left behind.
    stays = 0.0 if i[i[c.COUNT] + site] == 0 else 1.0
    f[i[c.SITE_LOAD] + site] = stays * (f[i[c.SITE_LOAD] + site] + sign * f[i[c.LOAD] + op])
    f[i[c.SITE_ASKED] + site] = stays * (f[i[c.SITE_ASKED] + site] + sign * f[i[c.ASKED] + op])
    f[i[c.LIFT] + site] = stays * (f[i[c.LIFT] + site] + sign * f[i[c.WEIGHT] + op] * f[i[c.COST] + op])
    if i[c.VARIES]:
        k = i[c.PERIODS]
        for at in range(k):
            sums = i[c.SUMS] + site * k + at
            f[sums] = stays * (f[sums] + sign * f[i[c.WAVE] + op * k + at])


@compiled
def _leave(i: Ints, f: Floats, op: int, site: int) -> None:
    before, after = i[i[c.LAST] + op], i[i[c.NEXT] + op]
    if before >= 0:
        i[i[c.NEXT] + before] = after
    else:
        i[i[c.FIRST] + site] = after
    if after >= 0:
        i[i[c.LAST] + after] = before
    _count(i, f, op, site, -1)


@compiled
def _enter(i: Ints, f: Floats, op: int, site: int) -> None:
    after = i[i[c.FIRST] + site]
    i[i[c.LAST] + op] = -1
    i[i[c.NEXT] + op] = after
    i[i[c.FIRST] + site] = op
    if after >= 0:
        i[i[c.LAST] + after] = op
    _count(i, f, op, site, 1)


@compiled
def _revalue(i: Ints, f: Floats, site: int) -> float:
    """A site's part after its sums changed: the difference."""
    correlation = 0.0
    if i[c.POTENTIAL] and i[c.VARIES]:
        correlation = correlation_of(i, f, site, -1, -1)
        f[i[c.CORRELATION] + site] = correlation
    new = site_value(
        i, f, site, f[i[c.SITE_LOAD] + site], f[i[c.SITE_ASKED] + site], f[i[c.LIFT] + site], i[i[c.COUNT] + site],
        correlation,
    )  # fmt: skip
    change = new - f[i[c.VALUE] + site]
    f[i[c.VALUE] + site] = new
    return float(change)


@compiled
def _resend(i: Ints, f: Floats, op: int, old: int, new: int) -> float:
    """Names an operator's new site and returns what its streams change; the sums of sites are left alone."""
    change = 0.0
    if i[c.POTENTIAL] or i[c.LIMITED]:
        change += reroute(i, f, op, old, new)
    if old >= 0:
        change -= pulled(i, f, op, old)
    i[i[c.HOME] + op] = new
    if new >= 0:
        change += pulled(i, f, op, new)
    return change


@compiled
def _settled(i: Ints, f: Floats, old: int, new: int) -> float:
    """The change of two sites, and of the promises of queries there, after operators went from one to the other."""
    change = 0.0
    if new >= 0:
        change += _revalue(i, f, new)
    if old >= 0:
        change += _revalue(i, f, old)
    if i[c.LATENCY] and i[c.QUERIES] > 0:
        i[c.TICKS] += 1
        if old >= 0:
            change += _bound_here(i, f, old)
        if new >= 0:
            change += _bound_here(i, f, new)
    return change


@compiled
def shift(i: Ints, f: Floats, op: int, new: int) -> float:
    """Moves an operator (-1 is nowhere) and returns the change of the score."""
    old = i[i[c.HOME] + op]
    if old == new:
        return 0.0
    change = _resend(i, f, op, old, new)
    if old >= 0:
        _leave(i, f, op, old)
    if new >= 0:
        _enter(i, f, op, new)
    change += _settled(i, f, old, new)
    group = i[i[c.QUERY_OF] + op]
    if new < 0 and group >= 0 and i[i[c.STAMP] + group] != i[c.TICKS]:
        change += _again(i, f, group)
    return change


@compiled
def trade(i: Ints, f: Floats, ops: Ints, size: int, new: int, others: Ints, count: int, most: float) -> float:
    """Moves the first so many operators of one site to another, and others from there back; both are valued once.

    What is sure to change the score by more than `most` is not done and counts as infinite.
    """
    old = i[i[c.HOME] + ops[0]]
    change = _resend_all(i, f, ops, size, old, new) + _resend_all(i, f, others, count, new, old)
    if i[c.QUERIES] == 0:
        least = _least_with(i, f, old, ops, size, others, count) + _least_with(i, f, new, others, count, ops, size)
        if change + least > most:
            _resend_all(i, f, others, count, old, new)
            _resend_all(i, f, ops, size, new, old)
            return np.inf
    for at in range(size):
        _leave(i, f, ops[at], old)
        _enter(i, f, ops[at], new)
    for at in range(count):
        _leave(i, f, others[at], new)
        _enter(i, f, others[at], old)
    return change + _settled(i, f, old, new)


@compiled
def _resend_all(i: Ints, f: Floats, ops: Ints, size: int, old: int, new: int) -> float:
    change = 0.0
    for at in range(size):
        change += _resend(i, f, ops[at], old, new)
    return change


@compiled
def _least_with(i: Ints, f: Floats, site: int, less: Ints, size: int, more: Ints, count: int) -> float:
    """What a site's part would change by at least without some operators and with others."""
    load, asked, lift = f[i[c.SITE_LOAD] + site], f[i[c.SITE_ASKED] + site], f[i[c.LIFT] + site]
    for at in range(size):
        op = less[at]
        load -= f[i[c.LOAD] + op]
        asked -= f[i[c.ASKED] + op]
        lift -= f[i[c.WEIGHT] + op] * f[i[c.COST] + op]
    for at in range(count):
        op = more[at]
        load += f[i[c.LOAD] + op]
        asked += f[i[c.ASKED] + op]
        lift += f[i[c.WEIGHT] + op] * f[i[c.COST] + op]
    left = i[i[c.COUNT] + site] - size + count
    before = float(f[i[c.VALUE] + site])
    if left == 0:
        return -before
    correlation = -float(left) if i[c.VARIES] else 0.0
    return site_value(i, f, site, load, asked, lift, left, correlation) - before


@compiled
def exchange(i: Ints, f: Floats, one: int, two: int) -> float:
    """Puts each of two operators of different sites where the other is, both sites valued once."""
    here, there = i[i[c.HOME] + one], i[i[c.HOME] + two]
    change = _resend(i, f, one, here, there) + _resend(i, f, two, there, here)
    _leave(i, f, one, here)
    _leave(i, f, two, there)
    _enter(i, f, one, there)
    _enter(i, f, two, here)
    return change + _settled(i, f, here, there)


@compiled
def fill(i: Ints, f: Floats, homes: Ints) -> float:
    """Places everything anew and returns the whole score, without the rounding that many moves leave behind."""
    _clear(i, f)
    for op in range(i[c.OPS]):
        i[i[c.HOME] + op] = homes[op]
        if homes[op] >= 0:
            _enter(i, f, op, homes[op])
    total = 0.0
    for site in range(i[c.SITES]):
        _revalue(i, f, site)
        total += f[i[c.VALUE] + site]
    for node in range(i[c.NODES]):
        total += streams_value(i, f, node)
    if i[c.LATENCY]:
        for group in range(i[c.GROUPS]):
            f[i[c.BREACH] + group] = 0.0
            total += _again(i, f, group)
    return total


@compiled
def _clear(i: Ints, f: Floats) -> None:
    n, links = i[c.SITES], i[c.WAYS]
    i[i[c.COUNT] : i[c.COUNT] + n] = 0
    i[i[c.BOUND] : i[c.BOUND] + n] = 0
    i[i[c.FIRST] : i[c.FIRST] + n] = -1
    i[i[c.WAY_COUNT] : i[c.WAY_COUNT] + links] = 0
    f[i[c.SITE_LOAD] : i[c.SITE_LOAD] + n] = 0.0
    f[i[c.SITE_ASKED] : i[c.SITE_ASKED] + n] = 0.0
    f[i[c.LIFT] : i[c.LIFT] + n] = 0.0
    f[i[c.SUMS] : i[c.SUMS] + n * i[c.PERIODS]] = 0.0
    f[i[c.VALUE] : i[c.VALUE] + n] = 0.0
    f[i[c.WAY_KBPS] : i[c.WAY_KBPS] + links] = 0.0


@compiled
def fits(i: Ints, b: Bits, op: int, site: int) -> bool:
    """Whether pins, links and the tree rule let an operator stand at a site, with its neighbours where they are."""
    if not i[c.CHOOSES]:
        return True
    n = i[c.SITES]
    if not b[op * n + site]:
        return False
    if i[c.FREE]:
        return True
    allowed = i[c.OPS] * n
    for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
        start = i[i[c.HOME] + i[i[c.IN_FROM] + at]]
        if start >= 0 and not b[allowed + start * n + site]:
            return False
    for at in range(i[i[c.OUT_AT] + op], i[i[c.OUT_AT] + op + 1]):
        end = i[i[c.HOME] + i[i[c.OUT_TO] + at]]
        if end >= 0 and not b[allowed + site * n + end]:
            return False
    return True
