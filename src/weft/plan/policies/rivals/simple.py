"""Rivals that look at one thing: `random`, `latency` (links alone), `partition` (load alone), `tree` (its own tree),
`collocated` (few sites for each query)."""

from __future__ import annotations

from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.errors import NoPlacement
from weft.plan.network.path_tables import Bools, Floats, Ints
from weft.plan.policies import replicas
from weft.plan.search.any_placement import some
from weft.plan.search.kept_operators import kept
from weft.plan.search.problem import Problem, problem
from weft.plan.search.repair import narrowed, settle
from weft.plan.stop import Stop


def random(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Each operator on any site it may stand on."""
    given = problem(deployment)
    choices = narrowed(given)
    wanted = np.array([rng.choice([int(site) for site in np.flatnonzero(row)]) for row in choices], np.int64)
    return _done(given, running, wanted, "by chance")


def latency(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Link delays alone (Synergy §4.5): each operator, in order, nearest to its inputs and to where results go."""
    given = problem(deployment, "latency")
    flat, m = given.flat, len(given.operators)
    choices = narrowed(given)
    home = flat.home.copy()
    for op in _in_order(given):
        cost = np.zeros(len(flat.speed))
        for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]]:
            cost += flat.delay_ms[home[node]] if home[node] >= 0 else 0.0
        for node in flat.out_to[flat.out_at[op] : flat.out_at[op + 1]]:
            cost += flat.delay_ms[:, home[node]] if node >= m else 0.0
        home[op] = _least(cost, choices[op])
    return _done(given, running, home[:m], "least link delay from its inputs, load left aside")


def partition(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Connected pieces of about equal load: walks along streams and fills one site after another to its share."""
    given = problem(deployment)
    flat, m = given.flat, len(given.operators)
    choices = narrowed(given)
    total = float(flat.asked_ms.sum())
    share = flat.room_ms / flat.room_ms.sum()
    asked = np.zeros(len(flat.speed))
    home = np.full(m, -1, np.int64)
    current = 0
    for op in _walk(given):
        left = share * total - asked
        if left[current] < flat.asked_ms[op] / 2 or not choices[op, current]:
            current = _least(-left / share, choices[op])
        home[op] = current
        asked[current] += flat.asked_ms[op]
    return _done(given, running, home, "a connected piece of about this site's share of the load")


def collocated(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Synergy's primaries (§4.4): beside others of the query as far as load allows; `--replicas N` adds the backups."""
    given = problem(deployment)
    try:
        wanted = given.homes(replicas.collocated(deployment, 1, rng))
    except NoPlacement:  # no room along its way: any placement that keeps the rules, as other policies give one
        wanted = given.homes(some(given))
    return _done(given, running, wanted, "beside others of its query, as far as load allows")


def tree(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """Neighbor §2.2: up from where the inputs enter, on the lowest site above them all that has room."""
    given = problem(deployment)
    flat, m = given.flat, len(given.operators)
    choices = narrowed(given)
    room = flat.room_ms.copy()
    above = _above(deployment, given)
    home = flat.home.copy()
    for op in _in_order(given):
        inputs = [int(home[node]) for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]] if home[node] >= 0]
        ranks = np.full(len(flat.speed), 1e6)
        for site in range(len(flat.speed)):
            steps = [above[start].get(site) for start in inputs]
            if all(step is not None for step in steps):
                ranks[site] = sum(step for step in steps if step is not None)
        fitting = choices[op] & (room >= flat.asked_ms[op])
        on_tree = fitting & (ranks < 1e6)
        cost = ranks if on_tree.any() else flat.asked_ms[op] - room
        home[op] = _least(cost, on_tree if on_tree.any() else choices[op])
        room[home[op]] -= flat.asked_ms[op]
    return _done(given, running, home[:m], "lowest site above its inputs that has room")


def _above(deployment: Deployment, given: Problem) -> list[dict[int, int]]:
    """How many steps up each site's ancestors are, itself at 0."""
    parents = {site.name: site.parent for site in deployment.sites}
    found: list[dict[int, int]] = []
    for name in given.sites:
        steps: dict[int, int] = {}
        up: str | None = name
        while up is not None:
            steps[given.rank[up]] = len(steps)
            up = parents[up]
        found.append(steps)
    return found


def _in_order(given: Problem) -> list[int]:
    """Operators, each after everything it reads."""
    flat, m = given.flat, len(given.operators)
    waits = [sum(1 for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]] if node < m) for op in range(m)]
    ready = [op for op in range(m) if waits[op] == 0]
    order: list[int] = []
    for op in ready:
        order.append(op)
        for node in flat.out_to[flat.out_at[op] : flat.out_at[op + 1]]:
            if node < m:
                waits[node] -= 1
                if waits[node] == 0:
                    ready.append(int(node))
    return order


def _walk(given: Problem) -> list[int]:
    """Operators along streams, depth first, so that those in a row are neighbours."""
    flat, m = given.flat, len(given.operators)
    order: dict[int, None] = {}
    for first in range(m):
        waiting = [first]
        while waiting:
            op = waiting.pop()
            if op in order:
                continue
            order[op] = None
            waiting.extend(int(node) for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]] if node < m)
            waiting.extend(int(node) for node in flat.out_to[flat.out_at[op] : flat.out_at[op + 1]] if node < m)
    return list(order)


def _least(cost: Floats, choices: Bools) -> int:
    return int(np.argmin(np.where(choices, cost, np.inf)))


def _done(given: Problem, running: Placement | None, wanted: Ints, reason: str) -> Placement:
    stays = kept(given, running)
    return given.placement(settle(given, np.where(stays >= 0, stays, wanted)), reason)
