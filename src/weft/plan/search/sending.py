"""What does a placement send, and how late are its queries? Each query by itself, over the arrays of a problem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.model import Constant, Deployment, dataflow
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.dataflow.shares import shares
from weft.plan.network.path_tables import Ints, ways
from weft.plan.search.brute_force import slowness
from weft.plan.search.problem import Problem, problem
from weft.spec import is_stateful


@dataclass(frozen=True, slots=True)
class Sending:
    """What streams carry over links: kbps by node, and how many links lie between two sites."""

    given: Problem
    kbps: tuple[float, ...]
    links: tuple[tuple[int, ...], ...]
    readers: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    fixed: tuple[int, ...]

    def whole(self, homes: Sequence[int]) -> float:
        """All that crosses links, one copy per destination."""
        home = [*homes, *self.fixed]
        return math.fsum(self._of(node, home) for node in range(len(home)))

    def around(self, ops: Iterable[int], home: Sequence[int]) -> float:
        """What operators and those that they read send: all that a move of these operators changes."""
        nodes = {node for op in ops for node in (op, *self.inputs[op])}
        return math.fsum(self._of(node, home) for node in sorted(nodes))

    def _of(self, node: int, home: Sequence[int]) -> float:
        start = home[node]
        ends = {home[reader] for reader in self.readers[node]}
        return self.kbps[node] * sum(self.links[start][end] for end in ends)


def sending(given: Problem) -> Sending:
    """What the streams of a problem carry; a source of no known rate is taken to give a record a second."""
    flat, n = given.flat, len(given.sites)
    kbps = flat.kbps
    if any(source.arrivals is None for source in given.deployment.sources):
        kbps = problem(_assumed(given.deployment), "latency").flat.kbps
    step_at, _ = ways(given.deployment).steps()
    links = np.diff(step_at).reshape(n, n)
    rows = range(len(flat.home))
    return Sending(
        given,
        tuple(kbps.tolist()),
        tuple(tuple(int(one) for one in row) for row in links),
        tuple(tuple(flat.out_to[flat.out_at[k] : flat.out_at[k + 1]].tolist()) for k in rows),
        tuple(tuple(flat.in_from[flat.in_at[k] : flat.in_at[k + 1]].tolist()) for k in rows),
        tuple(flat.home[len(given.operators) :].tolist()),
    )


def _assumed(deployment: Deployment) -> Deployment:
    sources = tuple(
        source if source.arrivals is not None else replace(source, arrivals=Constant(1.0))
        for source in deployment.sources
    )
    return replace(deployment, sources=sources)


class Latencies:
    """The mean latency over the results of each query, hops included.

    Other than in a search, what keeps state (a window, a join) has its result when the last of its inputs has come so
    far: the slowest way to it counts, not the mean over its inputs. A sum over streams could not say so.
    """

    def __init__(self, given: Problem) -> None:
        self.given = given
        deployment, rank = given.deployment, given.rank
        flow, rates, m = dataflow(deployment), ideal_rates(deployment), len(given.operators)
        number = {stream: at for at, stream in enumerate(given.operators)}

        def at(stream: str) -> int:
            return number[stream] if stream in number else m + rank[flow.sources[stream].site]

        self.queries: list[_Way] = []
        for query in deployment.queries:
            part, steps = shares(flow, query.name, rates), []
            for node in flow.behind(query.name):
                inputs = tuple(dict.fromkeys(node.inputs))
                weights = [part.streams[one, node.stream] for one in inputs]
                whole = sum(weights)
                even = [weight / whole if whole > 0 else 1.0 / len(inputs) for weight in weights]
                from_ = tuple((at(one), weight) for one, weight in zip(inputs, even, strict=True))
                steps.append((number[node.stream], from_, is_stateful(node.operator)))
            ends = [
                (at(outlet.stream), None if outlet.sink.site is None else m + rank[outlet.sink.site], share)
                for outlet, share in zip(flow.outlets_of(query.name), part.sinks, strict=True)
            ]
            self.queries.append(_Way(steps, ends))

    def __call__(self, homes: Ints) -> list[float]:
        """In ms, by query in the file's order."""
        flat = self.given.flat
        busy = np.bincount(homes, flat.asked_ms, minlength=len(flat.speed)) / (1000.0 * flat.speed)
        slow = np.array([slowness(float(one)) for one in busy]) / flat.speed
        visit = (flat.cost_ms * slow[homes]).tolist()
        home, delay_ms = [*homes.tolist(), *range(len(flat.speed))], self.delay_ms
        return [_mean_ms(way, home, visit, delay_ms) for way in self.queries]

    @cached_property
    def delay_ms(self) -> list[list[float]]:
        """Between sites."""
        found: list[list[float]] = self.given.flat.delay_ms.tolist()
        return found


class _Way(NamedTuple):
    """A query's operators, upstream first, with shares of inputs and whether they wait for all; and its sinks."""

    steps: list[tuple[int, tuple[tuple[int, float], ...], bool]]
    ends: list[tuple[int, int | None, float]]


def _mean_ms(way: _Way, home: list[int], visit: list[float], delay_ms: list[list[float]]) -> float:
    done: dict[int, tuple[float, float]] = {}
    for op, inputs, waits in way.steps:
        mean = slowest = 0.0
        for other, share in inputs:
            before = done.get(other, (0.0, 0.0))
            more = delay_ms[home[other]][home[op]]
            mean += share * (before[0] + more)
            slowest = max(slowest, before[1] + more)
        done[op] = ((slowest if waits else mean) + visit[op], slowest + visit[op])
    return sum(
        share * (done.get(start, (0.0, 0.0))[0] + (0.0 if end is None else delay_ms[home[start]][home[end]]))
        for start, end, share in way.ends
    )
