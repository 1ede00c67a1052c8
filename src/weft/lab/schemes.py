"""The six schemes of Potential (§5.2, Tables 2 and 3) as deployments, operators placed at random.

The source leaves open where data enters and leaves: here sources stand outside and reach every host without delay, and
results end beside their last operator. A capacity coefficient multiplies cost, so a site's capacity is its inverse.
Hybrid graphs are only described by their numbers of filters and joins: each operator reads streams drawn at random
among those that keep a join's output at or below 30 records a second; what nobody reads ends in a sink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from weft.model import (
    Arrivals,
    Constant,
    Cost,
    Deployment,
    JoinWindow,
    Link,
    OnOff,
    Operator,
    Placement,
    Query,
    Queue,
    Sink,
    Site,
    Source,
)

OUTSIDE = "outside"
RECORD_BYTES = 100.0
QUEUE = Queue(100)
JOIN_RATE_PER_S_MAX = 30.0
CHOICES = (
    "latency runs from the birth of the youngest contributing record (`weft twin --ideal --latency contributing`)",
    "sources reach every host without delay; results end beside their last operator",
    "hybrid graphs (schemes 4 and 5) are only described by numbers of filters and joins: each operator reads streams "
    "drawn "
    f"at random, among those that keep a join's output at or below {JOIN_RATE_PER_S_MAX:g} records/s; what nobody "
    "reads ends in a "
    "sink",
)
"""What the source leaves open about its schemes, for the rows that use them."""
Draw = Callable[[Random], float]


def always(value: float) -> Draw:
    """The same value each time."""
    return lambda rng: value


def uniform(low: float, high: float) -> Draw:
    """U(low, high)."""
    return lambda rng: rng.uniform(low, high)


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme; the defaults are those of Table 2."""

    name: str
    hosts: int
    operators: int
    sources: int
    filters: float = 1.0
    slowness: Draw = always(1.0)
    filter_ms: Draw = uniform(1, 5)
    filter_selectivity: Draw = uniform(0.8, 1.0)
    gap_ms: float = 70.0
    fluctuating: bool = False
    ratio: float = 4.0
    link_records: Draw = uniform(4, 10_000)
    link_delay_ms: Draw = uniform(1, 500)
    chained: bool = True

    def arrivals(self) -> Arrivals:
        """Stable: evenly spaced. Fluctuating: `gap_ms` is the mean gap of the busy mode."""
        if not self.fluctuating:
            return Constant(1000.0 / self.gap_ms)
        busy = 1000.0 / self.gap_ms
        return OnOff(busy * (1 + 1 / self.ratio) / 2, ratio=self.ratio)


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("scheme-1", 3, 9, 1, filter_ms=always(20), filter_selectivity=always(1.0), gap_ms=100,
               link_records=always(10_000), link_delay_ms=always(100)),
        Scheme("scheme-2", 20, 200, 20, slowness=uniform(1, 10)),
        Scheme("scheme-3", 10, 90, 3, slowness=uniform(1, 2), filter_ms=always(10), gap_ms=100, fluctuating=True,
               ratio=2.5),
        Scheme("scheme-4", 5, 40, 5, filters=0.5, chained=False),
        Scheme("scheme-5", 10, 100, 5, filters=0.85, slowness=uniform(1, 10), gap_ms=50, fluctuating=True,
               chained=False),
        Scheme("scheme-6", 20, 200, 20, gap_ms=15, fluctuating=True, link_records=always(10_000),
               link_delay_ms=always(0)),
    )
}  # fmt: skip


