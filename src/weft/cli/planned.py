"""What is known of a placement before it runs? The plain form that `weft plan` prints, for one policy or for all."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from weft.cli.output import WRONG_INPUT, fail

if TYPE_CHECKING:
    from weft.model import Deployment, Placement
    from weft.plan.judging.batch_costs import BatchCosts
    from weft.plan.judging.projection import Projection

LEVEL_KEYS = ("level_ms", "worth")


def with_policy(deployment: Deployment, policy: str) -> Deployment:
    """The same deployment placed by another planner; exit 2 where there is none of that name."""
    from weft.plan import PLANNERS

    if policy not in PLANNERS:
        fail(f"--policy: there is no `{policy}`; there are: {', '.join(PLANNERS)}", WRONG_INPUT)
    place = dataclasses.replace(deployment.control.place, policy=policy)
    return dataclasses.replace(deployment, control=dataclasses.replace(deployment.control, place=place))


def planned_json(deployment: Deployment, placement: Placement, costs: BatchCosts | None = None) -> dict[str, Any]:
    """All that is known of a placement before it runs: by micro-batches where costs are given, else ideal."""
    from weft.plan.dataflow.rates import ideal_rates
    from weft.plan.dataflow.shared_streams import reasons_of_written, shared_streams, sites_of_written
    from weft.plan.judging.admission import projected as project
    from weft.plan.judging.potential import potential
    from weft.plan.judging.projection import IDEAL, MICRO_BATCH, latency_objective, latency_total_ms
    from weft.plan.judging.terms import values

    rates = ideal_rates(deployment)
    projected = project(deployment, placement, costs, rates)
    parts = potential(deployment, placement)
    name = deployment.control.place.objective
    value = parts.total if name == "potential" else latency_total_ms(deployment, projected)
    with_hops = latency_objective(deployment, placement, rates)
    return {
        "model": IDEAL if costs is None else MICRO_BATCH,
        "placement": sites_of_written(deployment, placement),
        "shared": shared_streams(deployment),
        "projected": {query: plain_projection(one) for query, one in projected.items()},
        "potential": dataclasses.asdict(parts),
        "objective": {"name": name, "value": value},
        "terms": values(deployment, placement),
        "hops": {"hop_ms": deployment.control.place.hop_ms or 0.0, "latency_ms": with_hops},
        "reasons": reasons_of_written(deployment, placement),
        "fragments": fragments(deployment, placement),
        "warnings": list(rates.warnings),
    }


def plain_projection(found: Projection) -> dict[str, Any]:
    """A projection in plain values; of levels only where a promise has them."""
    plain = dataclasses.asdict(found)
    return plain if found.level_ms is not None else {key: plain[key] for key in plain if key not in LEVEL_KEYS}


def reasons(placement: Placement) -> dict[str, dict[str, str]]:
    """Why each operator is where it is."""
    out: dict[str, dict[str, str]] = {}
    for stream, reason in placement.reasons.items():
        query, _, operator = stream.partition(".")
        out.setdefault(query, {})[operator] = reason
    return out


def fragments(deployment: Deployment, placement: Placement) -> list[dict[str, Any]]:
    """What would run as one Spark query each."""
    from weft.plan.changing.fragments import cut
    from weft.plan.dataflow.event_times import passes_by_sql
    from weft.spec import is_stateful

    pieces = cut(deployment, placement, lambda query, operator: is_stateful(operator), passes_by_sql)
    return [
        {
            "id": piece.id,
            "site": piece.site,
            "operators": list(piece.operators),
            "stateful": piece.stateful,
            "reads": list(piece.inputs),
            "writes": [*piece.outputs, *(f"sink {name}" for name in piece.sinks)],
        }
        for piece in pieces
    ]
