"""What happens where sites fill up? Records as a fluid through queues that run full, second by second.

Below saturation a formula tells how long a record waits; beyond it, and while sources swing, it depends on how long
the excess lasts, how long queues are and who loses what on the way. Here every operator has a queue, every site works
off what waits there first come, first served, and what does not fit into a queue is lost and asks nothing downstream.
Each operator hands on what it served in the step before. A result's latency is that of the records it came from on the
mean, as the twin counts it; a record that is lost counts as one that came very late.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from weft.model import Arrivals, dataflow
from weft.plan.compiled import compiled
from weft.plan.dataflow.arrivals import VARIES_LITTLE, shape_of
from weft.plan.dataflow.rates import cost_ms, ideal_rates, joins, output_rate
from weft.plan.network.path_tables import Bools, Floats, Ints
from weft.plan.search import packed as c
from weft.plan.search.building import entering
from weft.plan.search.needs_fluid import swings
from weft.plan.search.problem import Problem
from weft.plan.search.stream_costs import goes_there

STEP_S = 1.0
# Operators hand on a step later: where rates change, steps along a chain must add up to less than such a change takes.
FINE_STEP_S = 0.25
SECONDS = 72.0
WARM_UP_S = 16.0
LOST_MS = 10_000.0
# Within a step queues that come and go by chance are those of the formula, up to this utilisation.
STEADY = 0.99
UNBOUNDED = 1e12
HALVINGS = 10


class Flow(NamedTuple):
    """What the fluid needs beyond `Flat`: M nodes, m operators, T steps."""

    step_s: float
    rate: Floats
    selectivity: Floats
    joins: Bools
    queue: Floats
    order: Ints
    end_query: Ints
    end_node: Ints
    ends: Bools
    weight: Floats
    expected: Floats
    kbits: Floats
    rough: float
    swing: Floats
    last_ms: Floats


class Tides(NamedTuple):
    """What changes step by step: per operator, site, query, stream and link."""

    waits: Floats
    out: Floats
    came: Floats
    met: Floats
    age: Floats
    backlog: Floats
    load: Floats
    pass_: Floats
    size: Floats
    surge: Floats
    sway: Floats
    late: Floats
    got: Floats
    lag: Floats
    way: Floats


def tides(given: Problem) -> Tides:
    """Nothing flows yet."""
    m, nodes, n = len(given.operators), len(given.flat.home), len(given.sites)
    queries, streams = len(given.deployment.queries), len(given.flat.in_from)
    swinging = sum(swings(source.arrivals) for source in given.deployment.sources)
    sizes = (m, m, m, m, nodes, n, n, n, n, n, swinging, queries, queries, streams, len(given.flat.way_kbps))
    return Tides(*(np.zeros(size) for size in sizes))


def flow(given: Problem) -> Flow:
    """The arrays of a problem; nodes that stand still come in the order that `flat` gives them."""
    deployment, m = given.deployment, len(given.operators)
    graph, rates = dataflow(deployment), ideal_rates(deployment)
    told = [shape_of(one.arrivals).told for one in deployment.sources if one.arrivals is not None]
    step_s = FINE_STEP_S if any(told) else STEP_S
    steps = round(SECONDS / step_s)
    rate = np.zeros((steps, len(given.flat.home)))
    ends: list[tuple[int, int]] = []
    expected = np.zeros(len(deployment.queries))
    fixed = m
    number = {stream: at for at, stream in enumerate(given.operators)}
    for at, query in enumerate(deployment.queries):
        stands: dict[str, int] = {}
        for stream in entering(graph, query):
            stands[stream], fixed = fixed, fixed + 1
        for outlet in graph.outlets_of(query.name):
            if outlet.stream not in number and outlet.stream not in stands:
                stands[outlet.stream], fixed = fixed, fixed + 1
            node = number[outlet.stream] if outlet.stream in number else stands[outlet.stream]
            ends.append((at, fixed if outlet.sink.site is not None else node))
            fixed += outlet.sink.site is not None
            expected[at] += rates.per_s[outlet.stream]
        for stream, node in stands.items():
            rate[:, node] = _rates(graph.sources[stream].arrivals, steps, step_s)
    order = [number[node.stream] for node in graph.nodes]
    operators = [op for query in deployment.queries for op in query.operators]
    reads = np.diff(given.flat.in_at) > 0
    per_s = rate.mean(axis=0)
    per_s[:m] = [rates.per_s[stream] for stream in given.operators]
    return Flow(
        step_s,
        rate,
        np.array([1.0 if op.selectivity is None else op.selectivity for op in operators]),
        np.array([joins(op) for op in operators], np.bool_),
        np.array([UNBOUNDED if op.queue is None else float(op.queue.length) for op in operators]),
        np.array(order, np.int64),
        np.array([query for query, _ in ends], np.int64),
        np.array([node for _, node in ends], np.int64),
        reads,
        np.array([query.weight for query in deployment.queries], np.float64),
        expected,
        np.where(per_s > 0, given.flat.kbps / np.maximum(per_s, 1e-9), 0.0),
        _roughness(given),
        *_swing(given),
    )


def _roughness(given: Problem) -> float:
    """Kingman's (ca² + cs²) / 2, how much chance makes wait: exponential costs count 1, even ones nothing."""
    arrivals = [one.arrivals for one in given.deployment.sources]
    sources = [VARIES_LITTLE if one is None else shape_of(one).varies for one in arrivals]
    costs = [
        1.0 if op.cost_ms is not None and op.cost_ms.kind == "exponential" else 0.0
        for query in given.deployment.queries
        for op in query.operators
    ]
    return (sum(sources) / max(1, len(sources)) + sum(costs) / max(1, len(costs))) / 2.0


