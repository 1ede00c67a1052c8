"""Can it stand there? Sites that pins, links and the tree rule leave to each operator, fewer as others are placed."""

from __future__ import annotations

import numpy as np

from weft.plan.compiled import compiled
from weft.plan.network.path_tables import Bools, Ints
from weft.plan.search import packed as c
from weft.plan.search.packed import Bits, pack
from weft.plan.search.problem import Problem

TRIES_MAX = 200_000


@compiled
def _supported(i: Ints, b: Bits, choices: Bools, site: int, other: int, upstream: bool) -> bool:
    """Whether a neighbour has a site left that goes with this one."""
    n = i[c.SITES]
    for there in range(i[c.SITES]):
        if choices[other, there]:
            at = there * n + site if upstream else site * n + there
            if b[i[c.OPS] * n + at]:
                return True
    return False


@compiled
def _revise(i: Ints, b: Bits, choices: Bools, op: int, other: int, upstream: bool) -> bool:
    """Strikes the sites of an operator that a neighbour cannot go with; says whether any was struck."""
    struck = False
    for site in range(i[c.SITES]):
        if choices[op, site] and not _supported(i, b, choices, site, other, upstream):
            choices[op, site] = False
            struck = True
    return struck


@compiled
def narrow(i: Ints, b: Bits, choices: Bools, begin: int) -> int:
    """Strikes until all neighbours agree, from one operator on (-1: all); the operator left with none, else -1."""
    m = i[c.OPS]
    waiting = np.zeros(m, np.bool_)
    queue = np.empty(m, np.int64)
    size = 0
    for op in range(m):
        if begin in (-1, op):
            queue[size] = op
            waiting[op] = True
            size += 1
    head = 0
    while size > 0:
        op = queue[head]
        head = (head + 1) % m
        size -= 1
        waiting[op] = False
        if not choices[op].any():
            return int(op)
        ins = i[i[c.IN_AT] + op + 1] - i[i[c.IN_AT] + op]
        outs = i[i[c.OUT_AT] + op + 1] - i[i[c.OUT_AT] + op]
        for at in range(ins + outs):
            # This operator is upstream of its readers.
            upstream = at >= ins
            other = i[i[c.IN_FROM] + i[i[c.IN_AT] + op] + at]
            if upstream:
                other = i[i[c.OUT_TO] + i[i[c.OUT_AT] + op] + at - ins]
            if other < m and _revise(i, b, choices, other, op, upstream) and not waiting[other]:
                queue[(head + size) % m] = other
                waiting[other] = True
                size += 1
    return -1


def any_homes(given: Problem) -> Ints | None:
    """Depth first over narrowed choices, up to a limit of tries."""
    i, _, b = pack(given.flat)
    choices = given.flat.choices.copy()
    if narrow(i, b, choices, -1) >= 0:
        return None
    stack = [(choices, 0, 0)]
    tries = 0
    while stack and tries < TRIES_MAX:
        choices, op, after = stack.pop()
        if op == len(given.operators):
            return np.asarray(np.argmax(choices, axis=1), np.int64)
        left = np.flatnonzero(choices[op])
        if after >= len(left):
            continue
        tries += 1
        stack.append((choices, op, after + 1))
        child = choices.copy()
        child[op] = False
        child[op, left[after]] = True
        if narrow(i, b, child, op) < 0:
            stack.append((child, op + 1, 0))
    return None
