"""May queries come to what runs? Only if every promise is kept, theirs and the others' (Synergy §2.3.4).

Each query is projected before and after. Refused is what would break a promise that is kept by now, or that of a query
that comes; a promise that is broken already is nobody's fault who comes. Where promises have levels, one that runs may
fall to a lower one, as long as that costs no more than what comes is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from weft.model import AddAt, Deployment, Placement, RemoveAt
from weft.model.wishes import AddQuery
from weft.plan.changing.next_plan import no_room
from weft.plan.dataflow.rates import Rates
from weft.plan.judging.batch_costs import BatchCosts
from weft.plan.judging.batch_projection import project_on_spark, why_ideal
from weft.plan.judging.bursts import project_bursts
from weft.plan.judging.projection import Projection, project


@dataclass(frozen=True, slots=True)
class Admission:
    """Every query before and after; what would break; and who takes which level, in words."""

    before: Mapping[str, Projection]
    after: Mapping[str, Projection]
    refused: tuple[str, ...]
    levels: tuple[str, ...] = ()


def projected(
    deployment: Deployment, placement: Placement, costs: BatchCosts | None, rates: Rates | None = None
) -> dict[str, Projection]:
    """What queries may expect: by micro-batches where costs are given, else by the ideal model."""
    if deployment.control.project is not None:
        return project_bursts(deployment, placement, costs, deployment.control.project)
    if costs is not None:
        return project_on_spark(deployment, placement, costs, rates)
    return project(deployment, placement, rates, admit_hop_ms=deployment.control.place.hop_ms or 0.0)


def why_ideal_now(deployment: Deployment) -> str | None:
    """Why the ideal model is asked of what runs at a moment, whatever its scenario has in store."""
    left = tuple(what for what in deployment.scenario if not isinstance(what, AddAt | RemoveAt))
    return why_ideal(replace(deployment, scenario=left))


def with_wish(deployment: Deployment, placement: Placement, wish: AddQuery) -> tuple[Deployment, Placement]:
    """What would run with the queries of a wish."""
    whole = replace(deployment, queries=(*deployment.queries, *wish.queries))
    for stream, site in wish.homes.items():
        placement = placement.put(stream, site, wish.reasons.get(stream, wish.reason))
    return whole, placement


def judge(deployment: Deployment, placement: Placement, wish: AddQuery, costs: BatchCosts | None) -> Admission:
    """What it would mean for all promises, and for the room at sites, if queries came to what runs so."""
    whole, after = with_wish(deployment, placement, wish)
    rooms = dict.fromkeys(wish.homes.values()) if wish.by != "file" else ()
    full = [why for to in rooms if (why := no_room(whole, placement, wish.homes, to)) is not None]
    found = admission(whole, projected(deployment, placement, costs), projected(whole, after, costs))
    return replace(found, refused=(*full, *found.refused))


def admission(deployment: Deployment, before: Mapping[str, Projection], after: Mapping[str, Projection]) -> Admission:
    """What becomes of promises, given every query's projection before, as far as it ran, and after."""
    refused = [
        f"{name}: {one.reason}"
        for name, one in after.items()
        if not one.admitted and (name not in before or before[name].admitted)
    ]
    levels = [
        f"{name} {one.reason}"
        for name, one in after.items()
        if one.level_ms is not None and _is_told(one, before.get(name))
    ]
    if not refused:
        fallen = {
            query.name: query.weight * (before[query.name].worth - after[query.name].worth)
            for query in deployment.queries
            if query.name in before and _fell(before[query.name], after[query.name])
        }
        won = sum(query.weight * after[query.name].worth for query in deployment.queries if query.name not in before)
        if sum(fallen.values()) > won:
            refused = [
                f"{name}: would fall from {before[name].level_ms:g} to {after[name].level_ms:g} ms, which costs "
                f"{lost:g}, and what comes is worth {won:g}"
                for name, lost in fallen.items()
            ]
    return Admission(before, after, tuple(refused), tuple(levels))


def _is_told(after: Projection, before: Projection | None) -> bool:
    """Whether a query takes a level that is to be told: a new one any, one that runs another than before."""
    return before is None or before.level_ms != after.level_ms


def _fell(before: Projection, after: Projection) -> bool:
    return before.admitted and after.admitted and after.worth < before.worth
