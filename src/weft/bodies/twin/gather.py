"""From the arrays of a finished run to its result."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.bodies.twin import columns as c
from weft.bodies.twin.plane import Plane
from weft.bodies.twin.result import Move, Result, promise_kept
from weft.model import Deployment, Placement
from weft.plan.graph import source_names

NS_PER_S = 1_000_000_000


def gather(
    deployment: Deployment,
    placement: Placement,
    plane: Plane,
    warnings: list[str],
    moves: tuple[Move, ...] = (),
    story: tuple[str, ...] = (),
) -> Result:
    """The result of a run up to where it came."""
    layout, measures = plane.layout, plane.measures
    end_ns = plane.now_ns
    plane.note_busy(end_ns)
    span_ns = max(1, end_ns - measures.since_ns)
    lost = plane.get(c.LOST, 0)
    if lost:
        warnings.append(f"{lost} records were lost: no way led to where they should go")
    born = {name: plane.get(k, c.BORN) - measures.born_before.get(name, 0) for name, k in layout.sources.items()}
    queries: dict[str, dict[str, Any]] = {}
    for number, query in enumerate(deployment.queries):
        latencies = measures.latencies[number]
        dropped = sum(plane.get(o, c.DROPPED) for (owner, _), o in layout.operators.items() if owner == query.name)
        records_in = sum(born[name] for name in source_names(deployment, query))
        quantile_ns = latencies.quantile(query.promise.quantile)
        quantile_ms = None if quantile_ns is None else quantile_ns / 1e6
        queries[query.name] = {
            "latency_ms": latencies.summary(),
            "records_in": records_in,
            "records_out": latencies.n,
            "dropped": dropped,
            "promise_kept": promise_kept(query, quantile_ms, records_in, dropped),
        }
    sites = {
        name: {
            "utilisation": round(plane.get(s, c.BUSY) / span_ns, 9),
            "queue_max": plane.get(s, c.WAITING_MAX),
        }
        for name, s in layout.sites.items()
    }
    return Result(
        queries=queries,
        sites=sites,
        moves=list(moves),
        events=plane.get(c.EVENTS, 0),
        wall_s=0.0,
        warnings=warnings,
        seconds=end_ns / NS_PER_S,
        operator_rows=_operators(plane),
        link_rows=[
            {
                "from": start,
                "to": end,
                "sent": plane.get(row, c.SENT),
                "utilisation": plane.get(row, c.LINK_BUSY) / max(1, end_ns),
            }
            for (start, end), row in layout.links.items()
        ],
        site_rows=[
            {"site": name, **sites[name], "records_mean": plane.get(s, c.AREA) / span_ns}
            for name, s in layout.sites.items()
        ],
        latency_rows=_latencies(deployment, plane),
        utilisation_rows=_utilisations(plane),
        story=list(story),
        in_flight_max=plane.get(c.POOL_N_MAX, 0),
        placement=placement.as_json(),
    )


def _operators(plane: Plane) -> list[dict[str, Any]]:
    names = {handle: name for name, handle in plane.layout.sites.items()}
    return [
        {
            "query": query,
            "operator": operator,
            "site": names[plane.get(o, c.HOME)],
            "arrived": plane.get(o, c.ARRIVED),
            "served": plane.get(o, c.ENDED),
            "dropped": plane.get(o, c.DROPPED),
            "emitted": plane.get(o, c.NUMBER),
            "waiting": plane.get(o, c.WAITS),
        }
        for (query, operator), o in plane.layout.operators.items()
    ]


def _latencies(deployment: Deployment, plane: Plane) -> list[dict[str, Any]]:
    measures = plane.measures
    rows = []
    for number, query in enumerate(deployment.queries):
        for bucket in np.flatnonzero(measures.series_count[number]):
            count = int(measures.series_count[number, bucket])
            mean_ms = float(measures.series_sum[number, bucket]) / count / 1e6
            at_s = int(bucket) * measures.series_ns / NS_PER_S
            rows.append({"query": query.name, "at_s": at_s, "latency_ms": mean_ms, "records": count})
    return rows


def _utilisations(plane: Plane) -> list[dict[str, Any]]:
    rows = []
    before_ns, before = 0, np.zeros(len(plane.layout.sites), np.int64)
    for at_ns, busy in plane.measures.busy:
        if at_ns > before_ns:
            shares = (busy - before) / (at_ns - before_ns)
            at_s = before_ns / NS_PER_S
            rows += [
                {"site": name, "at_s": at_s, "utilisation": float(share)}
                for name, share in zip(plane.layout.sites, shares, strict=True)
            ]
        before_ns, before = at_ns, busy
    return rows
