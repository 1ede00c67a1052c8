"""One run of the twin, from a deployment to its result."""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.bodies.twin.gather import gather
from weft.bodies.twin.layout import DISCIPLINES, Options, lay_out
from weft.bodies.twin.measures import SERIES_N, Measures
from weft.bodies.twin.plane import Overflow, Plane
from weft.bodies.twin.result import Result
from weft.bodies.twin.steering import MOVE_MS_PER_RECORD, Steering
from weft.bodies.twin.warn import before_warnings, overflow_warning
from weft.model import Deployment, Placement
from weft.plan import place

NS_PER_S = 1_000_000_000
SECONDS_MAX = 3_000_000.0

Progress = Callable[[float, float], None]
"""Told how many seconds of how many have passed."""


class CannotRun(ValueError):
    """What is asked cannot be simulated; the text says why."""


def run(
    deployment: Deployment,
    placement: Placement | None = None,
    seconds: float = 60.0,
    seed: int = 0,
    plot: str | None = None,
    *,
    warmup_s: float = 0.0,
    discipline: str = "fcfs",
    latency: str = "emitted",
    records_max: int = 2_000_000,
    capacities: tuple[tuple[float, str, float], ...] = (),
    move_ms_per_record: float = MOVE_MS_PER_RECORD,
    progress: Progress | None = None,
) -> Result:
    """Simulates a deployment; the same seed gives the same result, bit for bit, but for `wall_s`.

    `capacities` are changes `(at_s, site, capacity)`; `latency` is counted from the record that let a result be
    emitted, or from the youngest that contributed to it.
    """
    began = time.perf_counter()
    if not 0 < seconds <= SECONDS_MAX or not 0 <= warmup_s < seconds:
        raise CannotRun(f"seconds must lie above the warm-up and at most {SECONDS_MAX:g}, found {seconds:g}")
    if discipline not in DISCIPLINES or latency not in ("emitted", "contributing"):
        raise CannotRun(f"discipline is one of {', '.join(DISCIPLINES)}, latency is emitted or contributing")
    if not deployment.sources:
        raise CannotRun("the deployment has no source: nothing would ever happen")
    placement = placement or place(deployment, seed=seed)
    until_ns = round(seconds * NS_PER_S)
    options = Options(discipline, latency == "contributing", records_max)
    plane = prepared(deployment, placement, seconds, seed, options)
    steering = Steering(deployment, placement, plane, capacities, move_ms_per_record)
    warnings = before_warnings(deployment, placement)
    warmup_ns = round(warmup_s * NS_PER_S)
    try:
        for moment in _moments(warmup_ns, until_ns):
            steering.run(moment)
            if moment == warmup_ns:
                plane.forget(moment)
            else:
                plane.note_busy(moment)
            if progress is not None:
                progress(moment / NS_PER_S, seconds)
    except Overflow:
        warnings.append(overflow_warning(plane, records_max))
    except KeyboardInterrupt:
        warnings.append(f"interrupted at {plane.now_ns / NS_PER_S:g} s of {seconds:g} s: results so far")
    warnings += steering.warnings
    result = gather(deployment, placement, plane, warnings, tuple(steering.moves), tuple(steering.carrier.story))
    result.wall_s = round(time.perf_counter() - began, 6)
    if plot is not None:
        from weft.bodies.twin.plot import draw

        draw(result, plot)
    return result


def prepared(
    deployment: Deployment, placement: Placement, seconds: float, seed: int, options: Options | None = None
) -> Plane:
    """A record plane at time 0."""
    until_ns = round(seconds * NS_PER_S)
    layout = lay_out(deployment, placement, until_ns, seed, options or Options())
    return Plane(layout, Measures(layout.query_of_sink, len(deployment.queries), until_ns))


def _moments(warmup_ns: int, until_ns: int) -> list[int]:
    """Where a run pauses for progress and interruption, its warm-up and its end included."""
    steps = {k * -(-until_ns // SERIES_N) for k in range(1, SERIES_N)}
    return sorted(moment for moment in {*steps, warmup_ns, until_ns} if 0 < moment <= until_ns)
