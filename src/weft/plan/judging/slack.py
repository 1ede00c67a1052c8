"""How much time is left before a promise breaks? Slack of each operator on every way to results (Synergy §3.3.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from weft.model import Deployment, dataflow
from weft.plan.network.paths import Paths


@dataclass(frozen=True, slots=True)
class SlowestWays:
    """What the slowest way through each operator of a query takes, and the slowest of all, in ms."""

    through_ms: Mapping[str, float]
    slowest_ms: float

    def slack_ms(self, promised_ms: float, more_ms: float = 0.0) -> dict[str, float]:
        """What is left on the slowest way through each operator, where `more_ms` are spent beside the modelled."""
        return {stream: promised_ms - took_ms - more_ms for stream, took_ms in self.through_ms.items()}


def ways(
    deployment: Deployment, query: str, homes: Mapping[str, str], visit_ms: Mapping[str, float], paths: Paths
) -> SlowestWays:
    """The ways to a query's results, given what every operator takes; streams between sites cost links and a hop."""
    flow, hop_ms = dataflow(deployment), deployment.control.place.hop_ms or 0.0

    def stream_ms(stream: str, end: str) -> float:
        start = flow.site_of(stream, homes)
        if start == end:
            return 0.0
        path = paths.between(start, end)
        return math.inf if path is None else path.delay_ms + hop_ms

    behind = flow.behind(query)
    to: dict[str, float] = dict.fromkeys(flow.sources, 0.0)
    for node in behind:
        home = homes[node.stream]
        to[node.stream] = visit_ms[node.stream] + max(to[name] + stream_ms(name, home) for name in node.inputs)
    rest: dict[str, float] = {}
    for outlet in flow.outlets_of(query):
        ends_ms = stream_ms(outlet.stream, outlet.site(flow, homes))
        rest[outlet.stream] = max(rest.get(outlet.stream, 0.0), ends_ms)
    for node in reversed(behind):
        if node.stream not in rest:
            rest[node.stream] = -math.inf  # leads nowhere, unless a reader does
        for reader in flow.readers(node.stream):
            if reader.stream in rest:
                further = stream_ms(node.stream, homes[reader.stream]) + visit_ms[reader.stream] + rest[reader.stream]
                rest[node.stream] = max(rest[node.stream], further)
    through = {node.stream: to[node.stream] + rest[node.stream] for node in behind if rest[node.stream] >= 0}
    straight = [rest[name] for name in flow.sources if name in rest]
    return SlowestWays(through, max([*through.values(), *straight], default=0.0))


def sites_of(deployment: Deployment, query: str, homes: Mapping[str, str]) -> tuple[str, ...]:
    """The sites of a query: its first operator's first, those of its results last; none where it does not run."""
    flow = dataflow(deployment)
    behind = flow.behind(query)
    if not behind or any(node.stream not in homes for node in behind):
        return ()
    outlets = (outlet.site(flow, homes) for outlet in flow.outlets_of(query))
    return tuple(dict.fromkeys([*(homes[node.stream] for node in behind), *outlets]))


def local_slack(
    deployment: Deployment, query: str, homes: Mapping[str, str], visit_ms: Mapping[str, float],
    measured_ms: float | None, paths: Paths,
) -> dict[str, float] | None:  # fmt: skip
    """The slack of each operator as a site reckons it from what was fed back; None where that is not all there is.

    `measured_ms` is what results took from end to end: what the sum of the way's parts leaves out of it, or has too
    much, counts on every way alike.
    """
    promised_ms = deployment.query(query).promise.latency_ms
    behind = dataflow(deployment).behind(query)
    if promised_ms is None or measured_ms is None or any(node.stream not in visit_ms for node in behind):
        return None
    found = ways(deployment, query, homes, visit_ms, paths)
    return found.slack_ms(promised_ms, measured_ms - found.slowest_ms)
