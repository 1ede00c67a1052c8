"""Where will it run? One placement for `weft plan`, `weft twin` and `weft run`, of the same file and state.

A state that holds a run goes on with the plan in force there; else the file's policy places, with what the last run
measured and what batches cost on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.output import FIRST_TIME, WRONG_INPUT, as_measured, by_series, fail, note, patience

if TYPE_CHECKING:
    from weft.bodies.live import journal
    from weft.model import Deployment, Placement
    from weft.plan.judging.batch_costs import BatchCosts


@dataclass(frozen=True, slots=True)
class Placed:
    """A deployment as it is planned by, its placement and where that comes from, and what batches cost."""

    deployment: Deployment
    placement: Placement
    placed_by: str
    costs: BatchCosts
    costs_from: str
    taken: tuple[str, ...]

    def model_costs(self, ideal: bool) -> BatchCosts | None:
        """What batches cost where the model of micro-batches is asked; None where it is the ideal one."""
        from weft.plan.judging.batch_projection import why_ideal

        why = why_ideal(self.deployment)
        if not ideal and why is not None:
            note(f"by the ideal model: {why}")
        return None if ideal or why is not None else self.costs

    def as_json(self) -> dict[str, Any]:
        """What the commands add to their documents."""
        return {"placed_by": self.placed_by, "batch_costs": {**self.costs.as_json(), "from": self.costs_from}}


def placed(file: Path, deployment: Deployment, state: Path | None, *, seed: int = 0, fresh: bool = False) -> Placed:
    """The placement that `weft run` of this file and state would use; exit 2 where there is none."""
    from weft.bodies.live.calibration import known_costs
    from weft.bodies.live.sharing import as_held
    from weft.bodies.live.state import state_folder
    from weft.plan import NoPlacement, counting_hops, place

    folder = state_folder(file, state)
    held = in_force(folder)
    if held is not None and not fresh:
        deployment = as_held(deployment, held)
    known, measured = as_measured(file, deployment, state)
    seen, series = by_series(file, known, state)
    taken = (*measured, *series)
    costs, costs_from = known_costs()
    counted = counting_hops(known, costs.hop_ms)
    try:
        with patience(f"looking for the best placement; {FIRST_TIME}"):
            planned = place(counting_hops(seen, costs.hop_ms), seed=seed)
    except NoPlacement as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    if held is not None:
        costs, corrected = _corrected(counted, folder, held, costs)
        costs_from += corrected
    if fresh or held is None:
        by = f"the policy {counted.control.place.policy}"
        return Placed(counted, planned, by, costs, costs_from, taken)
    by = f"the plan in force in {folder}, number {held.number}; --fresh shows the file's own"
    return Placed(counted, _kept(counted, planned, held.placement), by, costs, costs_from, taken)


def in_force(folder: Path) -> journal.Held | None:
    """What the journal of a state holds, None where there is none, or it cannot be read."""
    from weft.bodies.live import journal
    from weft.bodies.live.state import State
    from weft.spark.storage.disk import Damaged

    if not folder.exists():
        return None
    try:
        return journal.read(State(folder))
    except (Damaged, OSError, LookupError) as error:
        note(f"the plan in force cannot be read, so this is what the file would give: {error}")
        return None


def _kept(deployment: Deployment, planned: Placement, held: Placement) -> Placement:
    """The placement that a run goes on with: what runs stays, what is new or pinned elsewhere goes where it should."""
    sites = {site.name for site in deployment.sites}
    pinned = {
        f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators if one.site is not None
    }
    homes, reasons = dict(planned.homes), dict(planned.reasons)
    for stream, site in held.homes.items():
        if stream in homes and site in sites and stream not in pinned:
            homes[stream] = site
            reasons[stream] = held.reasons.get(stream, "placed there by the run")
    return replace(planned, homes=homes, reasons=reasons)


def _corrected(deployment: Deployment, folder: Path, held: journal.Held, costs: BatchCosts) -> tuple[BatchCosts, str]:
    """Costs corrected by the durations of batches that the last run measured, and a word on that."""
    from weft.bodies.live.measured import last_batches
    from weft.plan.judging.batch_projection import on_spark
    from weft.plan.observing.batches import corrected

    measured = last_batches(folder)
    streams = {f"{query.name}.{one.name}" for query in deployment.queries for one in query.operators}
    if not measured or set(held.placement.homes) != streams:
        return costs, ""
    found = corrected(
        costs, measured, lambda one: on_spark(deployment, held.placement, one, held.fragments).simulated.batch_ms
    )
    return found, ", corrected by the batches of the last run"
