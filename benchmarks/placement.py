"""How good and how fast is placing? Against the exact optimum, a plain annealer and the published greedy, in one run.

Quality counts as the ratio of scores (1 is as good as the rival, below is better); budgets are CPU seconds, after a
first call that compiles. Rivals have ten times as long, as each setting says, and each instance has the same for both.
`python -m benchmarks.placement [--short] [--only PART] [--plot FILE] [--json]`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any, Literal

import numpy as np

from benchmarks._bench import Found, Setting, asked_setting, finish, parser_of
from benchmarks._textbook import textbook
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
from weft.plan.policies.exact import exact_homes
from weft.plan.policies.greedy import dp_homes, greedy_homes
from weft.plan.search.anneal import anneal
from weft.plan.search.chance import seeded
from weft.plan.search.incremental import fill
from weft.plan.search.packed import pack
from weft.plan.search.problem import Problem, problem
from weft.plan.search.schedule import BY_LATENCY, BY_POTENTIAL, Manner, Search
from weft.plan.search.traffic import traffic
from weft.plan.stop import after_seconds, after_steps

Objective = Literal["latency", "potential"]
OBJECTIVES: tuple[Objective, ...] = ("potential", "latency")
KINDS: tuple[tuple[Objective, bool], ...] = tuple((one, tangled) for one in OBJECTIVES for tangled in (False, True))
CLOCK = time.process_time
PARTS = ("large", "small", "switched", "fitness", "middle", "schemes")
WEIGHTS = (Weights(100, 1, 0.001), Weights(1, 1, 1), Weights(10, 1, 0.01))


def instance(
    seed: int, operators: int, sites: int, *, objective: Objective, tangled: bool = False, sparse: bool = False
) -> Deployment:
    """Chains of about ten, or queries that join, over sites of mixed speed that are about half busy on the mean."""
    rng = Random(seed)
    names = [f"s{at}" for at in range(sites)]
    places = tuple(Site(name, capacity=rng.uniform(0.5, 2.0)) for name in names)
    links = _links(rng, names, sparse)
    queries: list[Query] = []
    streams: list[Source] = []
    length = min(10, max(3, operators // 4))
    for at in range(0, operators, length):
        name = f"x{len(streams)}"
        rates = tuple(rng.uniform(5, 40) for _ in range(10))
        streams.append(Source(name, rng.choice(names), "rate", (Column("v", "DOUBLE"),), arrivals=Trace(rates, 5.0)))
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


def _query(rng: Random, name: str, length: int, streams: list[Source], names: list[str], tangled: bool) -> Query:
    made: list[Operator] = []
    for at in range(length):
        inputs = [made[-1].name if made else streams[-1].name]
        if tangled and at > 1 and rng.random() < 0.4:
            inputs.append(rng.choice(made[:-1]).name)
        cost = Cost("constant", (rng.uniform(1, 5),))
        made.append(Operator(f"o{at}", tuple(inputs), sql="-", cost_ms=cost, selectivity=rng.uniform(0.5, 1.0)))
    return Query(name, tuple(made), (Sink(made[-1].name, "parquet", "out", rng.choice(names)),))


def _scaled(whole: Deployment, busy: float, weights: Weights, objective: Objective) -> Deployment:
    """The same with costs such that sites would be so busy if all shared the load."""
    from dataclasses import replace

    from weft.plan.dataflow.rates import ideal_rates

    asked = sum(ideal_rates(whole).load_ms.values())
    factor = busy * sum(1000.0 * site.capacity for site in whole.sites) / asked
    queries = tuple(
        replace(query, operators=tuple(
            replace(one, cost_ms=Cost("constant", (one.cost_ms.values[0] * factor,))) for one in query.operators
            if one.cost_ms is not None
        ))
        for query in whole.queries
    )  # fmt: skip
    control = Control(Place(objective=objective, weights=weights))
    return replace(whole, queries=queries, control=control)


def value(given: Problem, homes: np.ndarray) -> float:
    i, f, _ = pack(given.flat)
    return fill(i, f, homes)


def annealer(given: Problem, seconds: float, seed: int, manner: Manner, steps: Any = anneal) -> float:
    """An annealer whose moves are evaluated as `refine` evaluates them: random start, one cooling, nothing else."""
    rng = Random(seed)
    i, f, b = pack(given.flat)
    m, n = len(given.operators), len(given.sites)
    best = np.array([rng.randrange(n) for _ in range(m)], np.int64)
    totals = np.array([fill(i, f, best)] * 2)
    movable = np.arange(m, dtype=np.int64)
    can_move, chance = np.ones(m, np.int64), seeded(rng)
    hot = abs(totals[0]) / m
    began = CLOCK()
    while (at := (CLOCK() - began) / seconds) < 1.0:
        heat = hot * 1e-6**at
        steps(i, f, b, movable, can_move, best, totals, heat, heat, 2_000, True, chance, *manner[:3])
    return value(given, best)


def plain_annealer(given: Problem, seconds: float, seed: int) -> float:
    """One that moves a single operator at a time, to any site."""
    return annealer(given, seconds, seed, Manner(0.0, 0.0), textbook)


def local_annealer(given: Problem, seconds: float, seed: int) -> float:
    """One that tries sites of neighbours half of the time, as `refine` does."""
    return annealer(given, seconds, seed, Manner(0.0, 0.0))


def rich_annealer(given: Problem, seconds: float, seed: int) -> float:
    """One that has the swaps, chains and trades of `refine` too, for the search without what surrounds it."""
    return annealer(given, seconds, seed, BY_POTENTIAL if given.flat.potential else BY_LATENCY)


def searched(given: Problem, seconds: float, seed: int = 0) -> float:
    return value(given, Search(given, None, Random(seed)).run(after_seconds(seconds, CLOCK)))


def small(count: int, seconds: float) -> dict[str, Any]:
    """How often the exact optimum is found, 9 to 12 operators on 3 sites."""
    found: dict[str, Any] = {}
    for objective in OBJECTIVES:
        hits, worst = 0, 1.0
        for seed in range(count):
            given = problem(instance(seed, 9 + seed % 4, 3, objective=objective, tangled=seed % 2 == 0))
            best, got = value(given, exact_homes(given)), searched(given, seconds, seed)
            hits += got <= best + 1e-9 * abs(best)
            worst = max(worst, 1.0 + (got - best) / max(1e-9, abs(best)))
        found[objective] = {"instances": count, "optimal": hits, "worst_ratio": worst}
    return found


def middle(count: int, seconds: float, rival_seconds: float) -> dict[str, Any]:
    """200 operators on 20 sites: refine after 1 s against a plain annealer after 10 s, greedy and the programme.

    Both draw by chance, and one instance spreads by some percent: against the plain annealer it is the mean of each
    over three seeds, beside the ratio of every single pair.
    """
    found: dict[str, Any] = {}
    for objective, tangled in KINDS:
        ratios, pairs, to_local, to_rich, to_greedy, to_dp = [], [], [], [], [], []
        for seed in range(count):
            given = problem(instance(seed, 200, 20, objective=objective, tangled=tangled))
            by_potential = problem(given.deployment, "potential")
            ours = [searched(given, seconds, seed + more) for more in (0, 100, 200)]
            theirs = [plain_annealer(given, rival_seconds, seed + more) for more in (0, 100, 200)]
            ratios.append(statistics.mean(ours) / statistics.mean(theirs))
            pairs.append([one / other for one, other in zip(ours, theirs, strict=True)])
            got = ours[0]
            to_local.append(got / local_annealer(given, rival_seconds, seed))
            to_rich.append(got / rich_annealer(given, rival_seconds, seed))
            to_greedy.append(got / value(given, greedy_homes(by_potential, as_printed=True)))
            to_dp.append(got / value(given, dp_homes(by_potential)))
        name = f"{objective}, {'joins' if tangled else 'chains'}"
        found[name] = {
            "to_plain_annealer_10s": ratios, "single_pairs": pairs, "to_annealer_with_our_sites_10s": to_local,
            "to_annealer_with_our_moves_10s": to_rich,
            "to_greedy_as_printed": to_greedy, "to_dp_corrected": to_dp,
        }  # fmt: skip
    return found


def switched() -> dict[str, Any]:
    """Eight operators on two sites: whether the optimum is found after each of six switches, from where it was."""
    from itertools import product

    from weft.lab.o_lab3 import pattern

    given = [traffic(pattern(at)) for at in (0, 1)]
    best = [min(value(one, np.array(homes)) for homes in product(range(2), repeat=8)) for one in given]
    running, found = None, 0
    for at in range(6):
        now = given[at % 2]
        homes = Search(now, running, Random(at)).run(after_seconds(0.5, CLOCK))
        found += value(now, homes) <= best[at % 2] + 1e-9 * abs(best[at % 2])
        running = now.placement(homes, "")
    return {"switches": 6, "optimal": found}


def fitness(seeds: int, seconds: float, rival_seconds: float) -> dict[str, Any]:
    """Order's fitness, 100 operators on 10 sites and 500 on 20: the gap after 0.5 s to the best that is known."""
    found: dict[str, Any] = {}
    for operators, sites in ((100, 10), (500, 20)):
        gaps = []
        for seed in range(seeds):
            given = traffic(instance(seed, operators, sites, objective="latency", tangled=True))
            got = searched(given, seconds, seed)
            best = min(got, searched(given, rival_seconds, seed + 1), rich_annealer(given, rival_seconds, seed))
            gaps.append((got - best) / abs(best))
        found[f"{operators} on {sites}"] = {"gap_to_best_known": gaps}
    return found


