"""How good and how fast is placing? Against the exact optimum, a plain annealer and the published greedy, in one run.

Quality counts as the ratio of scores (1 is as good as the rival, below is better); budgets are CPU seconds, after a
first call that compiles. `python -m benchmarks.placement [--json] [--quick]`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from random import Random
from typing import Any

import numpy as np

from weft.model import (
    Column,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Place,
    Query,
    Sink,
    Site,
    Source,
    Trace,
    Weights,
)  # fmt: skip
from weft.plan.anneal import anneal
from weft.plan.chance import seeded
from weft.plan.exact import exact_homes
from weft.plan.flat import Problem, problem
from weft.plan.greedy import dp_homes, greedy_homes
from weft.plan.memory import pack
from weft.plan.search import Search
from weft.plan.state import fill
from weft.plan.stop import after_seconds, after_steps

CLOCK = time.process_time
WEIGHTS = (Weights(100, 1, 0.001), Weights(1, 1, 1), Weights(10, 1, 0.01))


def instance(
    seed: int, operators: int, sites: int, *, objective: str, tangled: bool = False, sparse: bool = False
) -> Deployment:
    """Chains of about ten, or queries that join, over sites of mixed speed that are about half busy on the mean."""
    rng = Random(seed)
    names = [f"s{at}" for at in range(sites)]
    places = tuple(Site(name, capacity=rng.uniform(0.5, 2.0)) for name in names)
    links = _links(rng, names, sparse)
    queries, streams = [], []
    length = min(10, max(3, operators // 4))
    for at in range(0, operators, length):
        name = f"x{len(streams)}"
        rates = tuple(rng.uniform(5, 40) for _ in range(10))
        streams.append(
            Source(name, rng.choice(names), "rate", (Column("v", "DOUBLE"),), arrivals=Trace(rates, 5.0))
        )
        queries.append(_query(rng, f"q{len(queries)}", min(length, operators - at), streams, names, tangled))
    whole = Deployment(places, tuple(streams), tuple(queries), links, Control(Place(objective=objective)))
    return _scaled(whole, rng.uniform(0.4, 0.6), WEIGHTS[seed % len(WEIGHTS)], objective)


def _links(rng: Random, names: list[str], sparse: bool) -> tuple[Link, ...]:
    if not sparse:
        pairs = [(one, two) for at, one in enumerate(names) for two in names[at + 1 :]]
    else:
        pairs = [(names[at], names[rng.randrange(max(1, at))]) for at in range(1, len(names))]
        pairs += [tuple(rng.sample(names, 2)) for _ in range(2 * len(names))]  # type: ignore[misc]
    return tuple(Link(one, two, rng.uniform(1, 100)) for one, two in pairs)


def _query(
    rng: Random, name: str, length: int, streams: list[Source], names: list[str], tangled: bool
) -> Query:
    made: list[Operator] = []
    for at in range(length):
        inputs = [made[-1].name if made else streams[-1].name]
        if tangled and at > 1 and rng.random() < 0.4:
            inputs.append(rng.choice(made[:-1]).name)
        cost = Cost("constant", (rng.uniform(1, 5),))
        made.append(Operator(f"o{at}", tuple(inputs), sql="-", cost_ms=cost, selectivity=rng.uniform(0.5, 1.0)))
    return Query(name, tuple(made), (Sink(made[-1].name, "parquet", "out", rng.choice(names)),))


def _scaled(whole: Deployment, busy: float, weights: Weights, objective: str) -> Deployment:
    """The same with costs such that sites would be so busy if all shared the load."""
    from dataclasses import replace

    from weft.plan.rates import ideal_rates

    asked = sum(ideal_rates(whole).load_ms.values())
    factor = busy * sum(1000.0 * site.capacity for site in whole.sites) / asked
    queries = tuple(
        replace(query, operators=tuple(
            replace(one, cost_ms=Cost("constant", (one.cost_ms.values[0] * factor,))) for one in query.operators
            if one.cost_ms is not None
        ))
        for query in whole.queries
    )  # fmt: skip
    control = Control(Place(objective=objective, weights=weights))  # type: ignore[arg-type]
    return replace(whole, queries=queries, control=control)


def value(given: Problem, homes: np.ndarray) -> float:
    i, f, _ = pack(given.flat)
    return fill(i, f, homes)


def plain_annealer(given: Problem, seconds: float, seed: int) -> float:
    """A textbook annealer with the same moves evaluated the same way: random start, one cooling, nothing else."""
    rng = Random(seed)
    i, f, b = pack(given.flat)
    m, n = len(given.operators), len(given.sites)
    best = np.array([rng.randrange(n) for _ in range(m)], np.int64)
    totals = np.array([fill(i, f, best)] * 2)
    movable = np.arange(m, dtype=np.int64)
    chance = seeded(rng)
    hot = abs(totals[0]) / m
    began = CLOCK()
    while (at := (CLOCK() - began) / seconds) < 1.0:
        heat = hot * 1e-6**at
        anneal(i, f, b, movable, np.zeros(m, np.int64), best, totals, heat, heat, 2_000, True, chance)
    return value(given, best)


def searched(given: Problem, seconds: float, seed: int = 0) -> float:
    return value(given, Search(given, None, Random(seed)).run(after_seconds(seconds, CLOCK)))


def small(count: int) -> dict[str, Any]:
    """How often the exact optimum is found, 9 to 12 operators on 3 sites."""
    found: dict[str, Any] = {}
    for objective in ("potential", "latency"):
        hits, worst = 0, 1.0
        for seed in range(count):
            given = problem(instance(seed, 9 + seed % 4, 3, objective=objective, tangled=seed % 2 == 0))
            best, got = value(given, exact_homes(given)), searched(given, 0.5, seed)
            hits += got <= best + 1e-9 * abs(best)
            worst = max(worst, 1.0 + (got - best) / max(1e-9, abs(best)))
        found[objective] = {"instances": count, "optimal": hits, "worst_ratio": worst}
    return found


def middle(count: int) -> dict[str, Any]:
    """200 operators on 20 sites: refine after 1 s against a plain annealer after 10 s, greedy and the programme."""
    found: dict[str, Any] = {}
    for objective, tangled in (("potential", False), ("potential", True), ("latency", False), ("latency", True)):
        ratios, to_greedy, to_dp = [], [], []
        for seed in range(count):
            given = problem(instance(seed, 200, 20, objective=objective, tangled=tangled))
            by_potential = problem(given.deployment, "potential")
            got = searched(given, 1.0, seed)
            ratios.append(got / plain_annealer(given, 10.0, seed))
            to_greedy.append(got / value(given, greedy_homes(by_potential, as_printed=True)))
            to_dp.append(got / value(given, dp_homes(by_potential)))
        name = f"{objective}, {'joins' if tangled else 'chains'}"
        found[name] = {
            "to_plain_annealer_10s": ratios, "to_greedy_as_printed": to_greedy, "to_dp_corrected": to_dp,
        }  # fmt: skip
    return found


def large(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Growth: seconds of greedy, and what refine makes of it in 5 s."""
    rows = []
    for operators, sites in sizes:
        began = CLOCK()
        given = problem(instance(1, operators, sites, objective="potential", sparse=True))
        built_s = CLOCK() - began
        began = CLOCK()
        first = greedy_homes(given)
        greedy_s = CLOCK() - began
        began = CLOCK()
        got = searched(given, 5.0)
        rows.append({
            "operators": operators, "sites": sites, "build_s": built_s, "greedy_s": greedy_s,
            "refine_s": CLOCK() - began, "refine_to_greedy": got / value(given, first),
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer instances, smaller sizes")
    options = parser.parse_args()
    warm = problem(instance(0, 12, 3, objective="latency", tangled=True))
    Search(warm, None, Random(0)).run(after_steps(10_000))
    sizes = [(200, 20), (2_000, 100), (20_000, 1_000)][: 2 if options.quick else 3]
    result = {
        "small": small(12 if options.quick else 60),
        "large": large(sizes),
        "middle": middle(1 if options.quick else 3),
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, part in result.items():
        print(name)
        for row in part.items() if isinstance(part, dict) else enumerate(part):
            print("  ", *row)


if __name__ == "__main__":
    sys.exit(main())
