"""The fitness of Order §4.3 as a problem of pairs: what stays on a site saves, what travels costs, by records and ms.

f(X) with two repairs: latency only between operators that exchange records, read by the sites of the two.
Its negative is minimised. Sites above their quota are ruled out by what excess costs.
"""

from __future__ import annotations

import numpy as np

from weft.model import Deployment
from weft.plan.dataflow.rates import Rates
from weft.plan.network.path_tables import Ints
from weft.plan.search.problem import Problem, problem


def traffic(
    deployment: Deployment, *, per_record: float = 1.0, per_ms: float = 1.0, rates: Rates | None = None
) -> Problem:
    """The problem whose score is -f(X), with c_t `per_record` and c_l `per_ms`."""
    given = problem(deployment, "latency", rates=rates)
    flat, m, n = given.flat, len(given.operators), len(given.sites)
    used = rates or _rates(deployment)
    out_at, out_to = _between(flat.out_at, flat.out_to, m)
    in_at, in_from = _between(flat.in_at, flat.in_from, m)
    here = np.eye(n, dtype=bool)
    pairs = flat._replace(
        potential=False,
        latency=False,
        limited=False,
        home=flat.home[:m],
        out_at=out_at,
        out_to=out_to,
        in_at=in_at,
        in_from=in_from,
        kbps=flat.kbps[:m],
        carried=m,
        weight=np.zeros(m),
        out_weight=np.zeros(len(out_to)),
        in_weight=np.zeros(len(in_from)),
        query_of=np.full(m, -1, np.int64),
        group_at=np.zeros(1, np.int64),
        query_at=np.zeros(1, np.int64),
        query_node=np.zeros(0, np.int64),
        end_at=np.zeros(1, np.int64),
        end_node=np.zeros(0, np.int64),
        promise_ms=np.zeros(0),
        pair_t=np.array([used.per_s[stream] for stream in given.operators], np.float64),
        pair_a=np.where(here, -per_record, per_record),
        pair_b=np.where(here, 0.0, per_ms * flat.delay_ms),
        own=np.zeros((0, 0)),
    )
    return Problem(deployment, pairs, given.operators, given.sites, given.rank)


def _rates(deployment: Deployment) -> Rates:
    from weft.plan.dataflow.rates import ideal_rates

    return ideal_rates(deployment)


def _between(starts: Ints, others: Ints, m: int) -> tuple[Ints, Ints]:
    """Streams between operators alone, without sources and sinks."""
    rows = [others[starts[op] : starts[op + 1]] for op in range(m)]
    rows = [row[row < m] for row in rows]
    at = np.zeros(m + 1, np.int64)
    at[1:] = np.cumsum([len(row) for row in rows])
    return at, np.concatenate([np.zeros(0, np.int64), *rows])
