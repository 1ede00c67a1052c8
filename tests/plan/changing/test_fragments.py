"""A placement cut into fragments: fused on one site, at most one stateful operator each."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, placed, query, source, windowed
from weft.model import Deployment, Placement, Query, Sink, Watermark
from weft.plan.changing.fragments import Fragment, cut
from weft.plan.dataflow.event_times import passes_by_sql
from weft.spec import is_stateful


def cut_up(whole: Deployment, placement: Placement) -> dict[str, Fragment]:
    pieces = cut(whole, placement, lambda query, operator: is_stateful(operator), passes_by_sql)
    assert len({piece.id for piece in pieces}) == len(pieces)
    return {piece.id: piece for piece in pieces}


def one_source(asked: Query, sites: str = "xyz") -> Deployment:
    return deployment(list(sites), [source("s", "x"), source("t", "y")], asked)


def test_a_chain_on_one_site_is_one_fragment_that_reads_its_source_and_writes_its_sink() -> None:
    found = cut_up(one_source(query(op("a", "s"), op("b", "a"))), placed(a="x", b="x"))
    assert list(found) == ["q.a"]
    only = found["q.a"]
    assert (only.trunk, only.branches, only.sources, only.channels) == (("a", "b"), (), ("s",), ())
    assert (only.outputs, only.sinks) == ((), ("q",))


def test_a_chain_over_two_sites_is_two_fragments_joined_by_a_channel() -> None:
    found = cut_up(one_source(query(op("a", "s"), op("b", "a"))), placed(a="x", b="y"))
    assert [(one.site, one.outputs, one.channels) for one in found.values()] == [
        ("x", ("q.a",), ()), ("y", (), ("q.a",)),
    ]  # fmt: skip


def test_a_source_that_is_read_elsewhere_is_relayed_once() -> None:
    both = [query(op("a", "s"), name=name) for name in ("q1", "q2")]
    whole = deployment(["x", "y"], [source("s", "x")], *both)
    found = cut_up(whole, Placement({"q1.a": "y", "q2.a": "y"}))
    assert list(found) == ["s", "q1.a", "q2.a"]
    assert (found["s"].site, found["s"].sources, found["s"].outputs) == ("x", ("s",), ("s",))
    assert found["s"].operators == ()


def test_a_sink_elsewhere_gets_a_fragment_of_its_own() -> None:
    found = cut_up(one_source(query(op("a", "s"), to="y")), placed(a="x"))
    assert found["q.a"].outputs == ("q.a",)
    assert (found["q.sink"].site, found["q.sink"].channels, found["q.sink"].sinks) == ("y", ("q.a",), ("q",))


def test_an_operator_called_sink_takes_no_ones_name() -> None:
    found = cut_up(one_source(query(op("sink", "s"), to="y")), placed(sink="x"))
    assert list(found) == ["q.sink", "q.sink_"]


def test_a_sink_on_a_source_needs_no_operator() -> None:
    asked = Query("q", (), (Sink("s", "csv", "o"),))
    found = cut_up(deployment(["x", "y"], [source("s", "x")], asked), Placement())
    assert [(one.id, one.site, one.sources, one.sinks) for one in found.values()] == [("q.sink", "x", ("s",), ("q",))]


def test_a_stateful_operator_names_its_fragment_and_takes_its_stateless_upstream_in() -> None:
    found = cut_up(one_source(query(op("a", "s"), windowed("w", "a"), op("b", "w"))), placed(a="x", w="x", b="x"))
    assert list(found) == ["q.w"]
    assert (found["q.w"].trunk, found["q.w"].stateful) == (("a", "w", "b"), "w")


def test_two_stateful_operators_never_share_a_fragment() -> None:
    second = windowed("w2", "t2", site=None)
    asked = query(windowed("w1", "s"), op("t2", "w1", sql="SELECT w.end ts, k, v FROM w1"), second)
    found = cut_up(one_source(asked), placed(w1="x", t2="x", w2="x"))
    assert {name: one.operators for name, one in found.items()} == {"q.w1": ("w1", "t2"), "q.w2": ("w2",)}


def test_a_fork_becomes_branches_of_one_fragment() -> None:
    sinks = (Sink("b", "csv", "o1"), Sink("c", "csv", "o2"))
    asked = query(op("a", "s"), op("b", "a"), op("c", "a"), sinks=sinks)
    only = cut_up(one_source(asked), placed(a="x", b="x", c="x"))["q.a"]
    assert (only.trunk, only.branches, only.sinks) == (("a",), ("b", "c"), ("q.1", "q.2"))


def test_a_stream_with_a_sink_of_its_own_is_not_hidden_in_the_trunk_of_a_stateful_one() -> None:
    asked = query(op("a", "s"), windowed("w", "a"), sinks=(Sink("a", "csv", "o1"), Sink("w", "csv", "o2")))
    found = cut_up(one_source(asked), placed(a="x", w="x"))
    assert {name: (one.outputs, one.sinks) for name, one in found.items()} == {
        "q.a": (("q.a",), ("q.1",)), "q.w": ((), ("q.2",)),
    }  # fmt: skip


def test_an_upstream_that_changes_the_event_time_stays_outside() -> None:
    moved = op("a", "s", sql="SELECT ts + INTERVAL 1 DAY AS ts, k, v FROM s")
    named = replace(windowed("w", "a"), watermarks=(Watermark("10 seconds", "ts"),))
    found = cut_up(one_source(query(moved, named)), placed(a="x", w="x"))
    assert [one.operators for one in found.values()] == [("a",), ("w",)]


def test_a_join_takes_in_both_sides_where_they_are_its_own() -> None:
    join = op("j", "a", "b", sql="SELECT a.k, b.v FROM a JOIN b ON a.k = b.k")
    found = cut_up(one_source(query(op("a", "s"), op("b", "t"), join)), placed(a="x", b="y", j="x"))
    assert {name: one.operators for name, one in found.items()} == {"q.b": ("b",), "q.j": ("a", "j")}
    assert (found["q.j"].sources, found["q.j"].channels, found["q.j"].stateful) == (("s",), ("q.b",), "j")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Deployment, Placement]:
    streams, operators = ["s", "t"], []
    for at in range(draw(st.integers(1, 6))):
        upstream = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2, unique=True))
        kind = draw(st.sampled_from(["map", "window"]))
        one = windowed(f"o{at}", upstream[0]) if kind == "window" else op(f"o{at}", *upstream)
        operators.append(one)
        streams.append(one.name)
    shown = draw(st.lists(st.sampled_from([one.name for one in operators]), min_size=1, unique=True))
    sinks = tuple(Sink(name, "csv", f"out/{name}", site=draw(st.sampled_from([None, "x", "y"]))) for name in shown)
    homes = {one.name: draw(st.sampled_from("xy")) for one in operators}
    return one_source(query(*operators, sinks=sinks)), placed(**homes)


@given(graphs())
def test_every_operator_runs_once_on_its_site_and_every_stream_that_is_read_is_written(
    drawn: tuple[Deployment, Placement],
) -> None:
    whole, placement = drawn
    asked = whole.queries[0]
    pieces = list(cut_up(whole, placement).values())
    assert sorted(name for one in pieces for name in one.operators) == sorted(one.name for one in asked.operators)
    written: set[str] = set()
    for one in pieces:
        assert all(placement.home(f"q.{name}") == one.site for name in one.operators)
        stateful = [name for name in one.operators if is_stateful(asked.operator(name))]
        assert stateful == ([one.stateful] if one.stateful else [])
        assert all(whole.source(name).site == one.site for name in one.sources)
        assert set(one.channels) <= written, "upstream first"
        assert not written & set(one.outputs), "one writer per stream"
        written |= set(one.outputs)
    assert sorted(name for one in pieces for name in one.sinks) == sorted(
        ["q"] if len(asked.sinks) == 1 else [f"q.{at + 1}" for at in range(len(asked.sinks))]
    )
