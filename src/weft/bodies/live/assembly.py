"""With which plan does a run begin? The journal's, or the first, cut by what Spark says of the operators."""

from __future__ import annotations

from collections.abc import Callable

from weft.bodies.live import journal
from weft.bodies.live.beside import Beside
from weft.bodies.live.changes import Changes
from weft.bodies.live.facts import Facts, meanings
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment, Placement
from weft.model.wishes import Wish
from weft.plan.changing.file_changed import plan_for_file
from weft.plan.changing.fragments import Fragment, Relays, cut
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
from weft.plan.dataflow.event_times import Passes, Stateful
from weft.plan.network.paths import Paths


def assemble(
    deployment: Deployment, planned: Placement, state: State, facts: Facts, beside: Beside | None = None
) -> tuple[Changes, tuple[Wish, ...]]:
    """Take up the journal or write the first plan; what changes it, and wishes to be asked for when all runs."""
    rules = Rules(cutting(*meanings(deployment, facts)), Paths(deployment))
    held = journal.read(state)
    plan, wishes = _plan(held, deployment, planned, state, rules)
    changes = Changes(state, rules)
    changes.beside = beside or Beside()
    changes.begin(plan, held)
    return changes, wishes


def _plan(
    held: journal.Held | None, deployment: Deployment, planned: Placement, state: State, rules: Rules
) -> tuple[RunningPlan, tuple[Wish, ...]]:
    """The plan to begin with: the first, or the one held, with the queries that the file has now."""
    if held is None:
        return first_plan(deployment, planned, rules), ()
    found = plan_for_file(held.plan(deployment), deployment, planned, rules)
    if isinstance(found, Impossible):
        raise CannotRun(f"{state.path} cannot go on with this file: {found.why}; use --fresh to start over")
    return found


def cutting(stateful: Stateful, passes: Passes) -> Callable[[Deployment, Placement, Relays], tuple[Fragment, ...]]:
    """How a placement is cut for Spark."""
    return lambda deployment, placement, relays: cut(deployment, placement, stateful, passes, relays)
