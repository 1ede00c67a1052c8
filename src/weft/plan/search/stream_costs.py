"""What do streams cost between sites? One copy for each site that reads, along paths whose links may be full."""

from __future__ import annotations

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.arrays import ROUNDING


@compiled
def _carry_limited(i: Ints, f: Floats, start: int, end: int, kbps: float, sign: int) -> float:
    change = 0.0
    pair = i[c.STEP_AT] + start * i[c.SITES] + end
    for at in range(i[pair], i[pair + 1]):
        way = i[i[c.STEP_WAY] + at]
        width = f[i[c.WAY_WIDTH] + way]
        old_count, old_kbps = i[i[c.WAY_COUNT] + way], f[i[c.WAY_KBPS] + way]
        count = old_count + sign
        sent = old_kbps + sign * kbps if count > 0 else 0.0
        if i[c.POTENTIAL]:
            pull = count * max(1.0, sent / width) - old_count * max(1.0, old_kbps / width)
            change += f[c.W_NETWORK] * f[i[c.WAY_DELAY] + way] * pull
        else:
            over = max(0.0, sent / width - 1.0 - ROUNDING) - max(0.0, old_kbps / width - 1.0 - ROUNDING)
            change += f[c.EXCESS] * over
        i[i[c.WAY_COUNT] + way] = count
        f[i[c.WAY_KBPS] + way] = sent
    return change


@compiled
def carry(i: Ints, f: Floats, start: int, end: int, kbps: float, sign: int) -> float:
    """One copy of a stream more or less on a path, and what that changes."""
    if i[c.LIMITED]:
        return _carry_limited(i, f, start, end, kbps, sign)
    return sign * f[c.W_NETWORK] * f[i[c.DELAY] + start * i[c.SITES] + end] if i[c.POTENTIAL] else 0.0


@compiled
def goes_there(i: Ints, node: int, end: int, site: int, without: int) -> bool:
    """Whether one of a node's readers, up to one of them, stands at a site: then its copy goes there anyway."""
    for at in range(i[i[c.OUT_AT] + node], end):
        reader = i[i[c.OUT_TO] + at]
        if reader != without and reader < i[c.CARRIED] and i[i[c.HOME] + reader] == site:
            return True
    return False


@compiled
def reroute(i: Ints, f: Floats, op: int, old: int, new: int) -> float:
    """The network's part of a move: one copy per destination site, out of the operator and into it."""
    change = 0.0
    home = i[c.HOME]
    for at in range(i[i[c.OUT_AT] + op], i[i[c.OUT_AT] + op + 1]):
        reader = i[i[c.OUT_TO] + at]
        there = i[home + reader]
        if reader >= i[c.CARRIED] or there < 0 or goes_there(i, op, at, there, -1):
            continue
        if old >= 0 and there != old:
            change += carry(i, f, old, there, f[i[c.KBPS] + op], -1)
        if new >= 0 and there != new:
            change += carry(i, f, new, there, f[i[c.KBPS] + op], 1)
    for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
        node = i[i[c.IN_FROM] + at]
        start = i[home + node]
        if node >= i[c.CARRIED] or start < 0:
            continue
        end = i[i[c.OUT_AT] + node + 1]
        if old >= 0 and old != start and not goes_there(i, node, end, old, op):
            change += carry(i, f, start, old, f[i[c.KBPS] + node], -1)
        if new >= 0 and new != start and not goes_there(i, node, end, new, op):
            change += carry(i, f, start, new, f[i[c.KBPS] + node], 1)
    return change


@compiled
def _pair(i: Ints, f: Floats, node: int, start: int, end: int) -> float:
    """What a stream between two sites costs in terms of pairs."""
    at = start * i[c.SITES] + end
    return float(f[i[c.PAIR_T] + node] * f[i[c.PAIR_A] + at] + f[i[c.PAIR_B] + at])


@compiled
def pulled(i: Ints, f: Floats, op: int, site: int) -> float:
    """What an operator's own streams cost at a site: delays by their weights, terms of pairs, the price of a move."""
    total = 0.0
    latency, n = i[c.LATENCY], i[c.SITES]
    if latency or i[c.PAIRS]:
        for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
            node = i[i[c.IN_FROM] + at]
            start = i[i[c.HOME] + node]
            if start >= 0:
                if latency:
                    total += f[i[c.IN_WEIGHT] + at] * f[i[c.DELAY] + start * n + site]
                if i[c.PAIRS]:
                    total += _pair(i, f, node, start, site)
        for at in range(i[i[c.OUT_AT] + op], i[i[c.OUT_AT] + op + 1]):
            end = i[i[c.HOME] + i[i[c.OUT_TO] + at]]
            if end >= 0:
                if latency:
                    total += f[i[c.OUT_WEIGHT] + at] * f[i[c.DELAY] + site * n + end]
                if i[c.PAIRS]:
                    total += _pair(i, f, op, site, end)
    if i[c.OWNS]:
        total += f[i[c.OWN] + op * n + site]
    if i[c.RUNS] and i[i[c.RUNNING] + op] >= 0 and i[i[c.RUNNING] + op] != site:
        total += f[c.PRICE]
    return total


@compiled
def streams_value(i: Ints, f: Floats, node: int) -> float:
    """All that one node's streams add up to, and the price of having left."""
    total = 0.0
    start = i[i[c.HOME] + node]
    for at in range(i[i[c.OUT_AT] + node], i[i[c.OUT_AT] + node + 1]):
        reader = i[i[c.OUT_TO] + at]
        end = i[i[c.HOME] + reader]
        if start < 0 or end < 0:
            continue
        if i[c.LATENCY]:
            total += f[i[c.OUT_WEIGHT] + at] * f[i[c.DELAY] + start * i[c.SITES] + end]
        if i[c.PAIRS]:
            total += _pair(i, f, node, start, end)
        carried = node < i[c.CARRIED] and reader < i[c.CARRIED]
        if start != end and carried and not goes_there(i, node, at, end, -1):
            total += carry(i, f, start, end, f[i[c.KBPS] + node], 1)
    if i[c.OWNS] and node < i[c.OPS] and start >= 0:
        total += f[i[c.OWN] + node * i[c.SITES] + start]
    if i[c.RUNS] and node < i[c.OPS] and start >= 0:
        before = i[i[c.RUNNING] + node]
        if before >= 0 and before != start:
            total += f[c.PRICE]
    return total
