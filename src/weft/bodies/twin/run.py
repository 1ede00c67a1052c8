"""One run of the twin, from a deployment to its result."""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.bodies.twin.control.feeding_back import FeedingBack
from weft.bodies.twin.control.interruption import Interrupted, Interruption
from weft.bodies.twin.control.observing import Observing
from weft.bodies.twin.control.steering import MOVE_MS_PER_RECORD, Steering, interrupts
from weft.bodies.twin.loop.measures import SERIES_N, Measures
from weft.bodies.twin.outcome.gather import gather
from weft.bodies.twin.outcome.result import Result
from weft.bodies.twin.outcome.warn import before_warnings, overflow_warning
from weft.bodies.twin.plane import Overflow, Plane
from weft.bodies.twin.records import Scaling, TimedWish
from weft.bodies.twin.setup.adding import with_coming
from weft.bodies.twin.setup.asking import CannotRun, check_asked, check_options, check_placement, check_times
from weft.bodies.twin.setup.flows import TooFine
from weft.bodies.twin.setup.layout import lay_out
from weft.bodies.twin.setup.on_spark import on_spark, site_of, told
from weft.bodies.twin.setup.options import Discipline, Options
from weft.model import Deployment, Observed, Placement
from weft.plan import place
from weft.plan.dataflow.ordering import with_guards, with_ordering
from weft.plan.dataflow.rates import Rates, ideal_rates
from weft.plan.dataflow.shared_streams import shared_streams
from weft.plan.dataflow.sharing import with_sharing
from weft.plan.judging.batch_costs import BatchCosts
from weft.protocol.control import looks_every_s

NS_PER_S = 1_000_000_000
RECORDS_MAX = 1_000_000
STARTING = 3  # batches of each fragment that belong to the start, as live

Progress = Callable[[float, float], None]
"""Told how many seconds of how many have passed."""


def run(
    deployment: Deployment,
    placement: Placement | None = None,
    seconds: float = 60.0,
    seed: int = 0,
    plot: str | None = None,
    *,
    warmup_s: float = 0.0,
    discipline: str | Discipline | None = None,
    drop_late: bool | None = None,
    latency: str = "emitted",
    records_max: int = RECORDS_MAX,
    capacities: tuple[tuple[float, str, float], ...] = (),
    instances: tuple[Scaling, ...] = (),
    wishes: tuple[TimedWish, ...] = (),
    move_ms_per_record: float = MOVE_MS_PER_RECORD,
    progress: Progress | None = None,
    observe_s: float | None = None,
    costs: BatchCosts | None = None,
) -> Result:
    """Simulates a deployment; the same seed gives the same result, bit for bit, but for `wall_s`.

    `capacities` are changes `(at_s, site, capacity)`, `instances` are `(at_s, start | stop, query.operator, site)`,
    `wishes` are `(at_s, wish)` for the ideal model, judged when their time has come.
    `discipline` and `drop_late` stand for the file's `serve`. `latency` is counted from the record that let a result be
    emitted, or from the youngest that contributed to it. Ctrl-C ends a run with the results so far. With `observe_s`
    the result also holds what was observed in each period of so many seconds. With `costs` of micro-batches it is
    simulated as Spark would run it, all sites on one machine, from the start of the fragments on.
    """
    began = time.perf_counter()
    serve = deployment.control.serve
    discipline = serve.discipline if discipline is None else discipline
    check_times(seconds, warmup_s)
    check_options(discipline, latency)
    check_asked(deployment, instances, wishes, on_spark=costs is not None)
    if not deployment.sources:
        raise CannotRun("the deployment has no source: nothing would ever happen")
    control = deployment.control
    deployment = with_sharing(with_ordering(deployment))
    placement = place(deployment, seed=seed) if placement is None else with_guards(deployment, placement)
    check_placement(deployment, placement)
    begins = (deployment, placement)
    deployment, placement = with_coming(deployment, placement, control)
    asked, shared = (deployment, placement), None
    if costs is not None:
        spark = on_spark(deployment, placement, costs)
        deployment, placement, shared = spark.deployment, spark.placement, spark.shared
    rates = ideal_rates(deployment)
    options = Options(
        discipline, latency == "contributing", records_max,
        steady=not capacities and not instances and not wishes and not interrupts(deployment) and observe_s is None,
        drop_late=serve.drop_late if drop_late is None else drop_late, shared=shared,
    )  # fmt: skip
    try:
        plane = prepared(deployment, placement, seconds, seed, options, rates)
    except TooFine as error:
        raise CannotRun(str(error)) from error
    begins = begins if costs is None else (deployment, placement)
    steering = Steering(
        deployment, placement, plane, capacities, move_ms_per_record, instances, begins, control, wishes
    )
    observed: list[Observed] = []
    feeding = _observe(deployment, plane, steering, observe_s, observed, costs is None)
    warnings = before_warnings(deployment, placement, rates)
    try:
        _carry_out(plane, steering, seconds, warmup_s, progress)
    except Overflow:
        warnings.append(overflow_warning(plane, records_max))
    except Interrupted:
        warnings.append(f"interrupted at {plane.now_ns / NS_PER_S:g} s of {seconds:g} s: results so far")
    warnings += steering.warnings
    moves, outages = tuple(steering.wishing.moves), tuple(steering.hosting.outages)
    result = gather(deployment, placement, plane, warnings, moves, tuple(steering.carrier.story), outages)
    result.observed, result.shared = observed, shared_streams(asked[0])
    ended = steering.running()
    result.placement_at_end = result.placement if ended is placement else ended.as_json()
    if costs is not None:
        for query, later in zip(deployment.queries, plane.measures.after_start, strict=True):
            result.queries[query.name]["after_start_ms"] = later.summary()
        result = told(*asked, result, costs)
    _tell_decisions(result, deployment, steering, feeding, site_of if costs is not None else str)
    result.wall_s = round(time.perf_counter() - began, 6)
    _draw(result, plot)
    return result


