"""The graph of a whole deployment: names, order, readers, and what lies behind a query's results."""

from __future__ import annotations

from graphlib import CycleError

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Dataflow, Query, Sink, dataflow


def graph(*queries: Query) -> Dataflow:
    return dataflow(deployment(["x", "y", "z"], [source("s2", "x"), source("s3", "x"), source("s", "x")], *queries))


def streams(*queries: Query) -> list[str]:
    return [node.stream for node in graph(*queries).nodes]


def test_operators_stand_after_what_they_read_and_else_as_written() -> None:
    assert streams(query(op("a", "s"), op("b", "a"), op("c", "s"), op("d", "b", "c"))) == ["q.a", "q.b", "q.c", "q.d"]
    assert streams(query(op("d", "b", "c"), op("c", "s"), op("b", "a"), op("a", "s"))) == ["q.c", "q.a", "q.b", "q.d"]
    assert streams(query(op("b", "a"), op("a", "s"), name="p"), query(op("a", "s"))) == ["p.a", "p.b", "q.a"]


def test_queries_stand_after_the_operators_they_read_and_else_as_written() -> None:
    first, second = query(op("a", "q.b"), op("c", "s"), name="p"), query(op("b", "s"), op("d", "b"))
    assert streams(first, second) == ["p.c", "q.b", "p.a", "q.d"]


def test_a_cycle_has_no_order() -> None:
    with pytest.raises(CycleError):
        graph(query(op("a", "b"), op("b", "a")))
    with pytest.raises(CycleError):
        graph(query(op("a", "q.b"), name="p"), query(op("b", "p.a")))


def test_a_stream_is_named_by_what_made_it() -> None:
    flow = graph(query(op("a", "s")), query(op("a", "q.a"), name="p"))
    assert [flow.stream("q", "s"), flow.stream("q", "a"), flow.stream("p", "q.a")] == ["s", "q.a", "q.a"]
    assert (flow.makes("q.a"), flow.makes("s")) == (True, False)


def test_the_graph_of_a_deployment_is_made_once() -> None:
    whole = deployment(["x"], [source("s", "x")], query(op("a", "s")))
    assert dataflow(whole) is dataflow(whole)


def test_readers_are_of_all_queries() -> None:
    flow = graph(query(op("a", "s"), op("b", "a")), query(op("c", "q.a"), name="p"))
    assert [node.stream for node in flow.readers("q.a")] == ["q.b", "p.c"]
    assert [node.stream for node in flow.downstream("s")] == ["q.a", "q.b", "p.c"]


def test_behind_a_querys_results_lie_operators_and_sources_of_others() -> None:
    other = query(op("a", "s"), op("b", "a"), op("beside", "s2"))
    flow = graph(query(op("c", "q.a", "s3"), name="p"), other)
    assert [node.stream for node in flow.behind("p")] == ["q.a", "p.c"]
    assert [node.stream for node in flow.owned("p")] == ["p.c"]
    assert flow.sources_of("p") == ("s3", "s")
    assert (flow.reads_others("p"), flow.reads_others("q")) == (True, False)


def test_the_sources_of_a_query_include_those_that_only_a_sink_reads() -> None:
    both = query(op("a", "s"), sinks=(Sink("a", "csv", "o1"), Sink("s2", "csv", "o2")))
    assert graph(both).sources_of("q") == ("s2", "s")


def test_a_sink_stands_as_written_else_with_what_it_shows() -> None:
    sinks = (Sink("a", "csv", "o1", site="z"), Sink("a", "csv", "o2"), Sink("s", "csv", "o3"))
    flow = graph(query(op("a", "s"), sinks=sinks))
    assert [outlet.site(flow, {"q.a": "y"}) for outlet in flow.outlets] == ["z", "y", "x"]
    assert [outlet.name for outlet in flow.outlets] == ["q.1", "q.2", "q.3"]
    assert [outlet.name for outlet in graph(query(op("a", "s"))).outlets] == ["q"]
    assert [outlet.name for outlet in flow.shown("q.a")] == ["q.1", "q.2"]
