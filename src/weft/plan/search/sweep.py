"""One operator after another by its own potential (Potential §4.1): the compiled loops of greedy and its programme."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Bools, Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.narrowing import narrow
from weft.plan.search.packed import Bits
from weft.plan.search.site_costs import filled


@compiled
def _path_cost(i: Ints, f: Floats, way_kbps: Floats, start: int, end: int, kbps: float) -> float:
    """The pull of a path that carries one more stream: delays, times utilisation where a link is full."""
    if not i[c.LIMITED]:
        return float(f[i[c.DELAY] + start * i[c.SITES] + end])
    total = 0.0
    pair = start * i[c.SITES] + end
    for at in range(i[i[c.STEP_AT] + pair], i[i[c.STEP_AT] + pair + 1]):
        way = i[i[c.STEP_WAY] + at]
        total += f[i[c.WAY_DELAY] + way] * max(1.0, (way_kbps[way] + kbps) / f[i[c.WAY_WIDTH] + way])
    return total


@compiled
def _read_at(i: Ints, home: Ints, node: int, site: int, end: int) -> bool:
    """Whether one of a node's readers, up to one of them, stands at a site."""
    for at in range(i[i[c.OUT_AT] + node], end):
        reader = i[i[c.OUT_TO] + at]
        if reader < i[c.OPS] and home[reader] == site:
            return True
    return False


@compiled
def towards(i: Ints, f: Floats) -> Floats:
    """Delays by their ends, so that all that lead to one site lie side by side; nothing where links may be full."""
    if i[c.LIMITED]:
        return np.zeros((0, 0))
    n = i[c.SITES]
    found = np.empty((n, n))
    for end in range(n):
        for start in range(n):
            found[end, start] = f[i[c.DELAY] + start * n + end]
    return found


@compiled
def _network(i: Ints, f: Floats, home: Ints, way_kbps: Floats, op: int, both: bool, out: Floats, ends: Floats) -> None:
    """Adds the network potential of an operator at every site; `both` also looks at where its inputs come from."""
    m, n = i[c.OPS], i[c.SITES]
    for at in range(i[i[c.OUT_AT] + op], i[i[c.OUT_AT] + op + 1]):
        reader = i[i[c.OUT_TO] + at]
        if reader >= m or home[reader] < 0 or _read_at(i, home, op, home[reader], at):
            continue
        if not i[c.LIMITED]:
            weight, row = f[c.W_NETWORK], ends[home[reader]]
            for site in range(n):
                out[site] += weight * row[site]
            continue
        for site in range(n):
            if site != home[reader]:
                out[site] += f[c.W_NETWORK] * _path_cost(i, f, way_kbps, site, home[reader], f[i[c.KBPS] + op])
    if both:
        _from_inputs(i, f, home, way_kbps, op, out)


@compiled
def _from_inputs(i: Ints, f: Floats, home: Ints, way_kbps: Floats, op: int, out: Floats) -> None:
    """What inputs that are placed already would send to an operator at every site."""
    m, n = i[c.OPS], i[c.SITES]
    for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
        node = i[i[c.IN_FROM] + at]
        if node >= m or home[node] < 0:
            continue
        others = i[i[c.OUT_AT] + node + 1] - i[i[c.OUT_AT] + node] > 1
        if not others and not i[c.LIMITED]:
            weight, begin = f[c.W_NETWORK], i[c.DELAY] + home[node] * n
            for site in range(n):
                out[site] += weight * f[begin + site]
            continue
        for site in range(n):
            if site != home[node] and not (others and _read_at(i, home, node, site, i[i[c.OUT_AT] + node + 1])):
                out[site] += f[c.W_NETWORK] * _path_cost(i, f, way_kbps, home[node], site, f[i[c.KBPS] + node])


@compiled
def own_potential(
    i: Ints, f: Floats, home: Ints, load: Floats, sums: Floats, spread: Floats, way_kbps: Floats, op: int, both: bool,
    out: Floats, only_least: bool, ends: Floats,
) -> None:  # fmt: skip
    """PE(o, h, P) for every site h, the operator's own load included, against what is placed so far.

    Where only the least counts, a correlation that could not make a site the best is left out.
    """
    out[:] = 0.0
    _network(i, f, home, way_kbps, op, both, out, ends)
    moving = i[c.VARIES] and f[c.W_CORRELATION] != 0.0 and f[i[c.VARIANCE] + op] > f[i[c.STILL] + op]
    k = i[c.PERIODS]
    wave = f[i[c.WAVE] + op * k : i[c.WAVE] + op * k + k]
    room = f[i[c.ROOM] : i[c.ROOM] + i[c.SITES]]
    own, weight, penalty, variance = f[i[c.LOAD] + op], f[c.W_LOAD], f[c.PENALTY], f[i[c.VARIANCE] + op]
    for site in range(len(load)):
        out[site] += weight * filled((load[site] + own) / room[site], penalty)
    if not moving:
        return
    least = np.min(out) + 2.0 * f[c.W_CORRELATION] if only_least else np.inf
    for site in range(len(load)):
        if out[site] <= least and spread[site] > 1e-18 * load[site] * load[site]:
            both_ = 0.0
            for at in range(len(wave)):
                both_ += wave[at] * sums[site, at]
            rho = both_ / np.sqrt(variance * spread[site])
            out[site] += f[c.W_CORRELATION] * max(-1.0, min(1.0, rho))


