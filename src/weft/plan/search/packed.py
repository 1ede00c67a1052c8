"""One problem and its placement in three plain arrays: whole numbers, fractions, permissions.

Compiled functions that hand on a tuple of sixty arrays spend their time counting references; three arrays cost nothing.
The head of `i` says where each table begins: `f[i[LOAD] + op]` is an operator's load. The head of `f` holds weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.plan.network.path_tables import Floats, Ints
from weft.plan.search.arrays import Flat

Bits = NDArray[np.uint8]

# Numbers in the head of `i`.
(
    OPS, NODES, SITES, PERIODS, QUERIES, WAYS, POTENTIAL, LATENCY, FREE, CHOOSES, LIMITED, VARIES, CARRIED, PAIRS, RUNS,
    TICKS,
) = range(16)  # fmt: skip
# Where tables of whole numbers begin: of the problem, then of the placement.
(
    HOME, OUT_AT, OUT_TO, IN_AT, IN_FROM, QUERY_OF, QUERY_AT, QUERY_NODE, END_AT, END_NODE, STEP_AT, STEP_WAY, RUNNING,
    COUNT, BOUND, FIRST, NEXT, LAST, WAY_COUNT, STAMP,
) = range(16, 36)  # fmt: skip
# Where tables of fractions begin: of the problem, then of the placement.
(
    ROOM, SPEED, QUOTA, DELAY, WAY_DELAY, WAY_WIDTH, LOAD, WAVE, VARIANCE, STILL, ASKED, COST, KBPS, WEIGHT, PROMISE,
    PAIR_T, PAIR_A, PAIR_B, SITE_LOAD, SITE_ASKED, LIFT, SUMS, CORRELATION, VALUE, WAY_KBPS, BREACH, DONE, SCRATCH,
) = range(36, 64)  # fmt: skip
# What an operator costs at a site by itself, and whether anything does; the weights of streams.
OWN, OWNS, OUT_WEIGHT, IN_WEIGHT = 64, 65, 66, 67
# How many groups of queries share operators, and where the queries of each begin.
GROUPS, GROUP_AT = 68, 69
HEAD = 70
# Weights in the head of `f`.
W_LOAD, W_CORRELATION, W_NETWORK, PENALTY, EXCESS, PRICE, BROKEN, NOISE = range(8)
WEIGHTS = 8


def pack(flat: Flat) -> tuple[Ints, Floats, Bits]:
    """The arrays of a problem with nothing placed but what stands still."""
    m, nodes, n = len(flat.load_ms), len(flat.home), len(flat.speed)
    k, links, queries = flat.wave.shape[1], len(flat.way_delay_ms), len(flat.promise_ms)
    groups = len(flat.group_at) - 1
    head = np.zeros(HEAD, np.int64)
    chooses = not flat.free or not bool(flat.choices.all())
    head[:16] = (
        m, nodes, n, k, queries, links, flat.potential, flat.latency, flat.free, chooses, flat.limited, flat.varies,
        flat.carried, len(flat.pair_a) > 0, len(flat.running) > 0, 0,
    )  # fmt: skip
    head[OWNS] = flat.own.size > 0
    head[GROUPS] = groups
    whole = {
        HOME: flat.home, OUT_AT: flat.out_at, OUT_TO: flat.out_to, IN_AT: flat.in_at, IN_FROM: flat.in_from,
        QUERY_OF: flat.query_of, QUERY_AT: flat.query_at, QUERY_NODE: flat.query_node, END_AT: flat.end_at,
        END_NODE: flat.end_node, STEP_AT: flat.step_at, STEP_WAY: flat.step_way, RUNNING: flat.running,
        COUNT: _none(n), BOUND: _none(n), FIRST: _none(n) - 1, NEXT: _none(m) - 1, LAST: _none(m) - 1,
        WAY_COUNT: _none(links), STAMP: _none(groups), GROUP_AT: flat.group_at,
    }  # fmt: skip
    fractions = {
        ROOM: flat.room_ms, SPEED: flat.speed, QUOTA: flat.quota, DELAY: flat.delay_ms, WAY_DELAY: flat.way_delay_ms,
        WAY_WIDTH: flat.way_kbps, LOAD: flat.load_ms, WAVE: flat.wave, VARIANCE: flat.variance, STILL: flat.still,
        ASKED: flat.asked_ms, COST: flat.cost_ms, KBPS: flat.kbps, WEIGHT: flat.weight, PROMISE: flat.promise_ms,
        PAIR_T: flat.pair_t, PAIR_A: flat.pair_a, PAIR_B: flat.pair_b, SITE_LOAD: np.zeros(n), SITE_ASKED: np.zeros(n),
        LIFT: np.zeros(n), SUMS: np.zeros(n * k), CORRELATION: np.zeros(n), VALUE: np.zeros(n),
        WAY_KBPS: np.zeros(links), BREACH: np.zeros(groups), DONE: np.zeros(nodes), SCRATCH: np.zeros(k),
        OWN: flat.own, OUT_WEIGHT: flat.out_weight, IN_WEIGHT: flat.in_weight,
    }  # fmt: skip
    weights = np.zeros(WEIGHTS)
    weights[:8] = (
        flat.w_load, flat.w_correlation, flat.w_network, flat.penalty, flat.excess_ms, flat.price, flat.broken_ms,
        1e-24 * flat.variance.sum(),
    )  # fmt: skip
    at = HEAD
    for slot, table in whole.items():
        head[slot] = at
        at += table.size
    at = WEIGHTS
    for slot, numbers in fractions.items():
        head[slot] = at
        at += numbers.size
    i = np.concatenate([head, *whole.values()]).astype(np.int64)
    f = np.concatenate([weights, *(numbers.ravel() for numbers in fractions.values())]).astype(np.float64)
    if not chooses:
        return i, f, np.zeros(0, np.uint8)
    return i, f, np.concatenate([flat.choices.ravel(), flat.allowed.ravel()]).astype(np.uint8)


def _none(count: int) -> Ints:
    return np.zeros(count, np.int64)


def homes_of(i: Ints) -> Ints:
    """Where the operators are."""
    return i[i[HOME] : i[HOME] + i[OPS]].copy()
