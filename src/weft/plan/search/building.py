"""How does a deployment become arrays? Nodes get numbers, streams rows, and each what it asks and carries."""

from __future__ import annotations

import numpy as np

from weft.model import Dataflow, Deployment, Query, dataflow
from weft.plan.dataflow.rates import Rates, cost_ms, ideal_rates
from weft.plan.dataflow.record_sizes import record_bytes
from weft.plan.dataflow.shares import Shares, shares
from weft.plan.judging.potential import STILL, Series, load_series
from weft.plan.judging.projection import HOP_KBPS
from weft.plan.judging.terms import pulls
from weft.plan.network.path_tables import Bools, Floats, Ints, ways
from weft.plan.search.arrays import BROKEN_MS, EXCESS_MS, NOTHING, Flat
from weft.plan.search.bounds import Bound, bounds


class ArrayBuilder:
    """Numbers operators and what stands still, and gathers what each of them carries and asks."""

    def __init__(
        self, deployment: Deployment, objective: str | None, rates: Rates | None, series: Series | None
    ) -> None:
        self.deployment = deployment
        self.flow = dataflow(deployment)
        self.objective = objective or deployment.control.place.objective
        self.rates = rates or ideal_rates(deployment)
        self.series = series or load_series(deployment)
        self.ways = ways(deployment)
        self.sites = tuple(site.name for site in deployment.sites)
        self.rank = {name: at for at, name in enumerate(self.sites)}
        self.operators = tuple(f"{query.name}.{op.name}" for query in deployment.queries for op in query.operators)
        self.number = {stream: at for at, stream in enumerate(self.operators)}
        self.bytes = record_bytes(deployment, self.rates)
        self.fixed: list[int] = []
        self.edges: list[tuple[int, int, float]] = []
        self.kbps: list[float] = [0.0] * len(self.operators)
        self.weight: list[float] = [0.0] * len(self.operators)
        self.stands: dict[tuple[str, str], int] = {}
        self.shares: dict[str, Shares] = {}
        self.ends: dict[str, list[int]] = {}
        self.delay_ms = self._delays()

    def build(self, price: float) -> Flat:
        """The arrays, with what a move costs; where operators run now is for who asks to fill in."""
        for query in self.deployment.queries:
            self._query(query)
        self._count_others()
        groups, group_of = self._bounds()
        bound = [one for group in groups for one in group]
        sites, place = self.deployment.sites, self.deployment.control.place
        m = len(self.operators)
        weights = max(1.0, sum(query.weight for query in self.deployment.queries))
        fixed = np.array(self.fixed, np.int64)
        wave, variance, still, load = self._waves()
        out_at, out_to, out_weight = _streams(m + len(fixed), self.edges)
        back = [(end, start, weight) for start, end, weight in self.edges]
        in_at, in_from, in_weight = _streams(m + len(fixed), back)
        carried = m if self.objective == "potential" else m + len(fixed)
        kbps = np.array(self.kbps, np.float64)
        copies = np.diff(out_at) * kbps
        # A copy goes to each reader at most; where all of them together fit every link, none can be full.
        limited = bool(len(self.ways.way_kbps)) and float(copies.sum()) > float(self.ways.way_kbps.min())
        step_at, step_way = self.ways.steps() if limited else (np.zeros(1, np.int64), np.zeros(0, np.int64))
        query_at, query_node = _rows([nodes for nodes, _, _ in bound])
        end_at, end_node = _rows([ends for _, ends, _ in bound])
        return Flat(
            potential=self.objective == "potential",
            latency=self.objective == "latency",
            room_ms=np.array([1000.0 * max(site.capacity, NOTHING) * site.quota for site in sites]),
            speed=np.array([max(site.capacity, NOTHING) for site in sites]),
            quota=np.array([site.quota for site in sites]),
            delay_ms=self.delay_ms,
            allowed=self.ways.allowed,
            free=bool(self.ways.allowed.all()),
            limited=limited,
            step_at=step_at,
            step_way=step_way,
            way_delay_ms=self.ways.way_delay_ms,
            way_kbps=self.ways.way_kbps,
            excess_ms=EXCESS_MS * weights,
            broken_ms=BROKEN_MS * weights,
            home=np.concatenate([np.full(m, -1, np.int64), fixed]),
            choices=self._choices(m, fixed, in_at, in_from, out_at, out_to),
            load_ms=load,
            wave=wave,
            variance=variance,
            still=still,
            varies=bool((variance > still).any()),
            asked_ms=np.array([self.rates.load_ms[stream] for stream in self.operators]),
            cost_ms=self._costs(),
            weight=np.array(self.weight),
            w_load=place.weights.load,
            w_correlation=place.weights.correlation,
            w_network=place.weights.network,
            penalty=place.overload_penalty,
            out_at=out_at,
            out_to=out_to,
            in_at=in_at,
            in_from=in_from,
            out_weight=out_weight,
            in_weight=in_weight,
            kbps=kbps,
            carried=carried,
            query_of=group_of,
            group_at=np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64),
            query_at=query_at,
            query_node=query_node,
            end_at=end_at,
            end_node=end_node,
            promise_ms=np.array([promise_ms for _, _, promise_ms in bound], np.float64),
            **self._sending(kbps),
            running=np.zeros(0, np.int64),
            price=price,
        )

    def _hop_ms(self) -> float:
        return (self.deployment.control.place.hop_ms or 0.0) if self.objective == "latency" else 0.0

    def _delays(self) -> Floats:
        """Delays between sites; what latency counts includes handing over."""
        delays = np.where(self.ways.allowed, self.ways.delay_ms, EXCESS_MS)
        return delays + self._hop_ms() * ~np.eye(len(self.sites), dtype=bool)

    def _sending(self, kbps: Floats) -> dict[str, Floats]:
        """What streams between sites cost for what they carry where handing over costs anything, and further terms."""
        hop_ms, n = self._hop_ms(), len(self.sites)
        more = pulls(self.deployment, self.deployment.control.place.terms)
        none = np.zeros((0, 0))
        if hop_ms == 0.0 and more is None:
            return {"pair_t": np.zeros(0), "pair_a": none, "pair_b": none, "own": none}
        apart = hop_ms / HOP_KBPS * ~np.eye(n, dtype=bool)
        if more is None:
            return {"pair_t": kbps, "pair_a": apart, "pair_b": np.zeros((n, n)), "own": none}
        return {"pair_t": kbps, "pair_a": apart + more.per_kbps, "pair_b": more.per_stream, "own": more.own}

    def _query(self, query: Query) -> None:
        """The nodes and streams of one query, each with the share of its results that it has to do with."""
        part = self.shares[query.name] = shares(self.flow, query.name, self.rates)
        for stream in entering(self.flow, query):
            self.stands[query.name, stream] = self._stand(self.flow.sources[stream].site, self._kbps(stream))
        for node in self.flow.owned(query.name):
            self.kbps[self.number[node.stream]] = self._kbps(node.stream)
            self.weight[self.number[node.stream]] += query.weight * part.operators[node.stream]
            for other in dict.fromkeys(node.inputs):
                share = query.weight * part.streams[other, node.stream]
                self.edges.append((self._at(query.name, other), self.number[node.stream], share))
        ends = self.ends[query.name] = []
        for outlet, share in zip(self.flow.outlets_of(query.name), part.sinks, strict=True):
            if not self.flow.makes(outlet.stream) and (query.name, outlet.stream) not in self.stands:
                site = self.flow.sources[outlet.stream].site
                self.stands[query.name, outlet.stream] = self._stand(site, self._kbps(outlet.stream))
            start = self._at(query.name, outlet.stream)
            if outlet.sink.site is not None:
                ends.append(self._stand(outlet.sink.site, 0.0))
                self.edges.append((start, ends[-1], query.weight * share))
            else:
                ends.append(start)

    def _at(self, query: str, stream: str) -> int:
        """The node of a stream that a query reads: the operator that makes it, or the query's own of a source."""
        return self.number[stream] if stream in self.number else self.stands[query, stream]

    def _count_others(self) -> None:
        """What other queries make for one that reads them counts for it, too."""
        edge = {(start, end): at for at, (start, end, _) in enumerate(self.edges)}
        for query in filter(lambda one: self.flow.reads_others(one.name), self.deployment.queries):
            part = self.shares[query.name]
            for node in self.flow.behind(query.name):
                if query.name in node.queries:
                    continue
                end = self.number[node.stream]
                self.weight[end] += query.weight * part.operators[node.stream]
                for other in dict.fromkeys(node.inputs):
                    at = edge[self._at(node.queries[0], other), end]
                    share = query.weight * part.streams[other, node.stream]
                    self.edges[at] = (*self.edges[at][:2], self.edges[at][2] + share)

    def _bounds(self) -> tuple[list[list[Bound]], Ints]:
        """Promises of latency that the search must mind."""
        if self.objective != "latency":
            return [], np.full(len(self.operators), -1, np.int64)
        far_ms = float(self.delay_ms[self.ways.allowed].max(initial=0.0))
        return bounds(self.deployment, self.flow, self.number, self._sources_of, self.ends, far_ms)

    def _sources_of(self, query: Query) -> list[int]:
        """The nodes of the sources that a query's results rest on, in the order in which they are read."""
        read = [(node.queries[0], stream) for node in self.flow.behind(query.name) for stream in node.inputs]
        read += [(query.name, outlet.stream) for outlet in self.flow.outlets_of(query.name)]
        return [self.stands[one] for one in read if one in self.stands]

    def _stand(self, site: str, kbps: float) -> int:
        self.fixed.append(self.rank[site])
        self.kbps.append(kbps)
        return len(self.operators) + len(self.fixed) - 1

    def _kbps(self, stream: str) -> float:
        return self.rates.per_s[stream] * self.bytes[stream] * 8 / 1000

    def _costs(self) -> Floats:
        return np.array([cost_ms(op) for query in self.deployment.queries for op in query.operators], np.float64)

    def _waves(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Series around their means, scaled so that a product of two sums up to their covariance."""
        spans = np.array(self.series.spans_s)
        shares = spans / spans.sum()
        values = np.array([self.series.load_ms[stream] for stream in self.operators]).reshape(len(self.operators), -1)
        mean = values @ shares if len(values) else np.zeros(0)
        wave = (values - mean[:, None]) * np.sqrt(shares)[None, :] if len(values) else np.zeros((0, len(spans)))
        return wave, (wave**2).sum(axis=1), STILL * mean**2, mean

    def _choices(self, m: int, fixed: Ints, in_at: Ints, in_from: Ints, out_at: Ints, out_to: Ints) -> Bools:
        """Sites that pins and what stands still leave to each operator; pairs of operators are looked at later."""
        choices = np.tile(np.array([site.capacity > 0 for site in self.deployment.sites], np.bool_), (m, 1))
        flat = [op.site for query in self.deployment.queries for op in query.operators]
        for at, pin in enumerate(flat):
            if pin is not None:
                choices[at] = False
                choices[at, self.rank[pin]] = True
        allowed = self.ways.allowed
        if allowed.all():
            return choices
        for at in range(m):
            for other in in_from[in_at[at] : in_at[at + 1]]:
                if other >= m:
                    choices[at] &= allowed[fixed[other - m]]
            for other in out_to[out_at[at] : out_at[at + 1]]:
                if other >= m:
                    choices[at] &= allowed[:, fixed[other - m]]
        return choices


def entering(flow: Dataflow, query: Query) -> tuple[str, ...]:
    """The sources that a query's own operators read, in the order written."""
    nodes = (flow.node(f"{query.name}.{operator.name}") for operator in query.operators)
    return tuple(dict.fromkeys(stream for node in nodes for stream in node.inputs if not flow.makes(stream)))


def _streams(count: int, edges: list[tuple[int, int, float]]) -> tuple[Ints, Ints, Floats]:
    """Streams by their first node: where each row of them begins, the other nodes, the weights."""
    rows: list[list[int]] = [[] for _ in range(count)]
    weights: list[list[float]] = [[] for _ in range(count)]
    for start, end, weight in edges:
        rows[start].append(end)
        weights[start].append(weight)
    return (*_rows(rows), np.array([one for row in weights for one in row], np.float64))


def _rows(rows: list[list[int]]) -> tuple[Ints, Ints]:
    """Rows of different lengths one after another, and where each begins."""
    starts = np.zeros(len(rows) + 1, np.int64)
    starts[1:] = np.cumsum([len(row) for row in rows]) if rows else 0
    return starts, np.array([one for row in rows for one in row], np.int64)