@compiled
def put(
    i: Ints, f: Floats, home: Ints, load: Floats, sums: Floats, spread: Floats, way_kbps: Floats, op: int, site: int
) -> None:
    """Places an operator in the sums that `own_potential` reads."""
    m = i[c.OPS]
    if i[c.LIMITED]:
        for at in range(i[i[c.OUT_AT] + op], i[i[c.OUT_AT] + op + 1]):
            reader = i[i[c.OUT_TO] + at]
            if reader < m and home[reader] >= 0 and not _read_at(i, home, op, home[reader], at):
                _carry(i, f, way_kbps, site, home[reader], f[i[c.KBPS] + op])
        for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
            node = i[i[c.IN_FROM] + at]
            if node < m and home[node] >= 0 and not _read_at(i, home, node, site, i[i[c.OUT_AT] + node + 1]):
                _carry(i, f, way_kbps, home[node], site, f[i[c.KBPS] + node])
    home[op] = site
    load[site] += f[i[c.LOAD] + op]
    if i[c.VARIES]:
        total = 0.0
        for at in range(i[c.PERIODS]):
            sums[site, at] += f[i[c.WAVE] + op * i[c.PERIODS] + at]
            total += sums[site, at] ** 2
        spread[site] = total


@compiled
def _carry(i: Ints, f: Floats, way_kbps: Floats, start: int, end: int, kbps: float) -> None:
    if start != end:
        pair = start * i[c.SITES] + end
        for at in range(i[i[c.STEP_AT] + pair], i[i[c.STEP_AT] + pair + 1]):
            way_kbps[i[i[c.STEP_WAY] + at]] += kbps


@compiled
def greedy_sweep(i: Ints, f: Floats, b: Bits, choices: Bools, order: Ints, home: Ints, both: bool) -> bool:
    """INIT_GREEDY: each operator where its own potential is least; homes of 0 or more are fixed already."""
    n = i[c.SITES]
    load, sums, spread = np.zeros(n), np.zeros((n, i[c.PERIODS])), np.zeros(n)
    way_kbps, out, ends = np.zeros(i[c.WAYS]), np.empty(n), towards(i, f)
    fixed = home.copy()
    home[: i[c.OPS]] = -1
    for op in range(i[c.OPS]):
        if fixed[op] >= 0:
            put(i, f, home, load, sums, spread, way_kbps, op, fixed[op])
    for op in order:
        if home[op] >= 0:
            continue
        own_potential(i, f, home, load, sums, spread, way_kbps, op, both, out, not i[c.CHOOSES], ends)
        best = -1
        for site in range(n):
            if choices[op, site] and (best < 0 or out[site] < out[best]):
                best = site
        if best < 0:
            return False
        put(i, f, home, load, sums, spread, way_kbps, op, best)
        if not i[c.FREE]:
            choices[op] = False
            choices[op, best] = True
            if narrow(i, b, choices, op) >= 0:
                return False
    return True


@compiled
def _came_from(total: Floats, own: Floats, as_printed: bool) -> int:
    best = int(np.argmin(total))
    for state in range(len(total)):
        if not np.isfinite(total[state]):
            continue
        better = own[state] < own[best] if as_printed else total[state] + own[state] < total[best] + own[best]
        if better:
            best = state
    return best


@compiled
def programme(i: Ints, f: Floats, choices: Bools, order: Ints, fixed: Ints, both: bool, as_printed: bool) -> Ints:
    """INIT_DYN_PROG: n partial placements side by side; line 9 as printed looks at the last operator alone."""
    m, n = i[c.OPS], i[c.SITES]
    k, links = i[c.PERIODS], i[c.WAYS]
    home = np.empty((n, len(fixed)), np.int64)
    load, sums, spread, way_kbps = np.zeros((n, n)), np.zeros((n, n, k)), np.zeros((n, n)), np.zeros((n, links))
    total, out, ends = np.zeros(n), np.empty((n, n)), towards(i, f)
    for state in range(n):
        home[state] = fixed
        home[state, :m] = -1
        for op in range(m):
            if fixed[op] >= 0:
                put(i, f, home[state], load[state], sums[state], spread[state], way_kbps[state], op, fixed[op])
    for op in order:
        if fixed[op] >= 0:
            continue
        for state in range(n):
            own_potential(
                i, f, home[state], load[state], sums[state], spread[state], way_kbps[state], op, both, out[state],
                False, ends,
            )  # fmt: skip
        came = np.full(n, np.argmin(total), np.int64)
        reached = np.full(n, np.inf)
        for site in range(n):
            if choices[op, site]:
                came[site] = _came_from(total, out[:, site], as_printed)
                reached[site] = total[came[site]] + out[came[site], site]
        home, load, sums, spread = home[came], load[came], sums[came], spread[came]
        way_kbps, total = way_kbps[came], reached
        for site in range(n):
            if choices[op, site]:
                put(i, f, home[site], load[site], sums[site], spread[site], way_kbps[site], op, site)
    return home[np.argmin(total), :m]
