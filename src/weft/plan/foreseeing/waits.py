"""How long do records wait at sites? At a steady rate, and for the work that has piled up.

The time that records spend at a site at a steady rate is a line through what was measured, where that tells, else that
of an M/M/1 queue. The work that waits grows as long as more is asked than the site does and shrinks when less is. A
record waits for the greater of both; for what has piled up only once, where it comes to the site, since what it will
ask for at its next operators there is part of that work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from weft.model import Deployment, Placement, dataflow
from weft.plan.dataflow.rates import Rates, cost_ms
from weft.plan.judging.slack import SlowestWays, ways
from weft.plan.network.paths import Paths
from weft.plan.observing.execution import Line

BUSY_MAX = 0.98  # beyond it a queue's mean is of a time longer than any look ahead


class Wait(NamedTuple):
    """How long records wait at a site: for each operator where it keeps up, and for the work that has piled up."""

    steady_ms: float = 0.0
    piled_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        """How long a record waits at its first operator there."""
        return max(self.steady_ms, self.piled_ms)


def into(deployment: Deployment, rates: Rates) -> dict[str, float]:
    """Records into every operator a second."""
    return {node.stream: sum(rates.per_s[name] for name in node.inputs) for node in dataflow(deployment).nodes}


def works(deployment: Deployment, placement: Placement, waiting: Mapping[str, int], rates: Rates) -> dict[str, float]:
    """The work that waits at every site, in ms at capacity 1: what records will ask for until they leave it."""
    work, flow, homes = {site.name: 0.0 for site in deployment.sites}, dataflow(deployment), placement.homes
    each: dict[str, float] = {}
    for node in reversed(flow.nodes):
        came = sum(rates.per_s[name] for name in node.inputs)
        gives = rates.per_s[node.stream] / came if came > 0 else 0.0
        beside = (one.stream for one in flow.readers(node.stream) if homes[one.stream] == homes[node.stream])
        each[node.stream] = cost_ms(node.operator) + gives * sum(each[stream] for stream in beside)
        work[homes[node.stream]] += waiting.get(node.stream, 0) * each[node.stream]
    return work


def after_step(
    deployment: Deployment, placement: Placement, rates: Rates, into: Mapping[str, float], work_ms: dict[str, float],
    lines: Mapping[str, Line], step_s: float,
) -> tuple[dict[str, float], dict[str, Wait]]:  # fmt: skip
    """How busy sites are and how long records wait there after a step; `work_ms` that waits is brought up to then."""
    load_ms, per_s = ({site.name: 0.0 for site in deployment.sites} for _ in range(2))
    for stream, home in placement.homes.items():
        load_ms[home] += rates.load_ms.get(stream, 0.0)
        per_s[home] += into.get(stream, 0.0)
    busy, waits = {}, {}
    for site in deployment.sites:
        name, room_ms = site.name, 1000.0 * site.capacity
        if room_ms <= 0:
            busy[name] = math.inf if load_ms[name] > 0 else 0.0
            waits[name] = Wait(busy[name])
            continue
        busy[name] = load_ms[name] / room_ms
        work_ms[name] = max(0.0, work_ms[name] + (load_ms[name] - room_ms) * step_s)
        steady_ms = _steady(name, busy[name], load_ms, per_s, site.capacity, lines)
        waits[name] = Wait(steady_ms, work_ms[name] / site.capacity)
    return busy, waits


def _steady(
    site: str, busy: float, load_ms: Mapping[str, float], per_s: Mapping[str, float], capacity: float,
    lines: Mapping[str, Line],
) -> float:  # fmt: skip
    """How long a record waits at a site that keeps up with what comes."""
    if per_s[site] <= 0:
        return 0.0
    service_ms = load_ms[site] / per_s[site] / capacity
    line = lines.get(site)
    stays_ms = None if line is None or busy >= BUSY_MAX else line.at(per_s[site])
    if stays_ms is not None:
        return max(0.0, stays_ms - service_ms)
    used = min(busy, BUSY_MAX)
    return service_ms * used / (1.0 - used)


def ways_of(
    deployment: Deployment, query: str, placement: Placement, waits: Mapping[str, Wait], paths: Paths
) -> SlowestWays:
    """The ways to a query's results, where records wait so at sites."""
    visits = {}
    for node in dataflow(deployment).behind(query):
        home = placement.homes[node.stream]
        capacity = deployment.site(home).capacity
        stays = any(placement.homes.get(name) == home for name in node.inputs)
        waits_ms = waits[home].steady_ms if stays else waits[home].total_ms
        visits[node.stream] = waits_ms + cost_ms(node.operator) / capacity if capacity > 0 else math.inf
    return ways(deployment, query, placement.homes, visits, paths)
