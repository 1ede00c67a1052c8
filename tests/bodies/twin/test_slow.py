"""The compiled twin tells the same story as a slow and obvious one, on random small deployments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bodies.twin.slow import SlowPlane
from tests.bodies.twin.twin_worlds import source, step
from weft.bodies.twin.control.steering import Steering, interrupts
from weft.bodies.twin.loop import columns as c
from weft.bodies.twin.run import prepared
from weft.bodies.twin.setup.options import Options
from weft.model import (
    Batch,
    Constant,
    Cost,
    CrashAt,
    Deployment,
    JoinWindow,
    Link,
    MoveAt,
    OnOff,
    Operator,
    PartitionAt,
    Placement,
    Poisson,
    Promise,
    Query,
    Queue,
    RateAt,
    RestartAt,
    Sine,
    Sink,
    Site,
    Trace,
    Walk,
    Watermark,
    dataflow,
)

SECONDS = 2.0
NS = 1_000_000_000

arrivals = st.one_of(
    st.sampled_from([20.0, 50.0, 100.0]).map(Constant),
    st.sampled_from([20.0, 80.0]).map(Poisson),
    st.just(OnOff(60.0, period_s=0.2, period_s_sd=0.01)),
    st.just(Trace((100.0, 0.0, 40.0), 0.3)),
    st.just(Sine(50.0, 1.0, 0.7)),
    st.just(Walk(50.0, 30.0, 0.1)),
)
costs = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 10.0]).map(lambda ms: Cost("constant", (ms,))),
    st.sampled_from([1.0, 8.0]).map(lambda ms: Cost("exponential", (ms,))),
    st.just(Cost("uniform", (1.0, 5.0))),
    st.just(Cost("normal", (2.0, 1.0))),
    st.just(Cost("empirical", (0.0, 1.0, 20.0))),
)
queues = st.one_of(
    st.none(), st.builds(Queue, st.integers(0, 3), st.sampled_from(["drop", "block"])), st.just(Queue(1, "block"))
)
windows = st.sampled_from([None, None, JoinWindow(records=3), JoinWindow(seconds=0.1), JoinWindow(records=1)])


@st.composite
def operators(draw: Any, name: str, streams: list[str]) -> Operator:
    inputs = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2))
    window = draw(windows)
    late = draw(st.sampled_from([(), (Watermark("50 milliseconds"),)]))
    return step(
        name,
        *inputs,
        cost=draw(costs),
        selectivity=draw(st.sampled_from([0.0, 0.3, 1.0, 1.0, 1.0, 2.5] if window is None else [0.02, 0.3])),
        queue=draw(queues),
        window=window,
        watermarks=late if window is not None and window.seconds else (),
    )


@st.composite
def worlds(draw: Any) -> tuple[Deployment, Placement]:
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    batches = st.sampled_from([None, None, None, None, Batch(100.0, 5.0), Batch(0.0, 1.0), Batch(30.0)])
    sites = tuple(
        Site(name, capacity=draw(st.sampled_from([0.5, 1.0, 1.0, 2.0])), batch=draw(batches)) for name in names
    )
    links = tuple(
        Link(x, y, draw(st.sampled_from([0.0, 1.0, 2.0, 30.0])), draw(st.sampled_from([None, None, 100.0, 20.0])))
        for i, x in enumerate(names)
        for y in names[i + 1 :]
        if draw(st.booleans()) or i + 1 == names.index(y)
    )
    sources = tuple(
        source(f"s{k}", draw(st.sampled_from(names)), draw(arrivals)) for k in range(draw(st.integers(1, 2)))
    )
    queries, homes = [], {}
    for q in range(draw(st.integers(1, 2))):
        made: list[Operator] = []
        for k in range(draw(st.integers(1, 4))):
            others = [f"{other.name}.{one.name}" for other in queries for one in other.operators]
            streams = [*(one.name for one in sources), *(one.name for one in made), *others]
            made.append(draw(operators(f"o{k}", streams)))
            homes[f"q{q}.o{k}"] = draw(st.sampled_from(names))
        sinks = tuple(
            Sink(one.name, "console", site=draw(st.sampled_from([None, *names])))
            for one in made
            if one is made[-1] or draw(st.booleans())
        )
        promise = draw(st.sampled_from([Promise(), Promise(latency_ms=20.0), Promise(latency_ms=50.0, loss=0.2)]))
        queries.append(Query(f"q{q}", tuple(made), sinks, promise))
    happens = happenings(names, list(homes))
    scenario = tuple(draw(st.lists(happens, max_size=draw(st.sampled_from([0, 4])))))
    # In any order in the file: who reads another may stand before it.
    order = draw(st.permutations(queries))
    return Deployment(sites, sources, tuple(order), links, scenario=scenario), Placement(homes)


def happenings(names: list[str], running: list[str]) -> st.SearchStrategy[Any]:
    at = st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0, 1.37])
    site = st.sampled_from(names)
    kinds = [
        st.builds(MoveAt, at, st.sampled_from(running), site),
        st.builds(CrashAt, at, site),
        st.builds(RestartAt, at, site),
        st.builds(RateAt, at, st.just({"s0": 3.0})),
    ]
    if len(names) > 1:
        kinds.append(st.builds(PartitionAt, at, st.just((names[0], names[-1])), st.sampled_from([0.1, 0.4])))
    return st.one_of(kinds)


def scaled(deployment: Deployment) -> tuple[Any, ...]:
    """Instances of the first operator that nothing can hold back come and go."""
    query = deployment.queries[0]
    names = [site.name for site in deployment.sites]
    for operator in query.operators:
        target = f"{query.name}.{operator.name}"
        queues = [reader.operator.queue for reader in dataflow(deployment).readers(target)]
        if not any(queue is not None and queue.when_full == "block" for queue in queues):
            come = [(0.2, "start", target, names[-1]), (0.6, "start", target, names[0])]
            return (*come, (1.1, "stop", target, names[-1]), (1.5, "stop", target, names[0]))
    return ()


def same_story(
    world: Any, seed: int, discipline: str, contributing: bool, slower: bool, drop_late: bool, scales: bool
) -> None:
    deployment, placement = world
    instances = scaled(deployment) if scales else ()
    capacities = ((0.4, "a", 0.3), (0.9, "a", 2.0)) if slower else ()
    steady = not slower and not instances and not interrupts(deployment)
    options = Options(discipline, contributing, steady=steady, drop_late=drop_late)
    fast = prepared(deployment, placement, SECONDS, seed, options)
    fast.measures.records = []
    fast_steering = Steering(deployment, placement, fast, capacities, instances=instances)
    fast_steering.run(round(SECONDS * NS))
    fast.close()
    slow = SlowPlane(deployment, placement, SECONDS, seed, discipline, contributing, drop_late)
    slow_steering = Steering(deployment, placement, slow, capacities, instances=instances)
    slow_steering.run(round(SECONDS * NS))
    slow.settle()

    log = [
        (int(s), int(t), int(latency)) for chunk in fast.measures.records for s, t, latency in zip(*chunk, strict=True)
    ]
    assert sorted(log) == sorted(slow.log)
    for key, o in fast.layout.operators.items():
        maker = slow.operators[key]
        counted = [fast.get(o, column) for column in (c.BEGUN, c.ENDED, c.NUMBER)]
        assert counted == [maker.begun, maker.ended, maker.numbers], key
        totals = {"arrived": c.ARRIVED, "dropped": c.DROPPED, "waits": c.WAITS}
        assert [fast.total(key, column) for column in totals.values()] == [slow.total(key, name) for name in totals]
    for name, s in fast.layout.sites.items():
        place = slow.places[name]
        assert (fast.get(s, c.BUSY), fast.get(s, c.WAITING_MAX)) == (place.busy, place.waiting_max), name
    for pair, row in fast.layout.links.items():
        if pair in slow.links:
            assert fast.get(row, c.SENT) == slow.links[pair].sent
    assert fast.get(c.LOST, 0) == slow.lost
    assert fast_steering.wishing.moves == slow_steering.wishing.moves
    assert fast_steering.carrier.story == slow_steering.carrier.story


VARIANTS = {
    "seed": st.integers(0, 5),
    "discipline": st.sampled_from(["fcfs", "fcfs", "deadline", "slack"]),
    "contributing": st.booleans(),
    "slower": st.booleans(),
    "scales": st.sampled_from([False, False, True]),
    "drop_late": st.sampled_from([False, False, True]),
}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(world=worlds(), **VARIANTS)
def test_a_slow_and_obvious_twin_tells_the_same_story(world: Any, **variant: Any) -> None:
    same_story(world, **variant)


def scaling_world(
    homes: dict[str, str], *operators: Operator, rate: float = 100.0, at: str = "a", batch: Batch | None = None,
    capacity: float = 1.0, delay_ms: float = 1.0, kbps: float | None = None,
) -> tuple[Deployment, Placement]:  # fmt: skip
    """One query of one source at sites a and b; instances of its first operator come and go."""
    sites = (Site("a", capacity=capacity, batch=batch), Site("b"))
    query = Query("q0", operators, (Sink(operators[0].name, "console"),))
    placement = Placement({f"q0.{name}": home for name, home in homes.items()})
    links = (Link("a", "b", delay_ms, kbps),)
    return Deployment(sites, (source("s0", at, Constant(rate)),), (query,), links), placement


RARE = {
    "both copies of a record find their instance gone and go on to one site": scaling_world(
        {"o0": "a"}, step("o0", "s0", "s0", cost=1.0, selectivity=0.3, window=JoinWindow(records=3)), delay_ms=30.0
    ),
    "the 110th accepted is handed on to where record 110 is sent": scaling_world(
        {"o0": "a"}, step("o0", "s0", "s0", cost=100.0), at="b", capacity=50.0
    ),
    "what waits for a batch and for the next is handed on to a short queue": scaling_world(
        {"o0": "a", "o1": "a"},
        step("o1", "s0", "o0", cost=5.0, queue=Queue(10, "drop")),
        step("o0", "s0", cost=2.0),
        batch=Batch(100.0, 5.0),
    ),
    "what left a batch comes back over a slow link while its maker serves another": scaling_world(
        {"o0": "a", "o1": "b"},
        step("o1", "o0", cost=1.0),
        step("o0", "s0", cost=8.0),
        rate=50.0,
        batch=Batch(100.0, 5.0),
        delay_ms=300.0,
        kbps=30.0,
    ),
}


@pytest.mark.parametrize("name", RARE)
def test_a_slow_and_obvious_twin_tells_the_same_rare_story(name: str) -> None:
    same_story(RARE[name], 0, "fcfs", False, False, False, True)


@pytest.mark.long
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(world=worlds(), **VARIANTS)
def test_a_slow_and_obvious_twin_tells_the_same_story_thousands_of_times(world: Any, **variant: Any) -> None:
    same_story(world, **variant)
