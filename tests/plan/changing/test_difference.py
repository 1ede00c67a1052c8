"""What a move changes: which fragments end and start, what must be drained, and what is refused."""

from __future__ import annotations

from weft.model import Column, Cost, Deployment, Link, Operator, Placement, Poisson, Query, Sink, Site, Source
from weft.plan.changing.difference import recut, why_impossible
from weft.plan.changing.fragments import cut
from weft.plan.dataflow.event_times import passes_by_sql
from weft.spec import is_stateful

KEEP = Operator("keep", ("left",), sql="SELECT * FROM left WHERE v > 0", cost_ms=Cost("constant", (5.0,)))
SHAPE = Operator("shape", ("keep",), sql="SELECT v FROM keep")
SMALL = Operator("small", ("keep",), sql="SELECT v FROM keep WHERE v < 5")


def deployment(rate_per_s: float = 10.0) -> Deployment:
    source = Source("left", "a", "rate", (Column("v", "BIGINT"),), arrivals=Poisson(rate_per_s))
    query = Query("q", (KEEP, SHAPE, SMALL), (Sink("shape", "parquet", "o1"), Sink("small", "parquet", "o2")))
    sites = (Site("a"), Site("b"), Site("c"), Site("far"))
    return Deployment(sites, (source,), (query,), (Link("a", "b"), Link("b", "c"), Link("a", "c")))


def placed(**homes: str) -> Placement:
    placement = Placement()
    for name, site in homes.items():
        placement = placement.put(f"q.{name}", site)
    return placement


def change(before: Placement, after: Placement):  # type: ignore[no-untyped-def]
    found = deployment()
    old = cut(found, before, lambda _, operator: is_stateful(operator), passes_by_sql)
    return recut(found, old, after, lambda _, operator: is_stateful(operator), passes_by_sql)


def test_a_move_leaves_other_fragments_alone() -> None:
    found = change(placed(keep="a", shape="b", small="c"), placed(keep="a", shape="b", small="b"))
    assert [fragment.id for fragment, _ in found.ends] == ["q.small"]
    assert [(fragment.id, fragment.site) for fragment in found.starts] == [("q.small", "b")]


def test_an_operator_that_leaves_a_fragment_makes_two_of_it() -> None:
    found = change(placed(keep="a", shape="a", small="a"), placed(keep="a", shape="b", small="a"))
    assert [(fragment.id, drains) for fragment, drains in found.ends] == [("q.keep", ())]
    assert {(fragment.id, fragment.site) for fragment in found.starts} == {("q.keep", "a"), ("q.shape", "b")}


def test_a_reader_that_joins_a_fragment_drains_its_channel_even_where_others_still_read_it() -> None:
    found = change(placed(keep="c", shape="a", small="b"), placed(keep="b", shape="a", small="b"))
    assert [(fragment.id, drains) for fragment, drains in found.ends] == [("q.keep", ()), ("q.small", ("q.keep",))]
    assert [(fragment.id, fragment.operators) for fragment in found.starts] == [("q.keep", ("keep", "small"))]
    assert found.starts[0].outputs == ("q.keep",)


def test_whoever_leaves_the_site_of_its_source_takes_a_relay_along_and_keeps_it() -> None:
    before, away = placed(keep="a", shape="b", small="b"), placed(keep="b", shape="b", small="b")
    found = change(before, away)
    assert "left@q.keep" in [fragment.id for fragment in found.starts]
    back = recut(deployment(), found.fragments, before, lambda _, operator: is_stateful(operator), passes_by_sql)
    keep = next(fragment for fragment in back.fragments if "keep" in fragment.operators)
    assert keep.channels == ("left@q.keep",)
    assert keep.sources == ()


def test_a_move_without_a_way_or_room_is_refused_with_the_reason() -> None:
    placement = placed(keep="a", shape="a", small="a")
    assert why_impossible(deployment(), placement, "q", "keep", "b") is None
    no_way = why_impossible(deployment(), placement, "q", "keep", "far")
    assert no_way == "it reads left: no path of links leads from a to far"
    no_room = why_impossible(deployment(rate_per_s=300.0), placement, "q", "keep", "b")
    assert no_room is not None
    assert no_room.startswith("b has no room: 0 ms/s planned there and 1500 ms/s more")