def _rates(arrivals: Arrivals | None, steps: int, step_s: float) -> Floats:
    """Records per second in every step: as they are where they are told ahead, else their mean."""
    shape = None if arrivals is None else shape_of(arrivals)
    if shape is not None and shape.told is not None:
        return np.array([shape.told.at(at) for at in (np.arange(steps) + 0.5) * step_s])
    return np.full(steps, 0.0 if shape is None else shape.mean_per_s)


def _swing(given: Problem) -> tuple[Floats, Floats]:
    """How far each operator's load goes with each swinging source (a standard deviation), and for how long (ms)."""
    deployment = given.deployment
    moving = [source for source in deployment.sources if swings(source.arrivals)]
    found, last_ms = np.zeros((len(given.operators), len(moving))), np.zeros(len(moving))
    graph, mean = dataflow(deployment), ideal_rates(deployment).per_s
    number = {stream: at for at, stream in enumerate(given.operators)}
    rank = {node.stream: at for at, node in enumerate(graph.nodes)}
    for column, source in enumerate(moving):
        assert source.arrivals is not None
        swing = shape_of(source.arrivals).swing
        assert swing is not None
        last_ms[column] = swing.lasts_ms
        busy = dict(mean)
        busy[source.name] *= 1.0 + swing.share
        for node in sorted(graph.downstream(source.name), key=lambda node: rank[node.stream]):
            more = sum(busy[one] - mean[one] for one in node.inputs)
            found[number[node.stream], column] = cost_ms(node.operator) * more
            busy[node.stream] = output_rate(node.operator, [busy[one] for one in node.inputs])
    return found, last_ms


@compiled
def _arrive(i: Ints, flow: Flow, step: int, tides: Tides) -> None:
    """What reaches every operator in a step, from what those before it served in the last."""
    m = i[c.OPS]
    for op in range(m):
        begin, end = i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]
        inflow, product = 0.0, 1.0
        for at in range(begin, end):
            node = i[i[c.IN_FROM] + at]
            one = flow.rate[step, node] if node >= m else tides.out[node]
            inflow += one
            product *= one
        tides.came[op] = inflow
        tides.met[op] = product
        tides.waits[op] += inflow * flow.step_s


