"""What was measured in one period? Rates, costs, backlogs, utilisation, latencies: one value, the same from every body.

What was not measured is None, and named in `missing`; a value with nothing missing is complete. Operators bear the
names of their streams (`query.operator`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from weft.model.deployment import Deployment


@dataclass(frozen=True, slots=True)
class ObservedSource:
    """How many records a source offered a second."""

    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class ObservedOperator:
    """Records into and out of an operator a second in the period; selectivity and cost over all that is known of it.

    `backlog` counts the records that wait for it.
    """

    in_per_s: float | None = None
    out_per_s: float | None = None
    cost_ms: float | None = None
    selectivity: float | None = None
    backlog: int | None = None
    state_kb: float | None = None


@dataclass(frozen=True, slots=True)
class MachineState:
    """What a site knows of the machine that it stands on, and of the way to each neighbour.

    `cpu_idle` is a share of all its cores; `load` is over 1, 5 and 15 minutes. What it cannot tell is None.
    Of neighbours: how long a word and its answer take, what the site sends there, and what more it could, if known.
    """

    cpu_idle: float | None = None
    load: tuple[float, ...] | None = None
    memory_mb: int | None = None
    memory_free_mb: int | None = None
    disk_free_mb: int | None = None
    round_trip_ms: Mapping[str, float] = field(default_factory=dict)
    sent_kbps: Mapping[str, float] = field(default_factory=dict)
    free_kbps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedSite:
    """The share of its capacity that a site used in the period, whether it was up at its end, and its machine then.

    `time_ms` is how long records were there on the mean, from coming to an operator to being through with it. Live,
    `machine` is what the site itself tells of the machine that it stands on, which may be that of other sites.
    """

    utilisation: float | None = None
    up: bool = True
    time_ms: float | None = None
    machine: MachineState | None = None


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Latencies of a period's results, in ms."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class ObservedQuery:
    """Records into and out of a query in the period, latencies where results came; whether latency and loss held."""

    records_in: int | None = None
    records_out: int | None = None
    latency_ms: Quantiles | None = None
    promise_kept: bool | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """All that was measured in the `period_s` seconds before `at_s`, counted from when sources began to flow.

    `homes` is where operators ran at the end of it, where somebody has put that down.
    """

    at_s: float
    period_s: float
    complete: bool
    missing: tuple[str, ...] = ()
    sources: Mapping[str, ObservedSource] = field(default_factory=dict)
    operators: Mapping[str, ObservedOperator] = field(default_factory=dict)
    sites: Mapping[str, ObservedSite] = field(default_factory=dict)
    queries: Mapping[str, ObservedQuery] = field(default_factory=dict)
    homes: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """As one line of JSON."""
        return msgspec.json.encode(self)


def observed_of(
    deployment: Deployment,
    at_s: float,
    period_s: float,
    sources: Mapping[str, ObservedSource],
    operators: Mapping[str, ObservedOperator],
    sites: Mapping[str, ObservedSite],
    queries: Mapping[str, ObservedQuery],
) -> Observed:
    """What was measured of a deployment, complete or with a list of what is missing."""
    missing = tuple(_missing(deployment, sources, operators, sites, queries))
    return Observed(at_s, period_s, not missing, missing, sources, operators, sites, queries)


def observed_from_json(data: bytes | str) -> Observed:
    """The value in a line of JSON, whatever else stands there; ValueError where there is none."""
    return msgspec.json.decode(data, type=Observed)


def _missing(
    deployment: Deployment,
    sources: Mapping[str, ObservedSource],
    operators: Mapping[str, ObservedOperator],
    sites: Mapping[str, ObservedSite],
    queries: Mapping[str, ObservedQuery],
) -> Iterator[str]:
    for source in deployment.sources:
        if sources.get(source.name, ObservedSource()).rate_per_s is None:
            yield f"rate of source {source.name}"
    for query in deployment.queries:
        for operator in query.operators:
            name = f"{query.name}.{operator.name}"
            found = operators.get(name, ObservedOperator())
            if found.in_per_s is None or found.out_per_s is None:
                yield f"records of operator {name}"
            elif found.in_per_s > 0 and found.cost_ms is None and operator.cost_ms is None:
                yield f"cost of operator {name}"
        if queries.get(query.name, ObservedQuery()).records_out is None:
            yield f"records of query {query.name}"
    for site in deployment.sites:
        here = sites.get(site.name, ObservedSite())
        if here.up and here.utilisation is None:
            yield f"utilisation of site {site.name}"
