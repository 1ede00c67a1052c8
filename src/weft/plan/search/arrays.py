"""What does a search read? A deployment as flat arrays, and what it costs to ask too much of it.

Nodes are the operators, then what stands still: the sources of each query at their sites, and sinks that name one.
A stream runs from a node to each of its readers; the tree rule and missing links forbid pairs of sites for its ends.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.plan.network.path_tables import Bools, Floats, Ints

# What one whole site or link asked beyond its limit costs, in ms of latency: more than any latency worth having.
EXCESS_MS = 1e7
# Excess costs more where it is greater, so that what cannot be avoided is spread.
STEEPER = 10.0
# What a promise costs that is broken by far: less than overload, more than any latency worth having.
BROKEN_MS = 1e6
# Beyond this utilisation a queue's time goes on in a straight line, so that a search can climb out of overload.
STEADY = 0.999
ROUNDING = 1e-12
# A site of capacity 0 only sends: no operator is put there.
NOTHING = 1e-9


class Flat(NamedTuple):
    """The arrays; sizes: m operators, M nodes, n sites, k periods, Q queries."""

    # What is minimised: the potential, the latency, pairs of operators, moves.
    potential: bool
    latency: bool
    # Sites (n).
    room_ms: Floats
    speed: Floats
    quota: Floats
    delay_ms: Floats
    allowed: Bools
    free: bool
    # Links: ways, and the ways of every path; `limited` where one could ever be full.
    limited: bool
    step_at: Ints
    step_way: Ints
    way_delay_ms: Floats
    way_kbps: Floats
    excess_ms: float
    broken_ms: float
    # Operators (m): mean load over the series, and what latency sees.
    home: Ints
    choices: Bools
    load_ms: Floats
    wave: Floats
    variance: Floats
    still: Floats
    varies: bool
    asked_ms: Floats
    cost_ms: Floats
    weight: Floats
    w_load: float
    w_correlation: float
    w_network: float
    penalty: float
    # Nodes (M): streams out and in, what they carry, and how many nodes the network term sees. A weight is that of a
    # query times the share of its results that pass.
    out_at: Ints
    out_to: Ints
    in_at: Ints
    in_from: Ints
    out_weight: Floats
    in_weight: Floats
    kbps: Floats
    carried: int
    # Queries that might break a promise of latency (Q): their nodes in order, and those where results end; in groups
    # that have operators in common, of which each operator has one at most.
    query_of: Ints
    group_at: Ints
    query_at: Ints
    query_node: Ints
    end_at: Ints
    end_node: Ints
    promise_ms: Floats
    # Terms of pairs, t * pair_a[x, y] + pair_b[x, y] for every stream, and the price of leaving a site.
    pair_t: Floats
    pair_a: Floats
    pair_b: Floats
    # What an operator costs at a site by itself (m x n, or nothing).
    own: Floats
    running: Ints
    price: float
