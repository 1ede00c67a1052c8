"""Deployments in which one source comes to give more than its site can do: ramps from a seed, and a sudden step."""

from __future__ import annotations

from random import Random

from weft.model import (
    Column,
    Constant,
    Control,
    Cost,
    Deployment,
    Link,
    Operator,
    Placement,
    Poisson,
    Promise,
    Query,
    RateAt,
    Relief,
    Sink,
    Site,
    Source,
)

AT_GATE = Placement({"suspicious.valid": "gw-1", "suspicious.hourly": "gw-1"})
STEPS = 24


def world(
    control: Control, scenario: tuple[RateAt, ...], costs: tuple[Cost, Cost], arrivals: Constant | Poisson,
    promise_ms: float = 5000.0, state_kb: float = 200.0,
) -> Deployment:  # fmt: skip
    """Two gateways and a district; a filter and a heavier operator behind it, both at the first gateway."""
    operators = (
        Operator("valid", ("readings",), sql="x", cost_ms=costs[0], selectivity=1.0),
        Operator("hourly", ("valid",), sql="x", cost_ms=costs[1], selectivity=0.5, state_kb=state_kb),
    )
    sink = Sink("hourly", "console", site="district")
    query = Query("suspicious", operators, (sink,), Promise(latency_ms=promise_ms))
    return Deployment(
        (Site("gw-1"), Site("gw-2"), Site("district", 2.0)),
        (Source("readings", "gw-1", "rate", (Column("n"),), arrivals=arrivals),),
        (query,),
        (Link("gw-1", "district", 20.0), Link("gw-2", "district", 20.0), Link("gw-1", "gw-2", 10.0)),
        control,
        scenario=scenario,
    )


def tripled(control: Control) -> Deployment:
    """A gateway used by half, whose source gives three times as much from 20 s on."""
    costs = (Cost("constant", (0.5,)), Cost("constant", (2.0,)))
    return world(control, (RateAt(20.0, {"readings": 3.0}),), costs, Poisson(200.0))


def quiet(control: Control, used: float, rate_per_s: float = 120.0) -> Deployment:
    """A gateway used by some share, and nothing happens."""
    cost_ms = used * 1000.0 / rate_per_s
    costs = (Cost("constant", (0.3 * cost_ms,)), Cost("exponential", (0.7 * cost_ms,)))
    return world(control, (), costs, Poisson(rate_per_s), promise_ms=2000.0)


def used_at_end(seed: int) -> float:
    """The share of what its site can do that a ramp asks for when it has risen."""
    deployment, _ = ramp(seed)
    source, last = deployment.sources[0], deployment.scenario[-1]
    assert isinstance(source.arrivals, Constant | Poisson)
    assert isinstance(last, RateAt)
    costs = [one.cost_ms.values[0] for one in deployment.queries[0].operators if one.cost_ms is not None]
    return source.arrivals.rate_per_s * last.rate[source.name] * sum(costs) / 1000.0


def ramp(seed: int, relieves: bool = True) -> tuple[Deployment, float]:
    """A ramp drawn from a seed, and how long to look: a source comes to give two to four times as much."""
    rng = Random(seed)
    promise_ms = rng.choice([1000.0, 2000.0, 5000.0])
    rate_per_s, used, times = rng.uniform(60, 200), rng.uniform(0.3, 0.6), rng.uniform(2.0, 4.0)
    lasts_s, start_s, share = rng.uniform(30, 120), rng.uniform(60, 120), rng.uniform(0.2, 0.4)
    cost_ms = used * 1000.0 / rate_per_s
    kind = "constant" if rng.random() < 0.5 else "exponential"
    costs = (Cost("constant", (cost_ms * share,)), Cost(kind, (cost_ms * (1 - share),)))
    state_kb = rng.choice([0.0, 200.0])
    arrivals = (Poisson if rng.random() < 0.7 else Constant)(rate_per_s)
    rises = ((step + 1) / STEPS for step in range(STEPS))
    scenario = tuple(RateAt(start_s + lasts_s * part, {"readings": 1 + (times - 1) * part}) for part in rises)
    control = Control(relief=Relief() if relieves else None)
    return world(control, scenario, costs, arrivals, promise_ms, state_kb), start_s + lasts_s + 120.0


def pairs(starts_s: tuple[float, ...], relieves: bool = True) -> tuple[Deployment, Placement]:
    """As many gateways as moments, each used by half with a district of its own; each one's source triples then."""
    sites: list[Site] = []
    links, sources, queries, homes = [], [], [], {}
    for at in range(len(starts_s)):
        gate, district, source = f"gw-{at}", f"district-{at}", f"readings-{at}"
        sites += [Site(gate), Site(district, 2.0)]
        links += [Link(gate, district, 10.0), *([Link("district-0", district, 10.0)] if at else [])]
        sources.append(Source(source, gate, "rate", (Column("n"),), arrivals=Poisson(200.0)))
        operators = (
            Operator("valid", (source,), sql="x", cost_ms=Cost("constant", (0.5,)), selectivity=1.0),
            Operator("hourly", ("valid",), sql="x", cost_ms=Cost("constant", (2.0,)), selectivity=0.5, state_kb=200.0),
        )
        sink = Sink("hourly", "console", site=district)
        queries.append(Query(f"q{at}", operators, (sink,), Promise(latency_ms=5000.0)))
        homes |= {f"q{at}.valid": gate, f"q{at}.hourly": gate}
    control = Control(relief=Relief() if relieves else None)
    scenario = tuple(RateAt(start_s, {f"readings-{at}": 3.0}) for at, start_s in enumerate(starts_s))
    return Deployment(
        tuple(sites), tuple(sources), tuple(queries), tuple(links), control, scenario=scenario
    ), Placement(homes)  # fmt: skip
