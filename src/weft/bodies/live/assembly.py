"""What is a run made of? Spark, the plan in force, what changes it and what measures it, put together in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from weft.bodies.live import journal
from weft.bodies.live.changes import Changes
from weft.bodies.live.measure import Meter
from weft.bodies.live.resuming import note_closing
from weft.bodies.live.state import CannotRun, State
from weft.model import Deployment, Operator, Placement, Query, dataflow
from weft.model.wishes import Wish
from weft.plan.changing.file_changed import plan_for_file
from weft.plan.changing.fragments import Fragment, Relays, cut
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
from weft.plan.dataflow.event_times import Passes, Stateful, carried_times, passes_by_sql
from weft.plan.network.paths import Paths
from weft.spark import embedded
from weft.spark.engine import SparkEngine
from weft.spark.fragments.analysis import Analysis
from weft.spark.fragments.outputs import Commit


class HowToRun(Protocol):
    """How a run was asked for."""

    @property
    def until_done(self) -> bool:
        """Whether it ends by itself."""

    @property
    def measured(self) -> bool:
        """Whether records are counted on their way."""


@dataclass(slots=True)
class Parts:
    """What a run works with once Spark is there; `wishes` are to be asked for when all runs."""

    spark: embedded.Embedded
    engines: Callable[[str], SparkEngine]
    changes: Changes
    wishes: tuple[Wish, ...]


def assemble(
    deployment: Deployment, planned: Placement, state: State, meter: Meter, asked: HowToRun,
    on_commit: Callable[[Commit], None],
) -> Parts:  # fmt: skip
    """Start Spark, take up the journal or write the first plan, and make ready what runs and changes it."""
    spark = embedded.start(deployment, state.folders, _factors(deployment))
    try:
        return _assembled(spark, deployment, planned, state, meter, asked, on_commit)
    except BaseException:
        spark.close()
        raise


def _assembled(
    spark: embedded.Embedded, deployment: Deployment, planned: Placement, state: State, meter: Meter, asked: HowToRun,
    on_commit: Callable[[Commit], None],
) -> Parts:  # fmt: skip
    for name, bad in spark.bad.items():
        meter.bad["recording", name] = bad
    stateful, passes = facts(deployment, spark.analysis)
    paths = Paths(deployment)
    rules = Rules(cutting(stateful, passes), paths)
    held = journal.read(state)
    plan, wishes = _plan(held, deployment, planned, state, rules)
    times = carried_times(deployment, stateful, passes)
    engines = spark.engines(times, paths.between, on_commit, asked, partial(note_closing, state, deployment))
    changes = Changes(state, rules)
    changes.begin(plan, held)
    return Parts(spark, engines, changes, wishes)


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


def facts(deployment: Deployment, analysis: Analysis) -> tuple[Stateful, Passes]:
    """What Spark says of operators: which keep state, and which hand a column through."""

    def stateful(query: Query, operator: Operator) -> bool:
        return f"{query.name}.{operator.name}" in analysis.stateful

    def passes(query: Query, operator: Operator, name: str, column: str) -> bool:
        # Without state a function of several streams can only unite them: it is as far as the slowest.
        if operator.call is not None and len(operator.from_) > 1:
            return column.partition(".")[0] in analysis.schemas[dataflow(deployment).stream(query.name, name)].names
        return passes_by_sql(query, operator, name, column)

    return stateful, passes


def cutting(stateful: Stateful, passes: Passes) -> Callable[[Deployment, Placement, Relays], tuple[Fragment, ...]]:
    """How a placement is cut for Spark."""
    return lambda deployment, placement, relays: cut(deployment, placement, stateful, passes, relays)


def _factors(deployment: Deployment) -> dict[str, list[tuple[float, float]]]:
    factors: dict[str, list[tuple[float, float]]] = {}
    for happening in deployment.scenario:
        for source, factor in getattr(happening, "rate", {}).items():
            factors.setdefault(source, []).append((happening.at_s, factor))
    return factors
