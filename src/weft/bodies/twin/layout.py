"""A deployment and a placement as flat memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.bodies.twin import columns as c
from weft.bodies.twin.arena import Arena
from weft.bodies.twin.chance import key_of
from weft.bodies.twin.flows import NS_PER_S, is_random, steps_of
from weft.bodies.twin.ways import Ways
from weft.model import Deployment, Operator, Placement, Query
from weft.plan.graph import sink_site, stream_of, topological
from weft.plan.intervals import interval_ms
from weft.plan.rates import SELECTIVITY_DEFAULT, cost_ms, ideal_rates, output_rate

NS_PER_MS = 1_000_000
UNBOUNDED = 1 << 60
NO_PROMISE_NS = 1 << 60
RING_SECONDS = 1024
RECORDS_FIRST = 1 << 12
SPARE = 128
DISCIPLINES = ("fcfs", "deadline", "slack")
COSTS = {"constant": c.CONSTANT, "uniform": c.UNIFORM, "exponential": c.EXPONENTIAL, "normal": c.NORMAL,
         "empirical": c.EMPIRICAL}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is carried out, besides what the deployment says."""

    discipline: str = "fcfs"
    contributing: bool = False
    records_max: int = 2_000_000
    log_room: int = 1 << 16


@dataclass(slots=True)
class Layout:
    """The memory of a run, and the handles behind the names."""

    m: c.Ints
    x: c.Floats
    sites: dict[str, int]
    sources: dict[str, int]
    operators: dict[tuple[str, str], int]
    query_of_sink: list[int]
    links: dict[tuple[str, str], int]
    gates: dict[tuple[str, str], int]
    followers: dict[tuple[str, str], list[int]]  # sinks without a site of their own, by their operator


def lay_out(deployment: Deployment, placement: Placement, until_ns: int, seed: int, options: Options) -> Layout:
    """Everything the event loop needs."""
    a = Arena(c.SCALARS)
    sites = {site.name: a.rows(c.SITE_SIZE) for site in deployment.sites}
    sources = {source.name: a.rows(c.SOURCE_SIZE) for source in deployment.sources}
    order = [(query, query.operator(name)) for query in deployment.queries for name in topological(query)]
    operators = {(query.name, operator.name): a.rows(c.OPERATOR_SIZE) for query, operator in order}
    homes = {key: placement.home(*key) for key in operators}
    makers = {**sources, **{f"{query}.{name}": o for (query, name), o in operators.items()}}
    sizes = _record_bytes(deployment, order)
    for rank, (stream, maker) in enumerate(makers.items()):
        a.set(maker, c.RANK, rank)
        a.set(maker, c.FLOATS, a.floats(sizes[stream], *[0.0] * (c.FLOATS_SIZE - 1)))
    _sites(a, deployment, sites)
    _sources(a, deployment, sources, sites, until_ns, seed)
    left_ns: dict[tuple[str, str], int] = {}
    ways = Ways(deployment, list(sites))
    if options.discipline == "slack":
        left_ns = _work_left(deployment, homes, ways)
    most = _rates_most(a, deployment, order, sources)
    for query, operator in order:
        o = operators[query.name, operator.name]
        for column, name in zip((c.RATE_MAX_0, c.RATE_MAX_1), operator.from_, strict=False):
            a.x[a.get(o + c.FLOATS) + column] = most[stream_of(query, name)]
        a.set(o, c.HOME, sites[homes[query.name, operator.name]])
        _operator(a, o, query, operator, seed)
        if query.promise.latency_ms is not None:
            due_ns = round(query.promise.latency_ms * NS_PER_MS) - left_ns.get((query.name, operator.name), 0)
            a.set(o, c.DUE, due_ns)
    query_of_sink, followers = _readers(a, deployment, order, operators, makers, sites, homes)
    links, gates = _ways(a, ways, sites)
    blocking = any(operator.queue is not None and operator.queue.when_full == "block" for _, operator in order)
    _loop(a, deployment, sources, options, 2 if options.discipline != "fcfs" else int(blocking))
    m, x = a.built()
    return Layout(m, x, sites, sources, operators, query_of_sink, links, gates, followers)


def _sites(a: Arena, deployment: Deployment, sites: dict[str, int]) -> None:
    a.scalars({c.SITES_N: len(sites)})
    for index, site in enumerate(deployment.sites):
        s = sites[site.name]
        for column in (c.SERVING, c.HEAD, c.TAIL):
            a.set(s, column, c.NOBODY)
        a.set(s, c.INDEX, index)
        a.set(s, c.SPEED, a.floats(site.capacity))