@compiled
def _admitted(flow: Flow, tides: Tides, op: int, share: float) -> float:
    """What of an operator's records finds a place in its queue, while this share of it is served meanwhile."""
    if share >= 1.0:
        return float(tides.waits[op])
    return float(min(tides.waits[op], flow.queue[op] / (1.0 - share)))


@compiled
def _share(i: Ints, f: Floats, flow: Flow, home: Ints, tides: Tides, site: int, room: float) -> float:
    """The share of what is admitted that a full site gets done: who sends far too much loses it at the queue."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = (low + high) / 2.0
        asked = 0.0
        for op in range(i[c.OPS]):
            if home[op] == site:
                asked += share * _admitted(flow, tides, op, share) * f[i[c.COST] + op]
        if asked > room:
            high = share
        else:
            low = share
    return low


@compiled
def _serve(i: Ints, f: Floats, flow: Flow, home: Ints, tides: Tides) -> None:
    """What every site gets done in a step, what waits then, and what is lost."""
    m, n = i[c.OPS], i[c.SITES]
    tides.backlog[:] = 0.0
    tides.load[:] = 0.0
    tides.size[:] = 0.0
    for op in range(m):
        cost = f[i[c.COST] + op]
        tides.backlog[home[op]] += tides.waits[op] * cost
        tides.load[home[op]] += tides.came[op] * cost
        tides.size[home[op]] += tides.came[op] * cost * cost
    for site in range(n):
        room = 1000.0 * flow.step_s * f[i[c.SPEED] + site]
        tides.pass_[site] = 1.0 if tides.backlog[site] <= room else _share(i, f, flow, home, tides, site, room)
        tides.backlog[site] = 0.0
    for op in range(m):
        done = _admitted(flow, tides, op, tides.pass_[home[op]]) * tides.pass_[home[op]]
        tides.waits[op] = min(tides.waits[op] - done, flow.queue[op])
        tides.backlog[home[op]] += tides.waits[op] * f[i[c.COST] + op] / f[i[c.SPEED] + home[op]]
        if flow.joins[op]:
            part = done / flow.step_s / tides.came[op] if tides.came[op] > 0.0 else 0.0
            tides.out[op] = flow.selectivity[op] * tides.met[op] * part * part
        else:
            tides.out[op] = flow.selectivity[op] * done / flow.step_s


@compiled
def _age(i: Ints, f: Floats, flow: Flow, step: int, home: Ints, tides: Tides) -> None:
    """How old records are when operators are done with them: the mean over their inputs, by how much each sends."""
    m = i[c.OPS]
    for op in flow.order:
        here = home[op]
        total, weight = 0.0, 0.0
        for at in range(i[i[c.IN_AT] + op], i[i[c.IN_AT] + op + 1]):
            node = i[i[c.IN_FROM] + at]
            rate = (flow.rate[step, node] if node >= m else tides.out[node]) + 1e-9
            total += rate * (tides.age[node] + tides.lag[at])
            weight += rate
        speed = f[i[c.SPEED] + here]
        busy = min(STEADY, tides.load[here] / (1000.0 * speed))
        # Records of all operators there wait for each other.
        size = tides.size[here] / tides.load[here] if tides.load[here] > 0.0 else 0.0
        wait = (f[i[c.COST] + op] + flow.rough * size * busy / (1.0 - busy)) / speed
        tides.age[op] = total / weight + tides.backlog[here] + tides.surge[here] + wait


@compiled
def _surge(i: Ints, f: Floats, flow: Flow, home: Ints, tides: Tides) -> None:
    """What waits on the mean because sources swing: by how much, and how long, a site's load goes beyond what it can.

    Sources swing apart from each other, so their sum is about normal; operators of one source swing together.
    """
    sources = flow.swing.shape[1]
    tides.surge[:] = 0.0
    if sources == 0:
        return
    for site in range(i[c.SITES]):
        tides.sway[:] = 0.0
        for op in range(i[c.OPS]):
            if home[op] == site:
                for at in range(sources):
                    tides.sway[at] += flow.swing[op, at]
        room = 1000.0 * f[i[c.SPEED] + site]
        spread, lasts = 0.0, 0.0
        for at in range(sources):
            spread += tides.sway[at] ** 2
            lasts += tides.sway[at] ** 2 * flow.last_ms[at]
        if spread > 0.0:
            sd = math.sqrt(spread) / room
            left = 1.0 - min(1.0, tides.load[site] / room)
            normal = math.exp(-0.5 * (left / sd) ** 2) / math.sqrt(2.0 * math.pi)
            above = 0.5 * (1.0 - math.erf(left / sd / math.sqrt(2.0)))
            tides.surge[site] = (sd * normal - left * above) * lasts / spread


@compiled
def _lags(i: Ints, f: Floats, flow: Flow, home: Ints, tides: Tides) -> None:
    """How long each stream is on its way: delays, and on narrow links the sending of what else goes there."""
    n = i[c.SITES]
    if i[c.LIMITED]:
        _send(i, f, home, tides)
    for node in range(i[c.NODES]):
        for at in range(i[i[c.IN_AT] + node], i[i[c.IN_AT] + node + 1]):
            before = i[i[c.IN_FROM] + at]
            pair = home[before] * n + home[node]
            tides.lag[at] = f[i[c.DELAY] + pair]
            if i[c.LIMITED]:
                for step in range(i[i[c.STEP_AT] + pair], i[i[c.STEP_AT] + pair + 1]):
                    way = i[i[c.STEP_WAY] + step]
                    full = tides.way[way] / f[i[c.WAY_WIDTH] + way]
                    sending = 1000.0 * flow.kbits[before] / f[i[c.WAY_WIDTH] + way]
                    tides.lag[at] += sending / (1.0 - min(STEADY, full)) + max(0.0, full - 1.0) * 500.0 * SECONDS


@compiled
def _send(i: Ints, f: Floats, home: Ints, tides: Tides) -> None:
    """What every link carries: one copy per destination site."""
    tides.way[:] = 0.0
    for node in range(i[c.NODES]):
        start = home[node]
        for at in range(i[i[c.OUT_AT] + node], i[i[c.OUT_AT] + node + 1]):
            end = home[i[i[c.OUT_TO] + at]]
            if start != end and not goes_there(i, node, at, end, -1):
                pair = start * i[c.SITES] + end
                for step in range(i[i[c.STEP_AT] + pair], i[i[c.STEP_AT] + pair + 1]):
                    tides.way[i[i[c.STEP_WAY] + step]] += f[i[c.KBPS] + node]


@compiled
def fluid_ms(i: Ints, f: Floats, flow: Flow, home: Ints, tides: Tides) -> float:
    """The latency of all queries by their weights, lost records included."""
    m = i[c.OPS]
    _lags(i, f, flow, home, tides)
    tides.waits[:] = 0.0
    tides.out[:] = 0.0
    tides.late[:] = 0.0
    tides.got[:] = 0.0
    first, steps = int(WARM_UP_S / flow.step_s), flow.rate.shape[0]
    for step in range(steps):
        _arrive(i, flow, step, tides)
        _serve(i, f, flow, home, tides)
        if step < first:
            continue
        if step == first:
            _surge(i, f, flow, home, tides)
        _age(i, f, flow, step, home, tides)
        for at in range(len(flow.end_node)):
            end, query = flow.end_node[at], flow.end_query[at]
            node, lag = end, 0.0
            if end >= m and flow.ends[end]:
                at_end = i[i[c.IN_AT] + end]
                node, lag = i[i[c.IN_FROM] + at_end], tides.lag[at_end]
            came = flow.step_s * (tides.out[node] if node < m else flow.rate[step, node])
            tides.late[query] += came * (tides.age[node] + lag)
            tides.got[query] += came
    total = 0.0
    for query in range(len(flow.weight)):
        got = tides.got[query] / ((steps - first) * flow.step_s)
        lost = max(0.0, 1.0 - got / flow.expected[query]) if flow.expected[query] > 0.0 else 0.0
        mean = tides.late[query] / tides.got[query] if tides.got[query] > 0.0 else 0.0
        total += flow.weight[query] * (mean + LOST_MS * lost)
    return total
