"""One run of a scheme in the twin with a placement: what the placement rows of the lab have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from weft.bodies.twin import Result, run
from weft.bodies.twin.setup.flows import NS_PER_S, steps_of
from weft.model import Deployment, Placement, Source, Trace, Weights
from weft.plan import PLANNERS, after_steps
from weft.plan.planners import budget
from weft.plan.policies.greedy import greedy_homes
from weft.plan.search.problem import problem

RECOMMENDED = Weights(100.0, 1.0, 0.001)
STATISTICS_S = 50.0
PERIOD_S = 5.0


def ran(world: Deployment, placement: Placement, seed: int, *, warm_up_s: float, measured_s: float) -> Result:
    """The twin's word, latency from the birth of the youngest contributing record."""
    seconds = warm_up_s + measured_s
    return run(world, placement, seconds=seconds, seed=seed, warmup_s=warm_up_s, latency="contributing")


def latency_of(result: Result) -> float:
    """Mean latency over all results of all queries."""
    found = [one for one in result.queries.values() if one["latency_ms"] is not None]
    total: float = sum(one["latency_ms"]["mean"] * one["records_out"] for one in found)
    out: int = sum(one["records_out"] for one in found)
    return total / out


def with_place(world: Deployment, weights: Weights = RECOMMENDED, *, keep: float = 0.0) -> Deployment:
    """The same deployment planned by the potential with these weights."""
    place = replace(world.control.place, objective="potential", weights=weights, keep=keep)
    return replace(world, control=replace(world.control, place=place))


def by_greedy(world: Deployment, running: Placement | None = None) -> Placement:
    """INIT_GREEDY; with `keep`, from what runs.

    Looks at streams both ways: as printed, operators of equal load see no stream at all while they are placed along a
    chain, and weights change nothing.
    """
    given = problem(world, "potential")
    return given.placement(greedy_homes(given, running), "least potential when its turn came")


def planned(world: Deployment, policy: str, seed: int) -> Placement:
    """What a policy gives within the steps that `weft plan` would take."""
    return PLANNERS[policy](world, None, Random(seed), after_steps(budget(world)))


def as_seen(world: Deployment, seed: int, warm_up_s: float) -> Deployment:
    """The deployment with every source as a warm-up shows it: a trace of its rates by periods, over the last 50 s.

    It is what a run keeps of source rates every 5 s, and what `control.place.series` plans by.
    """
    return replace(world, sources=tuple(_traced(source, seed, warm_up_s) for source in world.sources))


def _traced(source: Source, seed: int, warm_up_s: float) -> Source:
    steps = steps_of(source, (), round(warm_up_s * NS_PER_S), seed)
    count, start_s, period_s = round(STATISTICS_S / PERIOD_S), warm_up_s - STATISTICS_S, PERIOD_S
    rates = [_sent(steps, start_s + at * period_s, start_s + (at + 1) * period_s) / period_s for at in range(count)]
    return replace(source, arrivals=Trace(tuple(rates), period_s))


def _sent(steps: Sequence[tuple[int, float]], start_s: float, end_s: float) -> float:
    """Records within a span of time."""
    start, end, total, begin = start_s * NS_PER_S, end_s * NS_PER_S, 0.0, 0.0
    for until, per_ns in steps:
        total += per_ns * max(0.0, min(until, end) - max(begin, start))
        begin = until
    return total


def correlated(one: Sequence[float], two: Sequence[float]) -> float:
    """Pearson's coefficient."""
    mean_1, mean_2 = sum(one) / len(one), sum(two) / len(two)
    both = sum((a - mean_1) * (b - mean_2) for a, b in zip(one, two, strict=True))
    spread = sum((a - mean_1) ** 2 for a in one) * sum((b - mean_2) ** 2 for b in two)
    return float(both / spread**0.5) if spread > 0 else 0.0
