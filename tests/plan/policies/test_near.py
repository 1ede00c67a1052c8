"""Policy `near`: close to the inputs, within capacity, pins, links and the tree rule."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Deployment, Link, Placement, Site
from weft.plan import NoPlacement, after_steps, near
from weft.plan.network.paths import Paths


def place(whole: Deployment) -> Placement:
    return near(whole, None, Random(0), after_steps(1))


def homes(whole: Deployment) -> dict[str, str]:
    return {stream.partition(".")[2]: home for stream, home in place(whole).homes.items()}


def test_an_operator_runs_beside_its_input() -> None:
    whole = deployment(["x", "y"], [source("s", "y")], query(op("a", "s"), op("b", "a")))
    assert homes(whole) == {"a": "y", "b": "y"}
    assert place(whole).reasons["q.a"] == "beside its input s"


def test_a_pin_holds_even_where_there_is_no_room() -> None:
    small = Site("x", capacity=0.01)
    whole = deployment([small, "y"], [source("s", "y")], query(op("a", "s", site="x")))
    assert homes(whole) == {"a": "x"}
    assert place(whole).reasons["q.a"] == "pinned"


def test_an_operator_goes_on_to_the_nearest_site_with_room() -> None:
    # 100 records/s of 4 ms ask for 0.4 of a site of capacity 1; the quota of y leaves 0.5.
    sites = [Site("y", quota=0.5), Site("near"), Site("far")]
    whole = deployment(sites, [source("s", "y")], query(op("a", "s", cost_ms=4.0), op("b", "a", cost_ms=4.0)))
    assert homes(whole) == {"a": "y", "b": "near"}
    assert place(whole).reasons["q.b"] == "nearest site with room that all of a can reach"


def test_capacity_halves_the_load_of_a_site() -> None:
    both = query(op("a", "s", cost_ms=8.0), op("b", "a", cost_ms=8.0))
    assert homes(deployment([Site("y", capacity=2.0), "z"], [source("s", "y")], both)) == {"a": "y", "b": "y"}
    assert homes(deployment([Site("y", capacity=1.0), "z"], [source("s", "y")], both)) == {"a": "y", "b": "z"}


def test_where_no_site_has_room_the_one_that_lacks_least_is_taken_and_said() -> None:
    sites = [Site("y", capacity=0.1), Site("z", capacity=0.2)]
    whole = deployment(sites, [source("s", "y")], query(op("a", "s", cost_ms=9.0)))
    assert homes(whole) == {"a": "z"}
    assert "no site has room" in place(whole).reasons["q.a"]


def test_the_heavier_input_draws_a_join() -> None:
    whole = deployment(
        ["x", "m", "y"], [source("s", "x", 10.0), source("t", "y", 1000.0)], query(op("j", "s", "t", cost_ms=0.01))
    )
    assert homes(whole) == {"j": "y"}


def test_queries_share_the_room_of_a_site() -> None:
    first, second = (query(op("a", "s", cost_ms=6.0), name=name) for name in ("q1", "q2"))
    found = place(deployment(["x", "y"], [source("s", "x")], first, second))
    assert [found.home("q1.a"), found.home("q2.a")] == ["x", "y"]


TREE: list[Any] = [Site("gw-1", parent="up"), Site("gw-2", parent="up"), Site("up")]
TREE_LINKS = (Link("gw-1", "up", 5), Link("gw-2", "up", 5), Link("gw-1", "gw-2", 1))


def test_in_a_tree_two_branches_meet_above() -> None:
    whole = deployment(
        TREE, [source("s", "gw-1"), source("t", "gw-2")], query(op("a", "s"), op("j", "a", "t")), links=TREE_LINKS
    )
    assert homes(whole) == {"a": "gw-1", "j": "up"}


def test_a_pin_below_its_input_is_refused_with_the_tree_rule() -> None:
    whole = deployment(TREE, [source("s", "up")], query(op("a", "s", site="gw-1")), links=TREE_LINKS)
    with pytest.raises(NoPlacement, match=r"operator q.a fits nowhere: gw-1: .*tree rule"):
        place(whole)


def test_a_sink_that_cannot_be_reached_is_refused() -> None:
    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s"), to="y"), links=())
    with pytest.raises(NoPlacement, match="its results are needed at y, but no path of links leads from x to y"):
        place(whole)


def test_an_operator_keeps_within_reach_of_pins_downstream() -> None:
    oneway = (Link("x", "y", 1, oneway=True), Link("x", "z", 50, oneway=True))
    pinned = query(op("a", "s", cost_ms=9.0), op("b", "a", cost_ms=9.0), op("c", "b", site="z", cost_ms=0.1))
    assert homes(deployment(["x", "y", "z"], [source("s", "x")], pinned, links=oneway)) == {
        "a": "x", "b": "z", "c": "z",
    }  # fmt: skip


def test_a_stream_stays_where_it_can_still_meet_an_operator_already_placed() -> None:
    # a must leave s's full site for m; then b on t's site could still meet s, but no longer a.
    sites = [Site("x", capacity=0.001), Site("m"), Site("y"), Site("w")]
    links = (Link("x", "m", 1, oneway=True), Link("x", "y", 1, oneway=True), Link("w", "y", 1, oneway=True),
             Link("w", "m", 9, oneway=True))  # fmt: skip
    asked = query(op("a", "s"), op("b", "t"), op("j", "a", "b"))
    whole = deployment(sites, [source("s", "x"), source("t", "w")], asked, links=links)
    found = homes(whole)
    ways = Paths(whole)
    assert ways.why_not(found["a"], found["j"]) is None
    assert ways.why_not(found["b"], found["j"]) is None


def test_same_input_same_placement() -> None:
    whole = deployment(["x", "y"], [source("s", "x")], query(op("a", "s")))
    assert near(whole, None, Random(1), after_steps(1)) == near(whole, Placement(), Random(2), after_steps(9))


@st.composite
def worlds(draw: st.DrawFn) -> Deployment:
    count = draw(st.integers(1, 5))
    names = [f"n{at}" for at in range(count)]
    parents = [draw(st.sampled_from([None, *names[at + 1 :]])) for at in range(count)]
    sites = [Site(name, capacity=draw(st.sampled_from([0.1, 1.0])), parent=parent)
             for name, parent in zip(names, parents, strict=True)]  # fmt: skip
    pairs = st.sampled_from([(a, b) for a in names for b in names if a != b] or [("n0", "n0")])
    links = tuple(Link(a, b, draw(st.integers(0, 9)), oneway=draw(st.booleans()))
                  for a, b in draw(st.lists(pairs, max_size=8)) if a != b)  # fmt: skip
    streams = ["s0", "s1"]
    operators = []
    for at in range(draw(st.integers(1, 5))):
        inputs = draw(st.lists(st.sampled_from(streams), min_size=1, max_size=2, unique=True))
        operators.append(op(f"o{at}", *inputs, site=draw(st.sampled_from([None, None, *names]))))
        streams.append(f"o{at}")
    sources = [source(name, draw(st.sampled_from(names))) for name in ("s0", "s1")]
    return deployment(sites, sources, query(*operators, to=draw(st.sampled_from([None, *names]))), links=links)


def keeps(whole: Deployment, found: dict[str, str]) -> bool:
    """Whether homes keep pins, links and the tree rule."""
    asked, ways = whole.queries[0], Paths(whole)
    sink = asked.sinks[0]
    streams = [
        (found.get(name) or whole.source(name).site, found[operator.name])
        for operator in asked.operators
        for name in operator.from_
    ]
    streams.append((found[sink.from_], sink.site or found[sink.from_]))
    pins = all(operator.site in (None, found[operator.name]) for operator in asked.operators)
    return pins and all(ways.why_not(start, end) is None for start, end in streams)


@given(worlds())
def test_a_placement_keeps_every_rule_and_is_refused_only_where_trying_all_finds_none(whole: Deployment) -> None:
    try:
        assert keeps(whole, homes(whole))
    except NoPlacement:
        names = [operator.name for operator in whole.queries[0].operators]
        every = itertools.product([site.name for site in whole.sites], repeat=len(names))
        assert not any(keeps(whole, dict(zip(names, sites, strict=True))) for sites in every)
