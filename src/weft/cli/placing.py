"""Where will it run? One placement for `weft plan`, `weft twin` and `weft run`, of the same file and state.

A state that holds a run goes on with the plan in force there; else the file's policy places, with what the last run
measured and what batches cost on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli.output import FIRST_TIME, WRONG_INPUT, as_flowed, as_measured, by_series, fail, note, patience

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

    def model_costs(self, ideal: bool, now: bool = False) -> BatchCosts | None:
        """What batches cost where the model of micro-batches is asked; None where it is the ideal one.

        With `now` it is asked of what runs at a moment, whatever the scenario has in store.
        """
        from weft.plan.judging.admission import why_ideal_now
        from weft.plan.judging.batch_projection import why_ideal

        why = why_ideal_now(self.deployment) if now else why_ideal(self.deployment)
        if not ideal and why is not None:
            note(f"by the ideal model: {why}")
        return None if ideal or why is not None else self.costs

    def as_json(self) -> dict[str, Any]:
        """What the commands add to their documents."""
        return {"placed_by": self.placed_by, "batch_costs": {**self.costs.as_json(), "from": self.costs_from}}


@dataclass(frozen=True, slots=True)
class Ground:
    """What a placement is judged by: the deployment as measured and with hops, batch costs, and what runs by now.

    `seen` is what planners look at; it differs from `deployment` where they see how rates change over time.
    """

    deployment: Deployment
    seen: Deployment
    folder: Path
    held: journal.Held | None
    costs: BatchCosts
    costs_from: str
    taken: tuple[str, ...]

    def going_on(self, planned: Placement) -> Placed:
        """What a run of this state would go on with: its plan in force, and where there is none, what was planned."""
        if self.held is None:
            return self.started_over(planned)
        by = f"the plan in force in {self.folder}, number {self.held.number}; --fresh shows the file's own"
        kept = _kept(self.deployment, planned, self.held.placement)
        return Placed(self.deployment, kept, by, self.costs, self.costs_from, self.taken)

    def started_over(self, planned: Placement) -> Placed:
        """What a run that starts over would use."""
        by = f"the policy {self.deployment.control.place.policy}"
        return Placed(self.deployment, planned, by, self.costs, self.costs_from, self.taken)


def ground(file: Path, deployment: Deployment, state: Path | None, fresh: bool = False) -> Ground:
    """All that is known of a deployment before anything is placed."""
    from weft.bodies.live.calibration import corrected_by_last_run, known_costs
    from weft.bodies.live.sharing import with_beside
    from weft.bodies.live.state import state_folder
    from weft.plan import counting_hops
    from weft.plan.dataflow.real_time import with_real_time

    folder = state_folder(file, state)
    held = in_force(folder)
    if held is not None and not fresh:
        deployment = with_beside(deployment, held)
    deployment = with_real_time(deployment)
    known, measured = as_measured(file, deployment, state)
    seen, series = by_series(file, known, state)
    if known.control.project is not None:
        known, series = as_flowed(file, known, state)
    costs, costs_from = known_costs()
    counted, seen = counting_hops(known, costs.hop_ms), counting_hops(seen, costs.hop_ms)
    if held is not None:
        costs, corrected = corrected_by_last_run(counted, folder, held.placement, held.fragments, costs)
        costs_from += corrected
    return Ground(counted, seen, folder, held, costs, costs_from, (*measured, *series))


def placed(file: Path, deployment: Deployment, state: Path | None, *, seed: int = 0, fresh: bool = False) -> Placed:
    """The placement that `weft run` of this file and state would use; exit 2 where there is none."""
    from weft.plan import NoPlacement, place

    known = ground(file, deployment, state, fresh)
    try:
        with patience(f"looking for the best placement; {FIRST_TIME}"):
            planned = place(known.seen, seed=seed)
    except NoPlacement as error:
        fail(f"{file}: {error}", WRONG_INPUT)
    return known.started_over(planned) if fresh else known.going_on(planned)


def level_lines(file: Path, deployment: Deployment, state: Path | None, fresh: bool = False) -> list[str]:
    """Which level each query would be kept at, of those whose promise has levels; nothing is placed for none."""
    names = [query.name for query in deployment.queries if query.promise.levels]
    if not names:
        return []
    from weft.plan.judging.admission import projected

    found = placed(file, deployment, state, fresh=fresh)
    said = projected(found.deployment, found.placement, found.model_costs(False))
    return [f"query {name}: {'' if said[name].admitted else 'not admitted, '}{said[name].reason}" for name in names]


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