def _draw(result: Result, plot: str | None) -> None:
    """Draws the result into a file, where one is named."""
    if plot is not None:
        from weft.bodies.twin.outcome.plot import draw

        draw(result, plot)


def _tell_decisions(
    result: Result, deployment: Deployment, steering: Steering, feeding: FeedingBack | None,
    named: Callable[[str], str],
) -> None:  # fmt: skip
    """What was changed, by whom, what rules wished, what sites know; `named` tells how a site is called."""
    result.slack_ms = feeding.slack(steering.records.now_ns / NS_PER_S) if feeding is not None else None
    result.changes = steering.wishing.changes_made(named)
    if steering.advising is not None:
        result.decisions = steering.rounds.decisions.entries()
        if deployment.control.advise is not None:
            result.advice = steering.rounds.history()


def _observe(
    deployment: Deployment, plane: Plane, steering: Steering, observe_s: float | None, into: list[Observed],
    feeds_back: bool,
) -> FeedingBack | None:  # fmt: skip
    """Has a run measured every period, for whoever asks and for the controller; where relief is on, for sites too."""
    if observe_s is not None:
        Observing(deployment, plane, steering, observe_s, into.append)
    period_s, advising = looks_every_s(deployment), steering.advising
    if period_s is None or advising is None:
        return None
    feeding = FeedingBack(deployment, steering) if feeds_back and deployment.control.relief is not None else None

    def told(seen: Observed) -> None:
        advising.seen(seen)
        if feeding is not None:
            feeding.seen(seen)

    Observing(deployment, plane, steering, period_s, told)
    return feeding


def prepared(
    deployment: Deployment,
    placement: Placement,
    seconds: float,
    seed: int,
    options: Options | None = None,
    rates: Rates | None = None,
) -> Plane:
    """A record plane at time 0."""
    until_ns = round(seconds * NS_PER_S)
    options = options or Options(steady=not interrupts(deployment))
    layout = lay_out(deployment, placement, until_ns, seed, options, rates or ideal_rates(deployment))
    return Plane(layout, Measures(layout.query_of_sink, len(deployment.queries), until_ns))


def _carry_out(plane: Plane, steering: Steering, seconds: float, warmup_s: float, progress: Progress | None) -> None:
    warmup_ns = round(warmup_s * NS_PER_S)
    with Interruption() as interruption:

        def paused() -> None:
            interruption.look()
            if progress is not None:
                progress(plane.now_ns / NS_PER_S, seconds)

        plane.paused = paused
        for moment in _moments(warmup_ns, round(seconds * NS_PER_S)):
            steering.run(moment)
            plane.note_start(moment, STARTING)
            if moment == warmup_ns:
                plane.forget(moment)
            else:
                plane.note_busy(moment)


def _moments(warmup_ns: int, until_ns: int) -> list[int]:
    """Where a run looks at its sites, its warm-up and its end included."""
    step_ns = -(-until_ns // SERIES_N)
    steps = {k * step_ns for k in range(1, SERIES_N)}
    return sorted(moment for moment in {*steps, warmup_ns, until_ns} if 0 < moment <= until_ns)