def _sources(
    a: Arena, deployment: Deployment, sources: dict[str, int], sites: dict[str, int], until_ns: int, seed: int
) -> None:
    for source in deployment.sources:
        k = sources[source.name]
        steps = steps_of(source, deployment.scenario, until_ns, seed)
        first = a.array(end_ns for end_ns, _ in steps)
        a.set(k, c.HOME, sites[source.site])
        a.set(k, c.STEP, first)
        a.set(k, c.STEP_LAST, first + len(steps) - 1)
        a.set(k, c.STEP_RATE, a.floats(*(rate for _, rate in steps)))
        a.set(k, c.BACKLOG, c.NOBODY)
        a.set(k, c.RANDOM, int(source.arrivals is not None and is_random(source.arrivals)))
        a.set(k, c.KEY_GAP, key_of(seed, "gap", source.name))
        event = a.rows(c.RECORD_SIZE)
        a.set(event, c.AT, k)
        a.set(event, c.MASK, c.BIRTHS)
        a.set(k, c.EVENT, event)


def _operator(a: Arena, o: int, query: Query, operator: Operator, seed: int) -> None:
    for column in (c.PARKED, c.OUTSIDE):
        a.set(o, column, c.NOBODY)
    queue = operator.queue
    a.set(o, c.LIMIT, UNBOUNDED if queue is None else queue.length)
    a.set(o, c.BLOCKS, int(queue is not None and queue.when_full == "block"))
    a.set(o, c.KEY_COST, key_of(seed, "cost", query.name, operator.name))
    a.set(o, c.KEY_SELECTIVITY, key_of(seed, "selectivity", query.name, operator.name))
    a.set(o, c.DUE, NO_PROMISE_NS)
    f = a.get(o + c.FLOATS)
    kind = "constant" if operator.cost_ms is None else operator.cost_ms.kind
    values = (cost_ms(operator),) if operator.cost_ms is None else operator.cost_ms.values
    a.set(o, c.COST, COSTS[kind])
    cost = [value * NS_PER_MS for value in values]
    match kind:
        case "uniform":
            cost = [cost[0], cost[1] - cost[0]]
        case "empirical":
            cost = [a.floats(*cost), len(cost)]
    for column, value in zip((c.COST_A, c.COST_B), cost, strict=False):
        a.x[f + column] = value
    a.x[f + c.SELECTIVITY] = SELECTIVITY_DEFAULT if operator.selectivity is None else operator.selectivity
    a.set(o, c.MANY, int(operator.window is not None or a.x[f + c.SELECTIVITY] > 1.0))
    if operator.window is not None:
        _window(a, o, operator)


