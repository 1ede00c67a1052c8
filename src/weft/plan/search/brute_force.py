"""Few placements are tried out whole, in plain Python, so that a small file waits for no compiler.

`score` is also the obvious version of what a search minimises: every sum anew for every placement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from weft.model import Placement
from weft.plan.network.path_tables import Ints
from weft.plan.search.any_placement import some
from weft.plan.search.arrays import EXCESS_MS, ROUNDING, STEADY, STEEPER, Flat
from weft.plan.search.kept_operators import kept
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps

TINY_MAX = 1_000


def how_many(given: Problem, running: Placement | None) -> float:
    """The number of placements that pins and kept operators leave."""
    counts = np.where(kept(given, running) >= 0, 1, given.flat.choices.sum(axis=1))
    return float(math.prod(float(count) for count in counts))


def all_tried(given: Problem, running: Placement | None) -> Ints:
    """The least score of all placements; of equal ones what is near, then the first in the order of sites."""
    stays = kept(given, running)
    sites = [
        [int(stay)] if stay >= 0 else [int(site) for site in np.flatnonzero(row)]
        for stay, row in zip(stays, given.flat.choices, strict=True)
    ]
    best: tuple[float, Ints] | None = None
    near = given.homes(some(given))
    if running is None:
        best = (score(given.flat, near.tolist()), near)
    for homes in product(*sites):
        found = np.array(homes, np.int64)
        if keeps(given, found):
            value = score(given.flat, homes)
            if best is None or value < best[0] - 1e-12 * abs(best[0]):
                best = (value, found)
    return near if best is None else best[1]


def score(flat: Flat, homes: Sequence[int]) -> float:
    """What a placement of all operators scores."""
    home = [*(int(site) for site in homes), *(int(site) for site in flat.home[len(homes) :])]
    total = _potential(flat, home) if flat.potential else _latency(flat, home) + _excess(flat, home)
    return total + _network(flat, home) + weighed(flat, home)


def beyond(flat: Flat, homes: Sequence[int]) -> tuple[float, float]:
    """Of a score by latency, what is asked beyond sites and links, and what broken promises cost."""
    home = [*homes, *(int(site) for site in flat.home[len(homes) :])]
    return _excess(flat, home) + _network(flat, home), _broken(flat, home) if flat.latency else 0.0


def _members(flat: Flat, home: Sequence[int]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in flat.speed]
    for op in range(len(flat.load_ms)):
        found[home[op]].append(op)
    return found


def _potential(flat: Flat, home: Sequence[int]) -> float:
    total = 0.0
    for site, here in enumerate(_members(flat, home)):
        full = sum(flat.load_ms[op] for op in here) / flat.room_ms[site]
        total += flat.w_load * len(here) * (full if full < 1 else 1 + flat.penalty * (full - 1))
        if flat.varies and len(here) > 1:
            total += flat.w_correlation * sum(_against_others(flat, op, here) for op in here)
    return float(total)


def _against_others(flat: Flat, op: int, here: list[int]) -> float:
    others = sum((flat.wave[other] for other in here if other != op), np.zeros(flat.wave.shape[1]))
    mean = sum(flat.load_ms[other] for other in here if other != op)
    spread = float(others @ others)
    if flat.variance[op] <= flat.still[op] or spread <= 1e-18 * mean**2:
        return 0.0
    return max(-1.0, min(1.0, float(flat.wave[op] @ others) / math.sqrt(flat.variance[op] * spread)))


def _latency(flat: Flat, home: Sequence[int]) -> float:
    if not flat.latency:
        return 0.0
    total = sum(weight * visit for weight, visit in zip(flat.weight, _visits(flat, home), strict=True))
    for node, start in enumerate(home):
        for at in range(flat.out_at[node], flat.out_at[node + 1]):
            total += flat.out_weight[at] * flat.delay_ms[start, home[flat.out_to[at]]]
    return float(total) + _broken(flat, home)


def _visits(flat: Flat, home: Sequence[int]) -> list[float]:
    """How long a record stays with each operator."""
    busy = _busy(flat, home)
    costs = enumerate(flat.cost_ms)
    return [float(cost) / float(flat.speed[home[op]]) * slowness(busy[home[op]]) for op, cost in costs]


def _broken(flat: Flat, home: Sequence[int]) -> float:
    """What promises cost that the slowest way through a query breaks."""
    total = 0.0
    visit, busy = _visits(flat, home), _busy(flat, home)
    for query, promise_ms in enumerate(flat.promise_ms):
        done: dict[int, float] = {}
        for node in flat.query_node[flat.query_at[query] : flat.query_at[query + 1]]:
            inputs = flat.in_from[flat.in_at[node] : flat.in_at[node + 1]]
            arrival = max((done[one] + flat.delay_ms[home[one], home[node]] for one in inputs), default=0.0)
            done[node] = arrival + (visit[node] if node < len(visit) else 0.0)
            if node < len(visit) and busy[home[node]] >= 1.0:
                done[node] += EXCESS_MS
        slowest = max(done[node] for node in flat.end_node[flat.end_at[query] : flat.end_at[query + 1]])
        total += flat.broken_ms * (2.0 - promise_ms / slowest) if slowest > promise_ms else 0.0
    return float(total)


def _excess(flat: Flat, home: Sequence[int]) -> float:
    """What sites are asked beyond their quotas."""
    over = (busy - quota for busy, quota in zip(_busy(flat, home), flat.quota, strict=True))
    return float(flat.excess_ms * sum(one * (1.0 + STEEPER * one) for one in over if one > ROUNDING))


def _busy(flat: Flat, home: Sequence[int]) -> list[float]:
    return [
        float(sum(flat.asked_ms[op] for op in here)) / (1000.0 * speed)
        for here, speed in zip(_members(flat, home), flat.speed, strict=True)
    ]


def slowness(busy: float) -> float:
    """By how much a queue prolongs a visit."""
    if busy <= STEADY:
        return 1.0 / (1.0 - busy)
    return 1.0 / (1.0 - STEADY) + (busy - STEADY) / (1.0 - STEADY) ** 2


def _network(flat: Flat, home: Sequence[int]) -> float:
    """One copy per destination site: delays in the potential, what links are asked beyond their width in latency."""
    copies = [
        (node, end)
        for node in range(flat.carried)
        for end in {home[reader] for reader in _readers(flat, node) if reader < flat.carried} - {home[node]}
    ]
    if not flat.limited:
        if not flat.potential:
            return 0.0
        return float(flat.w_network * sum(flat.delay_ms[home[node], end] for node, end in copies))
    count = np.zeros(len(flat.way_kbps))
    kbps = np.zeros(len(flat.way_kbps))
    for node, end in copies:
        pair = home[node] * len(flat.speed) + end
        for way in flat.step_way[flat.step_at[pair] : flat.step_at[pair + 1]]:
            count[way] += 1
            kbps[way] += flat.kbps[node]
    if flat.potential:
        return float(flat.w_network * (count * flat.way_delay_ms * np.maximum(1.0, kbps / flat.way_kbps)).sum())
    return float(flat.excess_ms * np.maximum(0.0, kbps / flat.way_kbps - 1.0 - ROUNDING).sum())


def weighed(flat: Flat, homes: Sequence[int]) -> float:
    """What further terms, what is sent and moves count in a score."""
    home = [*homes, *(int(site) for site in flat.home[len(homes) :])]
    total = 0.0
    if len(flat.pair_a):
        for node, start in enumerate(home):
            for reader in _readers(flat, node):
                end = home[reader]
                total += flat.pair_t[node] * flat.pair_a[start, end] + flat.pair_b[start, end]
    if flat.own.size:
        total += sum(flat.own[op, home[op]] for op in range(len(flat.load_ms)))
    for op, before in enumerate(flat.running):
        if before >= 0 and before != home[op]:
            total += flat.price
    return float(total)


def _readers(flat: Flat, node: int) -> Ints:
    return flat.out_to[flat.out_at[node] : flat.out_at[node + 1]]
