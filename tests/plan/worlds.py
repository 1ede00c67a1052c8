"""Random deployments to plan: chains or tangled queries, wide or narrow links, still or moving rates."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import (
    Arrivals,
    Constant,
    Control,
    Deployment,
    Link,
    Operator,
    Place,
    Promise,
    Query,
    Sink,
    Site,
    Trace,
)


def world(seed: int, **more: Any) -> Deployment:
    """A deployment drawn from a seed: `operators`, `sites`, `objective`, `tangled`, `narrow`, `moving`.

    `promised` bounds the latency of some queries, `sinks` lets operators in the middle have one too, `between` lets
    queries read each other's streams.
    """
    rng = Random(seed)
    names = [f"s{at}" for at in range(more.get("sites", 4))]
    sites = [Site(name, capacity=rng.choice([0.5, 1.0, 2.0]), quota=rng.choice([0.8, 1.0])) for name in names]
    moving = more.get("moving", True)
    streams = [source(f"x{at}", rng.choice(names), arrivals=_arrivals(rng, moving)) for at in range(3)]
    queries: list[Query] = []
    left = more.get("operators", 10)
    while left > 0:
        length = min(rng.randint(1, 5), left)
        queries.append(_query(rng, f"q{len(queries)}", length, names, **more))
        left -= length
    if more.get("between"):
        queries = _reading_others(rng, queries)
    control = Control(Place(objective=more.get("objective", "potential"), **more.get("place", {})))
    return deployment(sites, streams, *queries, links=_links(rng, names, more.get("narrow", False)), control=control)


def _reading_others(rng: Random, queries: list[Query]) -> list[Query]:
    """The same queries, in any order, most with an operator that reads a stream of another instead of a source."""
    found: list[Query] = []
    for asked in queries:
        others = [f"{other.name}.{one.name}" for other in found for one in other.operators]
        places = [at for at, one in enumerate(asked.operators) if one.from_[0].startswith("x")]
        if others and places:
            at = rng.choice(places)
            one = asked.operators[at]
            read = replace(one, from_=(rng.choice(others), *one.from_[1:]))
            asked = replace(asked, operators=(*asked.operators[:at], read, *asked.operators[at + 1 :]))  # noqa: PLW2901
        found.append(asked)
    rng.shuffle(found)
    return found


def _arrivals(rng: Random, moving: bool) -> Arrivals:
    if not moving:
        return Constant(20.0)
    return Trace(tuple(float(rng.randint(1, 40)) for _ in range(5)), rng.choice([5.0, 10.0]))


def _links(rng: Random, names: list[str], narrow: bool) -> tuple[Link, ...]:
    return tuple(
        Link(one, two, rng.randint(1, 50), bandwidth_kbps=rng.choice([None, 5.0, 50.0, 500.0]) if narrow else None)
        for at, one in enumerate(names)
        for two in names[at + 1 :]
        if two == names[at + 1] or rng.random() < 0.7
    )


def _query(rng: Random, name: str, length: int, names: list[str], **more: Any) -> Query:
    operators: list[Operator] = []
    for at in range(length):
        before = [one.name for one in operators]
        inputs = [before[-1] if before else rng.choice(["x0", "x1", "x2"])]
        if more.get("tangled"):
            inputs = rng.sample([*before, "x0", "x1", "x2"], rng.randint(1, 2))
        operators.append(op(f"o{at}", *inputs, cost_ms=rng.uniform(0.5, 5.0), selectivity=rng.uniform(0.3, 1.0)))
    asked = query(*operators, name=name, to=rng.choice([None, *names]), weight=rng.choice([1.0, 2.0]))
    if more.get("sinks"):
        ends = [Sink(one.name, "parquet", f"out/{name}-{one.name}", rng.choice([None, *names])) for one in operators]
        asked = replace(asked, sinks=tuple(rng.sample(ends, rng.randint(1, len(ends)))))
    if more.get("promised") and rng.random() < 0.7:
        asked = replace(asked, promise=Promise(latency_ms=rng.uniform(5.0, 100.0)))
    return asked