def deployment(scheme: Scheme, seed: int) -> tuple[Deployment, Placement]:
    """A scheme with its random values drawn, and the random placement that the source calls original."""
    rng = Random(seed)
    hosts = tuple(Site(f"h{i}", capacity=1.0 / scheme.slowness(rng)) for i in range(scheme.hosts))
    links = [Link(OUTSIDE, host.name, oneway=True) for host in hosts]
    for a in hosts:
        for b in hosts:
            if a is not b:
                links.append(_link(scheme, a.name, b.name, rng))
    sources = tuple(
        Source(f"in{k}", OUTSIDE, "rate", (), record_bytes=RECORD_BYTES, arrivals=scheme.arrivals())
        for k in range(scheme.sources)
    )
    queries = _chains(scheme, rng) if scheme.chained else (_hybrid(scheme, rng),)
    homes = {
        f"{query.name}.{operator.name}": rng.choice(hosts).name for query in queries for operator in query.operators
    }
    sites = (*hosts, Site(OUTSIDE, capacity=0.0))
    return Deployment(sites, sources, queries, tuple(links)), Placement(homes)


def _link(scheme: Scheme, start: str, end: str, rng: Random) -> Link:
    delay_ms, records = scheme.link_delay_ms(rng), scheme.link_records(rng)
    if delay_ms == 0:
        return Link(start, end, 0.0, oneway=True)
    # Capacity is what can be on the link at once, so bandwidth is capacity over delay.
    per_s = records / (delay_ms / 1000.0)
    return Link(start, end, delay_ms, per_s * RECORD_BYTES * 8 / 1000.0, oneway=True)


def _filter(scheme: Scheme, name: str, reads: str, rng: Random) -> Operator:
    cost = Cost("constant", (scheme.filter_ms(rng),))
    passes = scheme.filter_selectivity(rng)
    return Operator(name, (reads,), sql="SELECT 1", cost_ms=cost, selectivity=passes, queue=QUEUE)


def _chains(scheme: Scheme, rng: Random) -> tuple[Query, ...]:
    length = scheme.operators // scheme.sources
    queries = []
    for k in range(scheme.sources):
        operators: list[Operator] = []
        for i in range(length):
            reads = operators[-1].name if operators else f"in{k}"
            operators.append(_filter(scheme, f"o{i}", reads, rng))
        queries.append(Query(f"chain{k}", tuple(operators), (Sink(operators[-1].name, "console"),)))
    return tuple(queries)


def _hybrid(scheme: Scheme, rng: Random) -> Query:
    mean = scheme.arrivals()
    assert isinstance(mean, Constant | OnOff)
    rates = {f"in{k}": mean.rate_per_s for k in range(scheme.sources)}
    kinds = ["filter"] * round(scheme.filters * scheme.operators)
    kinds += ["join"] * (scheme.operators - len(kinds))
    rng.shuffle(kinds)
    operators: list[Operator] = []
    for i, kind in enumerate(kinds):
        name = f"o{i}"
        if kind == "filter":
            reads = rng.choice(sorted(rates))
            made = _filter(scheme, name, reads, rng)
            rates[name] = rates[reads] * (made.selectivity or 0.0)
        else:
            made, rates[name] = _join(name, rates, rng)
        operators.append(made)
    read = {stream for operator in operators for stream in operator.from_}
    sinks = tuple(Sink(operator.name, "console") for operator in operators if operator.name not in read)
    return Query("hybrid", tuple(operators), sinks)


def _join(name: str, rates: dict[str, float], rng: Random) -> tuple[Operator, float]:
    selectivity = rng.uniform(0.01, 0.2)
    window = JoinWindow(records=rng.randint(1, 10))
    cost = Cost("constant", (rng.uniform(1, 2),))
    streams = sorted(rates)
    fitting = [
        (a, b) for a in streams for b in streams if a < b and selectivity * rates[a] * rates[b] <= JOIN_RATE_PER_S_MAX
    ]
    slowest = sorted(streams, key=lambda stream: rates[stream])[:2]
    one, other = rng.choice(fitting) if fitting else (slowest[0], slowest[1])
    operator = Operator(name, (one, other), sql="SELECT 1", cost_ms=cost, selectivity=selectivity, window=window,
                        queue=QUEUE)  # fmt: skip
    return operator, selectivity * rates[one] * rates[other]