def _window(a: Arena, o: int, operator: Operator) -> None:
    assert operator.window is not None
    seconds = operator.window.records is None
    length = (operator.window.seconds or 0.0) * NS_PER_S if seconds else float(operator.window.records or 1)
    length = max(1.0, length)
    a.x[a.get(o + c.FLOATS) + c.LENGTH] = length
    if len(operator.from_) == 2:
        a.set(o, c.KIND, c.JOIN_SECONDS if seconds else c.JOIN_RECORDS)
        size = 1 + (RING_SECONDS if seconds else max(c.JOIN_RATE_RECORDS, int(length)))
        a.set(o, c.RING_SIZE, size)
        a.set(o, c.RING_0, a.rows(1 + 2 * size))
        a.set(o, c.RING_1, a.rows(1 + 2 * size))
        return
    a.set(o, c.KIND, c.WINDOW_SECONDS if seconds else c.WINDOW_RECORDS)
    late_ns = max((interval_ms(mark.delay) for mark in operator.watermarks), default=0) * NS_PER_MS if seconds else 0
    size = 2 + int(late_ns // length)
    w = a.rows(c.WINDOW_HEAD + 2 * size)
    a.set(w, c.LATENESS, late_ns)
    a.set(w, c.WINDOWS_N, size)
    a.set(o, c.WINDOW, w)


def _readers(
    a: Arena,
    deployment: Deployment,
    order: list[tuple[Query, Operator]],
    operators: dict[tuple[str, str], int],
    makers: dict[str, int],
    sites: dict[str, int],
    homes: dict[tuple[str, str], str],
) -> tuple[list[int], dict[tuple[str, str], list[int]]]:
    """Writes who reads each stream; gives the query of each sink, and the sinks that follow operators."""
    readers: dict[str, list[int]] = {stream: [] for stream in makers}
    for query, operator in order:
        for side, name in enumerate(operator.from_):
            readers[stream_of(query, name)] += [operators[query.name, operator.name], min(side, 1)]
    query_of_sink: list[int] = []
    followers: dict[tuple[str, str], list[int]] = {}
    for number, query in enumerate(deployment.queries):
        local = {operator.name: homes[query.name, operator.name] for operator in query.operators}
        for sink in query.sinks:
            row = a.rows(c.SINK_SIZE)
            a.set(row, c.HOME, sites[sink_site(deployment, query, sink, local)])
            a.set(row, c.SINK_NUMBER, len(query_of_sink))
            query_of_sink.append(number)
            if sink.site is None and sink.from_ in local:
                followers.setdefault((query.name, sink.from_), []).append(row)
            readers[stream_of(query, sink.from_)] += [row, -1]
    for stream, maker in makers.items():
        alone = len(readers[stream]) == 2 and readers[stream][1] >= 0
        a.set(maker, c.QUICK_READER, readers[stream][0] << 1 | readers[stream][1] if alone else c.NOBODY)
        a.set(maker, c.READERS, a.array(readers[stream] or [0, -1]))
        a.set(maker, c.READERS_N, len(readers[stream]) // 2)
    a.scalars({c.SPARE: SPARE + max((len(one) for one in readers.values()), default=0)})
    return query_of_sink, followers


def _ways(
    a: Arena, ways: Ways, sites: dict[str, int]
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    rows = [a.rows(c.LINK_SIZE) for _ in ways.names]
    for row, delay_ns, per_byte in zip(rows, ways.link_delay_ns, ways.ns_per_byte, strict=True):
        a.set(row, c.DELAY, delay_ns)
        a.set(row, c.LINK_FLOATS, a.floats(per_byte))
    table = np.empty((len(sites) ** 2, 2), np.int64)
    table[:, 0] = ways.delay_ns.ravel()
    table[:, 1] = c.NOBODY
    for place, links in ways.links.items():
        table[place, 1] = a.array([*(rows[link] for link in links), c.NOBODY])
    a.scalars({c.WAYS: a.array(table.ravel())})
    gates = {pair: rows[row] for pair, row in ways.gates.items()}
    return {pair: row for pair, row in zip(ways.names, rows, strict=True) if row not in gates.values()}, gates


def _loop(a: Arena, deployment: Deployment, sources: dict[str, int], options: Options, ranked: int) -> None:
    """The wheel, its slots about one event wide; the log; and last, since it grows, the pool of records."""
    events_per_s = 2.0 * sum(ideal_rates(deployment).per_s.values()) + 1.0
    width = max(0, int(NS_PER_S / min(events_per_s, 1e9)).bit_length() - 1)
    slots = 1 << 16 if events_per_s > 20_000 else 1 << 13
    records_n = max(RECORDS_FIRST, 2 * a.get(c.SPARE))
    a.scalars({
        c.WHEEL: a.rows(slots, c.NOBODY), c.WHEEL_MASK: slots - 1, c.WIDTH: width, c.CURSOR: -1, c.RANKED: ranked,
        c.LOG: a.rows(3 * (options.log_room + a.get(c.SPARE) + c.READERS_MAX)), c.LOG_ROOM: options.log_room,
        c.TODO: a.rows(c.TODO_SIZE), c.CONTRIBUTING: int(options.contributing), c.RECORDS_MAX: options.records_max,
        c.SOURCES: min(sources.values(), default=0), c.SOURCES_N: len(sources),
        c.HEAP: a.rows(records_n + len(sources)),
    })  # fmt: skip
    first = a.rows(records_n * c.RECORD_SIZE)
    a.scalars({c.RECORDS: first, c.RECORDS_N: records_n + len(sources), c.FREE: first, c.FREE_N: records_n})
    a.chain(first, records_n, c.RECORD_SIZE, c.NEXT)


def _rates_most(
    a: Arena, deployment: Deployment, order: list[tuple[Query, Operator]], sources: dict[str, int]
) -> dict[str, float]:
    """Twice the greatest rate of every stream, were all sources at theirs: no join measures more."""
    most: dict[str, float] = {}
    for source in deployment.sources:
        k = sources[source.name]
        first = a.get(k + c.STEP_RATE)
        steps = a.get(k + c.STEP_LAST) - a.get(k + c.STEP) + 1
        most[source.name] = 2 * NS_PER_S * max(a.x[first : first + steps])
    for query, operator in order:
        inputs = [most[stream_of(query, name)] for name in operator.from_]
        most[f"{query.name}.{operator.name}"] = output_rate(operator, inputs)
    return most


def _record_bytes(deployment: Deployment, order: list[tuple[Query, Operator]]) -> dict[str, float]:
    """Records keep the size of what they were made from; a join's are as large as both together."""
    size = {source.name: source.record_bytes for source in deployment.sources}
    for query, operator in order:
        inputs = [size[stream_of(query, name)] for name in operator.from_]
        joined = operator.window is not None and len(inputs) == 2
        size[f"{query.name}.{operator.name}"] = sum(inputs) if joined else max(inputs)
    return size


def _work_left(
    deployment: Deployment, homes: dict[tuple[str, str], str], ways: Ways
) -> dict[tuple[str, str], int]:
    """Mean work and link delay from an operator to its farthest sink: what least slack takes off the deadline."""
    capacity = {site.name: site.capacity for site in deployment.sites}
    left: dict[tuple[str, str], int] = {}
    for query in deployment.queries:
        for name in reversed(topological(query)):
            here = homes[query.name, name]
            after = [(homes[query.name, one.name], left[query.name, one.name]) for one in query.consumers(name)]
            after += [(sink.site, 0) for sink in query.sinks if sink.from_ == name and sink.site]
            rest = max((max(0, ways.between_ns(here, there)) + more for there, more in after), default=0)
            work = cost_ms(query.operator(name)) * NS_PER_MS / capacity[here] if capacity[here] else 0.0
            left[query.name, name] = round(work) + rest
    return left
