"""From the arrays of a finished run to its result."""

from __future__ import annotations

from typing import Any

from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.outcome.result import Move, Result, Series
from weft.bodies.twin.outcome.uptime import Outage, share_up
from weft.bodies.twin.plane import Plane
from weft.bodies.twin.records import names_of
from weft.model import Deployment, Placement, dataflow
from weft.plan.dataflow.adding_up import filtered_of
from weft.plan.dataflow.ordering import is_ordering
from weft.plan.judging.promises import judged, kept

NS_PER_S = 1_000_000_000


def gather(
    deployment: Deployment,
    placement: Placement,
    plane: Plane,
    warnings: list[str],
    moves: tuple[Move, ...] = (),
    story: tuple[str, ...] = (),
    outages: tuple[Outage, ...] = (),
) -> Result:
    """The result of a run up to where it came."""
    layout, measures = plane.layout, plane.measures
    end_ns = plane.now_ns
    plane.close()
    span_ns = max(1, end_ns - measures.since_ns)
    lost = plane.get(c.LOST, 0)
    if lost:
        warnings.append(f"{lost} records were lost: no way led to where they should go")
    born = {name: plane.get(k, c.BORN) - measures.born_before.get(name, 0) for name, k in layout.sources.items()}
    queries: dict[str, dict[str, Any]] = {}
    flow = dataflow(deployment)
    dropped_at = {".".join(name): n for name, n in plane.totals(c.DROPPED).items()}
    ordering = _ordering(deployment, plane)
    filtered_at = _filtered(deployment, plane)
    for number, query in enumerate(deployment.queries):
        latencies = measures.latencies[number]
        behind = [node.stream for node in flow.behind(query.name)]
        dropped = sum([dropped_at[stream] for stream in behind])
        records_in = sum(born[name] for name in flow.sources_of(query.name))
        quantile_ns = latencies.quantile(query.promise.quantile)
        quantile_ms = None if quantile_ns is None else quantile_ns / 1e6
        up = share_up(deployment, query, outages, measures.since_ns, end_ns)
        promise = judged(query.promise, quantile_ms, records_in, dropped, up)
        queries[query.name] = {
            "latency_ms": latencies.summary(),
            "records_in": records_in,
            "records_out": latencies.n,
            "dropped": dropped,
            "late": round(sum(ordering[stream]["late"] for stream in behind if stream in ordering)),
            "filtered": filtered_of(deployment, query, filtered_at),
            "promise": promise,
            "promise_kept": kept(promise),
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
                "utilisation": _link_busy_ns(plane, row, end_ns) / max(1, end_ns),
            }
            for (start, end), row in layout.links.items()
        ],
        site_rows=[
            {"site": name, **sites[name], "records_mean": plane.area(s) / span_ns} for name, s in layout.sites.items()
        ],
        series=Series(
            tuple(query.name for query in deployment.queries),
            tuple(layout.sites),
            measures.series_ns,
            measures.series_count,
            measures.series_sum,
            tuple(measures.busy),
        ),
        story=list(story),
        in_flight_max=plane.get(c.POOL_N_MAX, 0),
        placement=placement.as_json(),
        ordering=ordering,
    )


def _ordering(deployment: Deployment, plane: Plane) -> dict[str, dict[str, float]]:
    """What each ordering operator learned: its hold, mean wait and late records."""
    found = {}
    for query in deployment.queries:
        for operator in filter(is_ordering, query.operators):
            w = plane.get(plane.layout.operators[query.name, operator.name], c.WINDOW)
            records = plane.get(w, c.ORDER_SEEN)
            found[f"{query.name}.{operator.name}"] = {
                "records": records,
                "late": plane.get(w, c.ORDER_LATE),
                "hold_ms": round(plane.get(w, c.ORDER_HOLD) / 1e6, 6),
                "wait_ms": round(plane.get(w, c.ORDER_WAITED) / 1e6 / max(1, records), 6),
            }
    return found


def _filtered(deployment: Deployment, plane: Plane) -> dict[str, int | None]:
    """Records that each operator let go without a result, where one record gives one at most."""
    found: dict[str, int | None] = {}
    served, emitted = plane.counts(c.ENDED), plane.counts(c.NUMBER)
    for node in dataflow(deployment).nodes:
        name, orders = names_of(node.stream), is_ordering(node.operator)
        passes_some = orders or (node.operator.selectivity or 1.0) <= 1.0
        late = plane.get(plane.get(plane.layout.operators[name], c.WINDOW), c.ORDER_LATE) if orders else 0
        found[node.stream] = served[name] - emitted[name] - late if passes_some else None
    return found


def _link_busy_ns(plane: Plane, row: int, end_ns: int) -> int:
    """How long a link has been sending; what is promised to it beyond the end is still to be sent."""
    return plane.get(row, c.LINK_BUSY) - max(0, plane.get(row, c.FREE_AT) - max(end_ns, plane.get(row, c.CUT_UNTIL)))


def _operators(plane: Plane) -> list[dict[str, Any]]:
    names = {handle: name for name, handle in plane.layout.sites.items()}
    homes, instances = plane.counts(c.HOME), plane.counts(c.INSTANCES_N)
    served, emitted = plane.counts(c.ENDED), plane.counts(c.NUMBER)
    arrived, dropped, waiting = plane.totals(c.ARRIVED), plane.totals(c.DROPPED), plane.totals(c.WAITS)
    return [
        {
            "query": query,
            "operator": operator,
            "site": names[homes[query, operator]],
            "instances": max(1, instances[query, operator]),
            "arrived": arrived[query, operator],
            "served": served[query, operator],
            "dropped": dropped[query, operator],
            "emitted": emitted[query, operator],
            "waiting": waiting[query, operator],
        }
        for query, operator in plane.layout.operators
    ]
