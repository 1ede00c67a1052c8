"""What would a placement do to its queries? Projected latency and availability against what was promised.

Synergy §2.3.4: a record's time on a site is that of an M/M/1 queue, service / (1 - utilisation), with the load of
every operator there; a query is as slow as its slowest way from a source to a sink. The projection is a mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from weft.model import Deployment, Placement, Query
from weft.plan.graph import sink_site, source_names, topological
from weft.plan.paths import Paths
from weft.plan.potential import crossings
from weft.plan.rates import Rates, cost_ms, ideal_rates

# A stream of so many kbps weighs as much as one hop more, so that of placements nearly as good the one that sends less
# is taken.
HOP_KBPS = 25_000.0


@dataclass(frozen=True, slots=True)
class Projection:
    """What a query may expect; a latency of None is without bound."""

    latency_ms: float | None
    availability: float
    admitted: bool
    reason: str


def project(
    deployment: Deployment, placement: Placement, rates: Rates | None = None, *, hop_ms: float = 0.0
) -> dict[str, Projection]:
    """The projection of every query of a whole placement; each stream between sites takes `hop_ms` more."""
    busy = utilisation(deployment, placement, rates or ideal_rates(deployment))
    paths = Paths(deployment)
    return {query.name: _of_query(deployment, query, placement, busy, paths, hop_ms) for query in deployment.queries}


def utilisation(deployment: Deployment, placement: Placement, rates: Rates) -> dict[str, float]:
    """Load over capacity of every site, from all operators placed on it."""
    load_ms = {site.name: 0.0 for site in deployment.sites}
    for (query, operator), load in rates.load_ms.items():
        load_ms[placement.home(query, operator)] += load
    return {site.name: load_ms[site.name] / (1000.0 * site.capacity) for site in deployment.sites}


def latency_total_ms(deployment: Deployment, projected: Mapping[str, Projection]) -> float | None:
    """Projected latencies by the weights of their queries; None where one has no bound."""
    total = 0.0
    for query in deployment.queries:
        latency_ms = projected[query.name].latency_ms
        if latency_ms is None:
            return None
        total += query.weight * latency_ms
    return total


def latency_objective(deployment: Deployment, placement: Placement, rates: Rates | None = None) -> float | None:
    """What planners with the latency objective minimise: projected latencies, hops, a little for what those carry."""
    hop_ms, used = deployment.control.place.hop_ms or 0.0, rates or ideal_rates(deployment)
    total = latency_total_ms(deployment, project(deployment, placement, used, hop_ms=hop_ms))
    if total is None or hop_ms == 0.0:
        return total
    sent = sum(kbps for start, end, kbps in crossings(deployment, placement, used) if start != end)
    return total + hop_ms / HOP_KBPS * sent


def _of_query(
    deployment: Deployment, query: Query, placement: Placement, busy: Mapping[str, float], paths: Paths, hop_ms: float
) -> Projection:
    homes = {operator.name: placement.home(query.name, operator.name) for operator in query.operators}
    slowest, way = _slowest(deployment, query, homes, busy, paths, hop_ms)
    latency_ms = slowest if math.isfinite(slowest) else None
    sites = _sites(deployment, query, homes)
    availability = math.prod(1.0 - deployment.site(name).failure_probability for name in sites)
    overloaded = [name for name in way if busy[name] >= 1]
    broken = _broken(query, latency_ms, availability, overloaded, _lost(query, homes, busy))
    if broken:
        return Projection(latency_ms, availability, False, "; ".join(broken))
    if latency_ms is None:
        return Projection(None, availability, True, f"{_overloaded(overloaded)}, but no latency was promised")
    return Projection(latency_ms, availability, True, _kept(query))


def _slowest(
    deployment: Deployment, query: Query, homes: dict[str, str], busy: Mapping[str, float], paths: Paths, hop_ms: float
) -> tuple[float, tuple[str, ...]]:
    """The latency of the slowest way to a sink, infinite over a full site, and the sites where its operators run."""
    done: dict[str, tuple[float, tuple[str, ...]]] = {source.name: (0.0, ()) for source in deployment.sources}

    def arrival(name: str, site: str) -> tuple[float, tuple[str, ...]]:
        start = homes.get(name) or deployment.source(name).site
        path = paths.between(start, site)
        assert path is not None, f"a placement without a way from {start} to {site}"
        return done[name][0] + path.delay_ms + hop_ms * (start != site), done[name][1]

    for name in topological(query):
        operator, home = query.operator(name), homes[name]
        latency_ms, way = max(arrival(other, home) for other in operator.from_)
        service_ms = cost_ms(operator) / deployment.site(home).capacity
        visit_ms = service_ms / (1.0 - busy[home]) if busy[home] < 1 else math.inf
        done[name] = (latency_ms + visit_ms, (*way, home))
    return max(arrival(sink.from_, sink_site(deployment, query, sink, homes)) for sink in query.sinks)


def _sites(deployment: Deployment, query: Query, homes: dict[str, str]) -> list[str]:
    """The sites without which a query does not run: those of its sources, operators and sinks."""
    used = {deployment.source(name).site for name in source_names(deployment, query)} | set(homes.values())
    used |= {sink_site(deployment, query, sink, homes) for sink in query.sinks}
    return sorted(used)


def _lost(query: Query, homes: dict[str, str], busy: Mapping[str, float]) -> float:
    """The share of records that queues which may drop lose on full sites."""
    dropping = [op for op in query.operators if op.queue is not None and op.queue.when_full == "drop"]
    return max((1.0 - 1.0 / busy[homes[op.name]] for op in dropping if busy[homes[op.name]] > 1), default=0.0)


def _broken(
    query: Query, latency_ms: float | None, availability: float, overloaded: list[str], lost: float
) -> list[str]:
    promise, reasons = query.promise, []
    if promise.latency_ms is not None and latency_ms is None:
        reasons.append(_overloaded(overloaded))
    elif promise.latency_ms is not None and latency_ms is not None and latency_ms > promise.latency_ms:
        reasons.append(f"latency {latency_ms:.1f} ms is above the promised {promise.latency_ms:g} ms")
    if promise.availability is not None and availability < promise.availability:
        reasons.append(f"availability {availability:.4g} is below the promised {promise.availability:g}")
    if promise.loss is not None and lost > promise.loss:
        reasons.append(f"full queues lose {lost:.1%} of records, promised were at most {promise.loss:.1%}")
    return reasons


def _overloaded(sites: list[str]) -> str:
    names = list(dict.fromkeys(sites))
    return f"site {names[0]} is overloaded" if len(names) == 1 else f"sites {', '.join(names)} are overloaded"


def _kept(query: Query) -> str:
    promise = query.promise
    given = {"latency": promise.latency_ms, "availability": promise.availability, "loss": promise.loss}
    promised = [name for name, value in given.items() if value is not None]
    return f"keeps its promised {' and '.join(promised)}" if promised else "nothing was promised"