def schemes(drawings: int, steps: int) -> dict[str, Any]:
    """The six schemes of the source in the twin: refine's mean latency over that of greedy as printed."""
    from weft.lab.schemes import SCHEMES, deployment
    from weft.lab.trials import latency_of, ran, with_place
    from weft.plan import PLANNERS

    found: dict[str, Any] = {}
    for name, scheme in SCHEMES.items():
        rows = []
        for drawing in range(1, drawings + 1):
            world, _ = deployment(scheme, drawing)
            by_potential = problem(with_place(world), "potential")
            printed = by_potential.placement(greedy_homes(by_potential, as_printed=True), "as printed")
            refined = PLANNERS["refine"](world, None, Random(drawing), after_steps(steps))
            pair = [
                statistics.mean(latency_of(ran(world, one, seed, warm_up_s=20, measured_s=40)) for seed in (1, 2, 3))
                for one in (printed, refined)
            ]
            rows.append([round(value) for value in pair])
        found[name] = {"greedy_and_refine_ms": rows, "ratio": statistics.mean(ours / theirs for theirs, ours in rows)}
    found["mean ratio"] = statistics.mean(one["ratio"] for one in found.values())
    return found


def large(sizes: list[list[int]], seconds: float) -> list[dict[str, Any]]:
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
        got = searched(given, seconds)
        rows.append({
            "operators": operators, "sites": sites, "build_s": built_s, "greedy_s": greedy_s,
            "greedy_ns_per_pair": 1e9 * greedy_s / (operators * sites),
            "refine_s": CLOCK() - began, "refine_to_greedy": got / value(given, first),
        })  # fmt: skip
    return rows


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Seconds over pairs of operator and site, both axes by powers of ten."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    pairs = [row["operators"] * row["sites"] for row in rows]
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name in ("build_s", "greedy_s"):
        axes.loglog(pairs, [max(1e-4, row[name]) for row in rows], marker="o", label=name)
    axes.set_xlabel("operators x sites")
    axes.set_ylabel("CPU seconds")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def warm_up() -> None:
    """Compile everything once, outside the time that counts."""
    warm = problem(instance(0, 60, 50, objective="potential", tangled=True, sparse=True))
    Search(warm, None, Random(0)).run(after_steps(10_000))
    dp_homes(warm)
    exact_homes(problem(instance(0, 9, 3, objective="latency")))


