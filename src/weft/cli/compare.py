"""`weft plan --compare`: what would each planner do, what would that mean, and what does the twin say?

Every row is judged as `weft plan --policy P` judges that placement: hops, measured costs and series, corrected batches.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from weft.cli.output import FIRST_TIME, Rows, note, number, patience, print_json, print_table, say
from weft.cli.planned import planned_json, with_policy

if TYPE_CHECKING:
    from weft.cli.placing import Ground
    from weft.model import Deployment, Placement
    from weft.plan.judging.batch_costs import BatchCosts

IN_FORCE = "(in force)"
"""In place of a policy: the plan that a run of this state would go on with."""


def compare(ground: Ground, seed: int, seconds: float, warnings: list[str], json: bool, ideal: bool = False) -> None:
    """Prints one row per planner, those that keep all promises first, best objective first; marks the file's own."""
    from weft.plan import PLANNERS, NoPlacement

    deployment = ground.deployment
    named = deployment.control.place
    costs = None
    rows, own = [], None
    for policy in PLANNERS:
        seen = with_policy(ground.seen, policy)
        began = time.perf_counter()
        try:
            placement = _placed(seen, policy, seed)
        except NoPlacement as error:
            rows.append({**_empty(policy), "error": str(error), "wall_s": round(time.perf_counter() - began, 3)})
            continue
        took_s = round(time.perf_counter() - began, 3)
        found = ground.started_over(placement)
        costs = found.model_costs(ideal) if not rows else costs
        own = placement if policy == named.policy else own
        rows.append(
            {**_row(with_policy(deployment, policy), policy, placement, seed, seconds, costs), "wall_s": took_s}
        )
    if ground.held is not None and own is not None:
        kept = ground.going_on(own).placement
        rows.append({**_row(deployment, IN_FORCE, kept, seed, seconds, costs), "wall_s": None})
    rows.sort(key=lambda row: (bool(row["broken"]), math.inf if row["objective"] is None else row["objective"]))
    warnings = [*warnings, *ground.taken]
    if json:
        objective = {"name": named.objective, "policy": named.policy}
        told = {"batch_costs": {**ground.costs.as_json(), "from": ground.costs_from}} if costs is not None else {}
        print_json({"objective": objective, "policies": rows, "warnings": warnings, **told})
        return
    for warning in warnings:
        note(f"warning: {warning}")
    _print(ground, rows, seconds, costs)


def _placed(seen: Deployment, policy: str, seed: int) -> Placement:
    from weft.plan import place

    with patience(f"{policy} is still looking; {FIRST_TIME}"):
        return place(seen, seed=seed)


def _print(ground: Ground, rows: list[dict[str, Any]], seconds: float, costs: BatchCosts | None) -> None:
    deployment = ground.deployment
    named = deployment.control.place
    shown = "mean" if costs is None else "p50"
    hops = named.objective == "latency" and named.hop_ms
    lines: Rows = [
        (
            row["policy"] + (" *" if row["policy"] == named.policy else ""),
            number(row["objective"], 2) if "error" not in row else row["error"],
            *((number(row["hops"].get("latency_ms"), 2),) if hops else ()),
            number(row["potential"], 2),
            *(number(row[shown].get(query.name), 1) for query in deployment.queries),
            *(number(row[f"twin_{shown}"].get(query.name), 1) for query in deployment.queries if seconds > 0),
            ", ".join(row["broken"]) or "-",
            number(row["wall_s"], 2),
        )
        for row in rows
    ]
    queries = [query.name for query in deployment.queries]
    seen = [f"{name}, twin" for name in queries] if seconds > 0 else []
    counted = ("with hops",) if hops else ()
    head = ("policy", named.objective, *counted, "potential", *(f"{name} ms" for name in queries), *seen, "breaks", "s")
    print_table(f"planners side by side ({shown} latency in ms; whose promise breaks; * the file's own)", head, lines)
    if costs is not None:
        say(f"latencies on Spark, after the start, all sites on this machine; costs of batches {ground.costs_from}")
    if hops:
        say(
            f"with hops: what planners look at, {named.hop_ms:g} ms for each stream between sites, else the ideal model"
        )
    if seconds > 0 and not any(any(row["twin_mean"].values()) for row in rows):
        flows = any(source.arrivals is not None for source in deployment.sources)
        why = f"no result came in {seconds:g} s; --seconds gives it longer" if flows else "no source has `arrivals`"
        say(f"the twin has nothing to show: {why}")


def _empty(policy: str) -> dict[str, Any]:
    row: dict[str, Any] = {"policy": policy, "objective": None, "potential": None, "broken": []}
    return row | {name: {} for name in ("hops", "projected", "mean", "p50", "p95", "twin", "twin_mean", "twin_p50")}


def _row(
    deployment: Deployment, policy: str, placement: Placement, seed: int, seconds: float, costs: BatchCosts | None
) -> dict[str, Any]:
    planned = planned_json(deployment, placement, costs)
    projected = planned["projected"]
    row = _empty(policy) | {
        "model": planned["model"],
        "objective": planned["objective"]["value"],
        "hops": planned["hops"],
        "potential": planned["potential"]["total"],
        "projected": {name: one["latency_ms"] for name, one in projected.items()},
        "mean": {name: one["mean_ms"] for name, one in projected.items()},
        "p50": {name: one["p50_ms"] for name, one in projected.items()},
        "p95": {name: one["p95_ms"] for name, one in projected.items()},
        "broken": [name for name, one in projected.items() if not one["admitted"]],
        "placement": planned["placement"],
    }
    if seconds > 0:
        found = _twin(deployment, placement, seconds, seed, costs)
        row |= {f"twin_{name}": {query: one.get(name) for query, one in found.items()} for name in ("mean", "p50")}
        row["twin"] = row["twin_mean"]
    return row


def _twin(
    deployment: Deployment, placement: Placement, seconds: float, seed: int, costs: BatchCosts | None
) -> dict[str, dict[str, float]]:
    """Latencies of each query in the twin; nothing where it cannot run."""
    from weft.bodies import twin

    try:
        result = twin.run(deployment, placement, seconds=seconds, seed=seed, costs=costs)
    except (twin.CannotRun, ValueError) as error:
        note(f"twin: {error}")
        return {}
    return {name: one["latency_ms"] or {} for name, one in result.queries.items()}
