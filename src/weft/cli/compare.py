"""`weft plan --compare`: what would each planner do, what would that mean, and what does the twin say?"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING, Any

from weft.cli.output import FIRST_TIME, Rows, note, number, patience, print_json, print_table

if TYPE_CHECKING:
    from weft.model import Deployment, Placement
    from weft.plan.judging.batch_costs import BatchCosts


def compare(
    deployment: Deployment, seed: int, seconds: float, warnings: list[str], json: bool, ideal: bool = False
) -> None:
    """Prints one row per planner, those that keep all promises first, best objective first; marks the file's own."""
    from weft.bodies.live.calibration import known_costs
    from weft.plan import PLANNERS, counting_hops
    from weft.plan.judging.batch_projection import why_ideal

    costs = None
    if not ideal and why_ideal(deployment) is None:
        costs = known_costs()[0]
        deployment = counting_hops(deployment, costs.hop_ms)
    rows = [_row(deployment, policy, seed, seconds, costs) for policy in PLANNERS]
    rows.sort(key=lambda row: (bool(row["broken"]), math.inf if row["objective"] is None else row["objective"]))
    named = deployment.control.place
    if json:
        objective = {"name": named.objective, "policy": named.policy}
        print_json({"objective": objective, "policies": rows, "warnings": warnings})
        return
    for warning in warnings:
        note(f"warning: {warning}")
    lines: Rows = [
        (
            row["policy"] + (" *" if row["policy"] == named.policy else ""),
            number(row["objective"], 2) if "error" not in row else row["error"],
            number(row["potential"], 2),
            *(number(row["mean"].get(query.name), 1) for query in deployment.queries),
            *(number(row["twin"].get(query.name), 1) for query in deployment.queries if seconds > 0),
            ", ".join(row["broken"]) or "-",
            number(row["wall_s"], 2),
        )
        for row in rows
    ]
    queries = [query.name for query in deployment.queries]
    seen = [f"{name}, twin" for name in queries] if seconds > 0 else []
    head = ("policy", named.objective, "potential", *(f"{name} ms" for name in queries), *seen, "breaks", "s")
    print_table("planners side by side (mean latency in ms; whose promise breaks; * the file's own)", head, lines)


def _row(deployment: Deployment, policy: str, seed: int, seconds: float, costs: BatchCosts | None) -> dict[str, Any]:
    from weft.plan import NoPlacement, place
    from weft.plan.judging.batch_projection import project_on_spark
    from weft.plan.judging.potential import potential
    from weft.plan.judging.projection import latency_objective, project

    chosen = dataclasses.replace(deployment.control.place, policy=policy)
    asked = dataclasses.replace(deployment, control=dataclasses.replace(deployment.control, place=chosen))
    row: dict[str, Any] = {"policy": policy, "objective": None, "potential": None}
    row |= {"projected": {}, "mean": {}, "broken": [], "twin": {}}
    began = time.perf_counter()
    try:
        with patience(f"{policy} is still looking; {FIRST_TIME}"):
            placement = place(asked, seed=seed)
    except NoPlacement as error:
        return {**row, "error": str(error), "wall_s": round(time.perf_counter() - began, 3)}
    row["wall_s"] = round(time.perf_counter() - began, 3)
    projected = project(deployment, placement) if costs is None else project_on_spark(deployment, placement, costs)
    row["potential"] = potential(deployment, placement).total
    row["projected"] = {name: one.latency_ms for name, one in projected.items()}
    row["mean"] = {name: one.mean_ms for name, one in projected.items()}
    row["broken"] = [name for name, one in projected.items() if not one.admitted]
    latency = latency_objective(deployment, placement)
    row["objective"] = row["potential"] if chosen.objective == "potential" else latency
    row["placement"] = placement.as_json()
    if seconds > 0:
        row["twin"] = _twin(deployment, placement, seconds, seed, costs)
    return row


def _twin(
    deployment: Deployment, placement: Placement, seconds: float, seed: int, costs: BatchCosts | None
) -> dict[str, float | None]:
    """Mean latency of each query in the twin; nothing where it cannot run."""
    from weft.bodies import twin

    try:
        result = twin.run(deployment, placement, seconds=seconds, seed=seed, costs=costs)
    except (twin.CannotRun, ValueError) as error:
        note(f"twin: {error}")
        return {}
    return {name: (one.get("latency_ms") or {}).get("mean") for name, one in result.queries.items()}