def measure(setting: Setting, only: str | None = None) -> Found:
    """All parts, or one."""
    warm_up()
    parts: dict[str, Callable[[], Any]] = {
        "large": lambda: large(setting["sizes"], setting["large_s"]),
        "small": lambda: small(setting["small_instances"], setting["small_s"]),
        "switched": switched,
        "fitness": lambda: fitness(setting["fitness_seeds"], setting["small_s"], setting["rival_s"]),
        "middle": lambda: middle(setting["middle_instances"], setting["middle_s"], setting["rival_s"]),
        "schemes": lambda: schemes(setting["drawings"], setting["scheme_steps"]),
    }
    found: Found = {}
    for name in setting["parts"] if only is None else [only]:
        print(f"measuring {name}", file=sys.stderr)
        found[name] = parts[name]()
    return found


def show(setting: Setting, found: Found) -> None:
    """The figures for people."""
    del setting
    for name, part in found.items():
        print(name)
        for row in part.items() if isinstance(part, dict) else enumerate(part):
            print("  ", *row)


def main(words: list[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--plot", metavar="FILE", help="draw how times grow")
    parser.add_argument("--only", metavar="PART", choices=PARTS, help=f"one of {', '.join(PARTS)}; not kept")
    asked = parser.parse_args(words)
    asked.no_keep = asked.no_keep or asked.only is not None

    def measured(setting: Setting) -> Found:
        found = measure(setting, asked.only)
        if asked.plot and "large" in found:
            draw(found["large"], asked.plot)
        return found

    finish(asked_setting("placement", asked), asked, measured, show)


if __name__ == "__main__":
    main()
