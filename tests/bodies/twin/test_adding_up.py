"""Every record of a source is a result, dropped or filtered, in any graph in which it has one way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bodies.twin.twin_worlds import pair, source, station, step
from weft.bodies.twin import run
from weft.model import (
    Constant,
    Cost,
    CrashAt,
    Deployment,
    MoveAt,
    Operator,
    Poisson,
    Promise,
    Query,
    Queue,
    RestartAt,
    Sink,
    Trace,
)

ENDS = Trace((60.0, 60.0, 0.0, 0.0, 0.0, 0.0), 2.0)  # nothing comes in the last two thirds: all is worked off


@st.composite
def graphs(draw: st.DrawFn) -> Deployment:
    """A tree of operators from some sources down to one sink, with filters, short queues, and what happens to them."""
    names = [f"s{at}" for at in range(draw(st.integers(1, 3)))]
    sites, links = pair(draw(st.sampled_from((0.0, 20.0))))
    sources = tuple(source(name, draw(st.sampled_from("ab")), ENDS) for name in names)
    loose, operators = list(names), list[Operator]()
    while len(loose) > 1 or len(operators) < draw(st.integers(1, 5)):
        inputs = range(draw(st.integers(1, min(2, len(loose)))))
        reads = [loose.pop(draw(st.integers(0, len(loose) - 1))) for _ in inputs]
        queue = draw(st.sampled_from((None, None, Queue(1), Queue(3))))
        cost = Cost("exponential", (draw(st.sampled_from((0.1, 3.0))),))
        share = draw(st.sampled_from((1.0, 0.5, 0.9, 0.0)))
        operators.append(step(f"o{len(operators)}", *reads, cost=cost, selectivity=share, queue=queue))
        loose.append(operators[-1].name)
    query = Query("q", tuple(operators), (Sink(loose[0], "console", site=draw(st.sampled_from("ab"))),))
    moved = f"q.{draw(st.sampled_from(operators)).name}"
    happens = draw(st.sampled_from(((), (MoveAt(1.0, moved, "b"),), (CrashAt(1.0, "b"), RestartAt(2.0, "b")))))
    return Deployment(sites, sources, (query,), links, scenario=happens)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 1000))
def test_records_in_are_out_dropped_or_filtered(deployment: Deployment, seed: int) -> None:
    result = run(deployment, seconds=12, seed=seed)
    found = result.queries["q"]
    assert found["records_in"] == found["records_out"] + found["dropped"] + found["filtered"]
    assert all(row["arrived"] == row["served"] + row["dropped"] for row in result.operator_rows)
    assert all(row["waiting"] == 0 for row in result.operator_rows)


def test_where_records_have_two_ways_nothing_is_said_of_the_query() -> None:
    sites, links = pair(0.0)
    operators = (step("a", "s", selectivity=0.5), step("b", "a"), step("c", "a"))
    query = Query("q", operators, (Sink("b", "console"), Sink("c", "console")))
    result = run(Deployment(sites, (source("s", "a", Poisson(50.0)),), (query,), links), seconds=4)
    assert result.queries["q"]["filtered"] is None


@pytest.mark.parametrize(("loss", "kept"), [(0.0, False), (0.9, True)])
def test_each_part_of_a_promise_is_told_with_its_figure(loss: float, kept: bool) -> None:
    deployment = station(Constant(100.0), Cost("constant", (20.0,)), Queue(1))
    query = Query("q", deployment.queries[0].operators, deployment.queries[0].sinks, Promise(60_000.0, loss=loss))
    found = run(Deployment(deployment.sites, deployment.sources, (query,)), seconds=5).queries["q"]
    assert found["promise"]["loss"]["measured"] == round(found["dropped"] / found["records_in"], 9)
    assert found["promise"]["latency_ms"]["kept"] is True
    assert found["promise_kept"] is kept


@pytest.mark.parametrize(("promised", "kept"), [(0.7, True), (0.9, False)])
def test_availability_is_the_share_of_time_in_which_no_site_of_the_query_was_lost(promised: float, kept: bool) -> None:
    sites, links = pair(1.0)
    query = Query("q", (step("o", "s", site="b"),), (Sink("o", "console"),), Promise(availability=promised))
    happens = (CrashAt(2.0, "b"), RestartAt(4.0, "b"))
    deployment = Deployment(sites, (source("s", "a", Poisson(50.0)),), (query,), links, scenario=happens)
    found = run(deployment, seconds=10).queries["q"]
    assert found["promise"]["availability"] == {"promised": promised, "measured": 0.8, "kept": kept}
    assert found["promise_kept"] is kept
