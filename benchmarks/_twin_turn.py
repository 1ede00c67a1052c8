"""One turn of `benchmarks.twin --old`, in a process of its own: PYTHONPATH says which version of Weft is measured.

It runs in versions from the first landing on, whose placements were keyed by query and operator.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any

LENGTH = 10
GAP_MS = 70.0


def chains(sites_n: int, chains_n: int, seed: int = 7) -> tuple[Any, Any]:
    """The deployment of `benchmarks.twin`, by constructors that all versions have."""
    from weft.model import Cost, Deployment, Link, Operator, Placement, Poisson, Query, Queue, Sink, Site, Source

    rng = Random(seed)
    sites = tuple(Site(f"s{i}") for i in range(sites_n))
    links = tuple(
        Link(a.name, b.name, delay_ms=rng.uniform(1, 500), oneway=True) for a in sites for b in sites if a is not b
    )
    by_stream = hasattr(Placement, "__dataclass_fields__") and "instances" in Placement.__dataclass_fields__
    sources, queries, homes = [], [], {}
    for chain in range(chains_n):
        source = Source(f"in{chain}", rng.choice(sites).name, "rate", (), arrivals=Poisson(1000.0 / GAP_MS))
        operators: list[Any] = []
        for k in range(LENGTH):
            reads = operators[-1].name if operators else source.name
            cost, passes = Cost("constant", (rng.uniform(1, 5),)), rng.uniform(0.8, 1)
            operators.append(
                Operator(f"o{k}", (reads,), sql="SELECT 1", cost_ms=cost, selectivity=passes, queue=Queue(100))
            )
            home = rng.choice(sites).name
            if by_stream:
                homes[f"q{chain}.o{k}"] = home
            else:
                homes[f"q{chain}", f"o{k}"] = (home,)
        sources.append(source)
        queries.append(Query(f"q{chain}", tuple(operators), (Sink(operators[-1].name, "console"),)))
    return Deployment(sites, tuple(sources), tuple(queries), links), Placement(homes)


def least_cpu_s(prepare: Callable[[], Callable[[], Any]], repeats: int) -> float:
    """The least CPU seconds of so many repeats, after one that does not count; laying out is not counted."""
    held = []
    for number in range(repeats + 1):
        work = prepare()
        began = time.process_time()
        work()
        held += [time.process_time() - began] if number else []
    return min(held)


def measure(asked: dict[str, Any]) -> dict[str, float]:
    """CPU milliseconds of the loop and of whole runs; events and results, by which both versions are compared."""
    from weft.bodies.twin.run import prepared, run

    seconds = asked["seconds"]
    deployment, placement = chains(asked["sites"], asked["chains"])
    nothing = ((seconds / 2, "s0", 1.0),)

    def loop() -> Callable[[], Any]:
        plane = prepared(deployment, placement, seconds, 1)
        return lambda: plane.advance(int(seconds * 1e9))

    works: dict[str, tuple[Callable[[], Callable[[], Any]], int]] = {
        "loop": (loop, asked["repeats"]),
        "run": (lambda: lambda: run(deployment, placement, seconds=seconds, seed=1), asked["repeats"]),
        "run, longer": (lambda: lambda: run(deployment, placement, seconds=asked["longer"] * seconds, seed=1), 1),
        "run, interruptible": (
            lambda: lambda: run(deployment, placement, seconds=seconds, seed=1, capacities=nothing),
            asked["repeats"],
        ),
    }
    found = {name: 1000 * least_cpu_s(*work) for name, work in works.items()}
    result = run(deployment, placement, seconds=seconds, seed=1)
    out = sum(query["records_out"] for query in result.queries.values())
    return {**found, "events": float(result.events), "out": float(out)}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
