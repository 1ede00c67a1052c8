"""How do a deployment and a placement become flat memory?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.loop.chance import key_of, passing
from weft.bodies.twin.records import names_of
from weft.bodies.twin.setup.flows import NS_PER_S, TooFine, is_random, steps_of
from weft.bodies.twin.setup.memory_builder import Arena
from weft.bodies.twin.setup.options import DISCIPLINES, Options, Recut, Shared
from weft.bodies.twin.setup.routes import Ways
from weft.bodies.twin.setup.work_ahead import work_left_ns
from weft.model import Dataflow, Deployment, Operator, Placement, Query, dataflow
from weft.model.queries import SELECTIVITY_DEFAULT
from weft.plan.dataflow.intervals import interval_ms
from weft.plan.dataflow.ordering import is_ordering
from weft.plan.dataflow.rates import Rates, cost_ms, output_rate
from weft.plan.dataflow.record_sizes import record_bytes

NS_PER_MS = 1_000_000
UNBOUNDED = 1 << 60
NO_PROMISE_NS = 1 << 60
RING_SECONDS = 1024
RING_RECORDS_MAX = 1 << 16
WINDOWS_MAX = 1_000_000
RECORDS_FIRST = 1 << 12
SPARE = 128
SERVICE_NS_MAX = 1e12  # ahead, so that what a million records take together can be counted
SLOTS = 1 << 14
SLOTS_COARSE = 1 << 12
COSTS = {"constant": c.CONSTANT, "uniform": c.UNIFORM, "exponential": c.EXPONENTIAL, "normal": c.NORMAL,
         "empirical": c.EMPIRICAL}  # fmt: skip


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
    instances: dict[tuple[str, str], list[int]] = field(default_factory=dict)  # of operators that have had several
    recut: Mapping[tuple[tuple[str, str], str], Mapping[str, Recut]] = field(default_factory=dict)
    room: float = 1.0


def lay_out(
    deployment: Deployment, placement: Placement, until_ns: int, seed: int, options: Options, rates: Rates
) -> Layout:
    """Everything the event loop needs."""
    a = Arena(c.SCALARS)
    sites = {site.name: a.rows(c.SITE_SIZE) for site in deployment.sites}
    sources = {source.name: a.rows(c.SOURCE_SIZE) for source in deployment.sources}
    flow, homes = dataflow(deployment), placement.homes
    rows = {node.stream: a.rows(c.OPERATOR_SIZE) for node in flow.nodes}
    makers = {**sources, **rows}
    sizes = record_bytes(deployment, rates)
    for rank, (stream, maker) in enumerate(makers.items()):
        a.set(maker, c.RANK, rank)
        a.set(maker, c.FLOATS, a.floats(sizes[stream], *[0.0] * (c.FLOATS_SIZE - 1)))
    _sites(a, deployment, sites)
    _shared(a, options.shared, sites, seed)
    _sources(a, deployment, sources, sites, until_ns, seed)
    ways = Ways(deployment, list(sites))
    due = options.due or DISCIPLINES["deadline"]
    assert due is not None
    left_ns = work_left_ns(deployment, flow, homes, ways) if options.due is not None else {}
    losers = _losers(a, deployment, flow, sources)
    promised = _promised(deployment, flow)
    most = _rates_most(a, flow, sources)
    for node in flow.nodes:
        o, query = rows[node.stream], node.queries[0]
        for column, stream in zip((c.RATE_MAX_0, c.RATE_MAX_1), node.inputs, strict=False):
            a.x[a.get(o + c.FLOATS) + column] = most[stream]
        a.set(o, c.HOME, sites[homes[node.stream]])
        _operator(a, o, query, node.operator, seed)
        if node.stream in promised:
            a.set(o, c.DUE, due(round(promised[node.stream] * NS_PER_MS), left_ns.get(node.stream, 0)))
        a.set(o, c.LOSERS, losers[node.stream])
    query_of_sink, followers = _readers(a, deployment, flow, makers, sites, homes)
    links, gates = _ways(a, ways, sites)
    queues = [node.operator.queue for node in flow.nodes]
    blocking = any(queue is not None and queue.when_full == "block" for queue in queues)
    ranked = 2 if options.due is not None else int(blocking)
    batched = [site for site in deployment.sites if site.batch is not None]
    if options.steady and not ranked and not batched and not options.drop_late:
        _look_ahead(a, deployment, flow, rows, homes)
    _loop(a, sources, options, ranked, 2.0 * sum(rates.per_s.values()) + 1.0, len(sources) + len(batched))
    m, x = a.built()
    operators = {names_of(stream): o for stream, o in rows.items()}
    found = Layout(m, x, sites, sources, operators, query_of_sink, links, gates, followers)
    if options.shared is not None:
        found.recut = options.shared.recut
    return found


def _sites(a: Arena, deployment: Deployment, sites: dict[str, int]) -> None:
    a.scalars({c.SITES_N: len(sites)})
    for index, site in enumerate(deployment.sites):
        s = sites[site.name]
        for column in (c.SERVING, c.HEAD, c.TAIL, c.LAST, c.INTERVAL, c.LATER, c.OUT):
            a.set(s, column, c.NOBODY)
        a.set(s, c.INDEX, index)
        a.set(s, c.SPEED, a.floats(site.capacity, 0.0))
        if site.batch is not None:
            a.set(s, c.INTERVAL, round(site.batch.interval_ms * NS_PER_MS))
            a.set(s, c.FIXED, round(site.batch.fixed_ms * NS_PER_MS))
            event = a.rows(c.RECORD_SIZE)
            a.set(event, c.AT, s)
            a.set(s, c.BATCH_EVENT, event)


def _losers(a: Arena, deployment: Deployment, flow: Dataflow, sources: dict[str, int]) -> dict[str, int]:
    """For each stream, a row of the queries whose results come from it."""
    queries = {query.name: _query(a, flow, query, sources) for query in deployment.queries}
    behind: dict[str, list[int]] = {node.stream: [] for node in flow.nodes}
    for query in deployment.queries:
        for node in flow.behind(query.name):
            behind[node.stream].append(queries[query.name])
    rows = {}
    for stream, those in behind.items():
        row = rows[stream] = a.rows(c.LOSERS_N + 1 + len(those))
        a.set(row, c.LOSERS_N, len(those))
        for at, one in enumerate(those):
            a.set(row, c.LOSERS_N + 1 + at, one)
    return rows


def _shared(a: Arena, shared: Shared | None, sites: dict[str, int], seed: int) -> None:
    a.scalars({c.SHARED: c.NOBODY})
    if shared is None:
        return
    a.scalars({c.SHARED: a.floats(shared.crowd, shared.spread, shared.cooling, shared.room)})
    for name, place in shared.places.items():
        s = sites[name]
        a.set(s, c.KEPT, c.NOBODY)
        after_ns = min(a.get(s + c.FIXED), round(place.after_ms * NS_PER_MS))
        a.set(s, c.AFTER, after_ns)
        a.set(s, c.BASE, a.get(s + c.FIXED) - after_ns)
        a.set(s, c.EXTRA, round(place.first_ms * NS_PER_MS))
        a.set(s, c.CLOSES, int(place.closes_windows))
        a.set(s, c.KEY_BATCH, key_of(seed, "batch", name))


def _query(a: Arena, flow: Dataflow, query: Query, sources: dict[str, int]) -> int:
    read = [sources[name] for name in flow.sources_of(query.name)]
    row = a.rows(c.QUERY_SOURCES + len(read))
    a.set(row, c.QUERY_SOURCES_N, len(read))
    a.set(row, c.QUERY_LOSS, a.floats(query.promise.loss or 0.0))
    for i, k in enumerate(read):
        a.set(row, c.QUERY_SOURCES + i, k)
    return row


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


def _operator(a: Arena, o: int, query: str, operator: Operator, seed: int) -> None:
    for column in (c.PARKED, c.OUTSIDE):
        a.set(o, column, c.NOBODY)
    a.set(o, c.FIRST_OF, o)
    queue = operator.queue
    a.set(o, c.LIMIT, UNBOUNDED if queue is None else queue.length)
    a.set(o, c.BLOCKS, int(queue is not None and queue.when_full == "block"))
    a.set(o, c.KEY_COST, key_of(seed, "cost", query, operator.name))
    a.set(o, c.KEY_SELECTIVITY, key_of(seed, "selectivity", query, operator.name))
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
    selectivity = a.x[f + c.SELECTIVITY]
    a.set(o, c.MANY, int(operator.window is not None or selectivity > 1.0))
    a.set(o, c.SERVICE, c.NOBODY)
    a.set(o, c.PASS, 0 if selectivity >= 1.0 else passing(selectivity) if selectivity > 0.0 else c.PASS_NEVER)
    if operator.window is not None:
        _window(a, o, operator)
    if is_ordering(operator):
        _order(a, o, operator)


def _order(a: Arena, o: int, operator: Operator) -> None:
    order = operator.order
    assert order is not None
    w = a.rows(c.ORDER_HEAD + 2 * c.ORDER_WINDOW)
    a.set(w, c.ORDER_FLOATS, a.floats(-1.0 if order.late_max is None else order.late_max, order.lambda_, *[0.0] * 4))
    a.set(o, c.WINDOW, w)
    a.set(o, c.KIND, c.ORDER)
    a.set(o, c.MANY, 1)


def _look_ahead(
    a: Arena,
    deployment: Deployment,
    flow: Dataflow,
    rows: Mapping[str, int],
    homes: Mapping[str, str],
) -> None:
    """Lets visits be one event, where no site stands still and no service takes no time or for ever."""
    speed = {site.name: site.capacity for site in deployment.sites}
    for node in flow.nodes:
        operator, o = node.operator, rows[node.stream]
        here = speed[homes[node.stream]]
        if here <= 0.0 or not 0.0 < cost_ms(operator) * NS_PER_MS <= SERVICE_NS_MAX * here:
            return
        if a.get(o + c.COST) == c.CONSTANT:
            cost_ns = a.x[a.get(o + c.FLOATS) + c.COST_A]
            a.set(o, c.SERVICE, max(1, int((cost_ns if here == 1.0 else cost_ns / here) + 0.5)))
    a.scalars({c.AHEAD: 1})


def _window(a: Arena, o: int, operator: Operator) -> None:
    assert operator.window is not None
    seconds = operator.window.records is None
    length = (operator.window.seconds or 0.0) * NS_PER_S if seconds else float(operator.window.records or 1)
    length = max(1.0, length)
    a.x[a.get(o + c.FLOATS) + c.LENGTH] = length
    if len(operator.from_) == 2:
        a.set(o, c.KIND, c.JOIN_SECONDS if seconds else c.JOIN_RECORDS)
        size = 1 + (RING_SECONDS if seconds else min(RING_RECORDS_MAX, max(c.JOIN_RATE_RECORDS, int(length))))
        a.set(o, c.RING_SIZE, size)
        a.set(o, c.RING_0, a.rows(1 + 2 * size))
        a.set(o, c.RING_1, a.rows(1 + 2 * size))
        return
    a.set(o, c.KIND, c.WINDOW_SECONDS if seconds else c.WINDOW_RECORDS)
    late_ns = max((interval_ms(mark.delay) for mark in operator.watermarks), default=0) * NS_PER_MS if seconds else 0
    size = 2 + int(late_ns // length)
    if size > WINDOWS_MAX:
        raise TooFine(f"operator {operator.name} keeps {size} windows open: its watermark is too long for its window")
    w = a.rows(c.WINDOW_HEAD + 2 * size)
    a.set(w, c.LATENESS, late_ns)
    a.set(w, c.WINDOWS_N, size)
    a.set(o, c.WINDOW, w)


def _readers(
    a: Arena,
    deployment: Deployment,
    flow: Dataflow,
    makers: dict[str, int],
    sites: dict[str, int],
    homes: Mapping[str, str],
) -> tuple[list[int], dict[tuple[str, str], list[int]]]:
    """Writes who reads each stream; gives the query of each sink, and the sinks that follow operators."""
    readers: dict[str, list[int]] = {stream: [] for stream in makers}
    for node in flow.nodes:
        for side, stream in enumerate(node.inputs):
            readers[stream] += [makers[node.stream], min(side, 1)]
    query_of_sink: list[int] = []
    followers: dict[tuple[str, str], list[int]] = {}
    for number, query in enumerate(deployment.queries):
        for outlet in flow.outlets_of(query.name):
            row = a.rows(c.SINK_SIZE)
            a.set(row, c.HOME, sites[outlet.site(flow, homes)])
            a.set(row, c.SINK_NUMBER, len(query_of_sink))
            query_of_sink.append(number)
            if outlet.sink.site is None and flow.makes(outlet.stream):
                followers.setdefault(names_of(outlet.stream), []).append(row)
            readers[outlet.stream] += [row, -1]
    for stream, maker in makers.items():
        a.set(maker, c.READERS, a.array(readers[stream] or [0, -1]))
        a.set(maker, c.READERS_N, len(readers[stream]) // 2)
    a.scalars({c.SPARE: SPARE + max((len(one) for one in readers.values()), default=0)})
    return query_of_sink, followers


def _ways(a: Arena, ways: Ways, sites: dict[str, int]) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
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


def _loop(a: Arena, sources: dict[str, int], options: Options, ranked: int, events_per_s: float, fixed: int) -> None:
    """The wheels, slots about an event wide; the log; and last, since it grows, the pool of records."""
    # In wider slots events wait in the heap, which is sorted; of narrower ones a turn of the wheel is soon over.
    width = max(0, int(NS_PER_S / min(events_per_s, 1e9)).bit_length() - 1)
    slots = SLOTS
    records_n = max(RECORDS_FIRST, 2 * a.get(c.SPARE))
    a.scalars({
        c.WHEEL: a.rows(slots, c.NOBODY), c.WHEEL_MASK: slots - 1, c.WIDTH: width, c.CURSOR: -1, c.RANKED: ranked,
        c.FILLED: a.rows(slots // 64), c.COARSE: a.rows(SLOTS_COARSE, c.NOBODY), c.COARSE_MASK: SLOTS_COARSE - 1,
        c.COARSE_SHIFT: slots.bit_length() - 1,
        c.LOG: a.rows(3 * (options.log_room + a.get(c.SPARE) + c.READERS_MAX)), c.LOG_ROOM: options.log_room,
        c.TODO: a.rows(c.TODO_SIZE), c.CONTRIBUTING: int(options.contributing), c.RECORDS_MAX: options.records_max,
        c.SOURCES: min(sources.values(), default=0), c.SOURCES_N: len(sources),
        c.HEAP: a.rows(records_n + fixed), c.DROPS_LATE: int(options.drop_late),
    })  # fmt: skip
    first = a.rows(records_n * c.RECORD_SIZE)
    a.scalars({c.RECORDS: first, c.RECORDS_N: records_n + fixed, c.FREE: first, c.FREE_N: records_n})
    a.chain(first, records_n, c.RECORD_SIZE, c.NEXT)


def _promised(deployment: Deployment, flow: Dataflow) -> dict[str, float]:
    """The shortest latency that was promised to a query whose results come from a stream, in ms."""
    found: dict[str, float] = {}
    for query in deployment.queries:
        if query.promise.latency_ms is not None:
            for node in flow.behind(query.name):
                found[node.stream] = min(query.promise.latency_ms, found.get(node.stream, query.promise.latency_ms))
    return found


def _rates_most(a: Arena, flow: Dataflow, sources: dict[str, int]) -> dict[str, float]:
    """Twice the greatest rate of every stream, were all sources at theirs: no join measures more."""
    most: dict[str, float] = {}
    for name, k in sources.items():
        first = a.get(k + c.STEP_RATE)
        steps = a.get(k + c.STEP_LAST) - a.get(k + c.STEP) + 1
        most[name] = 2 * NS_PER_S * max(a.x[first : first + steps])
    for node in flow.nodes:
        most[node.stream] = output_rate(node.operator, [most[stream] for stream in node.inputs])
    return most
