"""What a move changes: which fragments end and start, what must be drained, and what is refused."""

from __future__ import annotations

from weft.model import Column, Cost, Deployment, Link, Operator, Placement, Poisson, Query, Sink, Site, Source
from weft.model.wishes import Replace
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import cut
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Rules, RunningPlan, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.network.paths import Paths
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


def rules() -> Rules:
    def cut_up(found, placement, relays):  # type: ignore[no-untyped-def]
        return cut(found, placement, lambda _, operator: is_stateful(operator), passes_by_sql, relays)

    return Rules(cut_up, Paths(deployment()))


def after(now: RunningPlan, placement: Placement) -> RunningPlan:
    then = next_plan(now, Replace(placement), rules())
    assert isinstance(then, RunningPlan), then
    return then


def change(before: Placement, placement: Placement):  # type: ignore[no-untyped-def]
    now = first_plan(deployment(), before, rules())
    return difference(now, after(now, placement))


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
    moved = after(first_plan(deployment(), before, rules()), away)
    assert "left@q.keep" in [fragment.id for fragment in moved.fragments]
    back = after(moved, before)
    keep = next(fragment for fragment in back.fragments if "keep" in fragment.operators)
    assert keep.channels == ("left@q.keep",)
    assert keep.sources == ()


def test_nothing_ends_at_a_site_that_is_gone() -> None:
    now = first_plan(deployment(), placed(keep="a", shape="b", small="c"), rules())
    then = after(now, placed(keep="a", shape="a", small="c"))
    found = difference(now, then, gone="b")
    assert [old.id for old in found.lost] == ["q.shape"]
    assert "q.shape" not in [old.id for old, _ in found.ends]
    assert [old.id for old in found.olds][-1] == "q.shape"
