"""What a move changes: which fragments end and start, what must be drained, and what is refused."""

from __future__ import annotations

from dataclasses import asdict, replace

import msgspec

from weft.model import Column, Cost, Deployment, Link, Operator, Placement, Poisson, Query, Sink, Site, Source
from weft.model.wishes import AddQuery, RemoveQuery, Replace
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import Fragment, cut, with_queries
from weft.plan.changing.next_plan import next_plan, why_impossible
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
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


def two_queries() -> Deployment:
    """`r` reads the stream that `q` keeps, beside q's own operators; written before it."""
    found = deployment()
    totals = Operator("totals", ("q.keep",), sql="SELECT v FROM `q.keep` AS keep WHERE v > 3")
    last = Operator("last", ("totals",), sql="SELECT v FROM totals")
    asked = Query("r", (totals, last), (Sink("last", "csv", "o3"),))
    return replace(found, queries=(asked, *found.queries))


def cut_of(placement: Placement) -> tuple[Fragment, ...]:
    return rules().cut(two_queries(), placement, {})


def together(site: str, **others: str) -> Placement:
    homes = {"q.keep": site, "q.shape": site, "q.small": site, "r.totals": site, "r.last": site}
    return Placement(homes | {name.replace("__", "."): home for name, home in others.items()})


def test_between_queries_there_is_always_a_channel() -> None:
    found = cut_of(together("a"))
    assert [(one.id, one.queries, one.operators) for one in found] == [
        ("q.keep", ("q",), ("keep", "shape", "small")), ("r.totals", ("r",), ("totals", "last")),
    ]  # fmt: skip
    assert [(one.outputs, one.channels, one.sinks) for one in found] == [
        (("q.keep",), (), ("q.1", "q.2")), ((), ("q.keep",), ("r",)),
    ]  # fmt: skip


def test_a_move_of_either_side_leaves_the_other_querys_fragments_alone() -> None:
    now = first_plan(two_queries(), together("a"), rules())
    for moved, stays in (("q__keep", "r.totals"), ("r__totals", "q.keep"), ("r__last", "q.keep")):
        then = after(now, together("a", **{moved: "b"}))
        found = difference(now, then)
        assert {old.query for old, _ in found.ends} == {moved[0]}
        assert stays in [one.id for one in then.fragments]
        assert stays not in [one.id for one in found.starts]
        assert all("q.keep" not in drains for _, drains in found.ends)


def refused(given: Deployment, placement: Placement, stream: str, to: str) -> str | None:
    moved = placement.put(stream, to)
    return why_impossible(given, moved, stream, to, Paths(given))


def test_a_move_must_leave_a_way_to_readers_of_other_queries() -> None:
    placement = together("a", r__totals="c", r__last="c")
    whole = replace(two_queries(), links=(Link("a", "b"), Link("a", "c", oneway=True), Link("a", "far")))
    assert refused(whole, placement, "q.shape", "b") is None
    told = refused(replace(whole, links=(*whole.links, Link("b", "far"))), placement, "q.keep", "c")
    assert told == "shape reads it: no path of links leads from c to a"
    alone = Placement({**placement.homes, "q.shape": "far", "q.small": "far", "r.totals": "c"})
    no_way = replace(whole, links=(Link("a", "c", oneway=True), Link("a", "far")))
    assert refused(no_way, alone, "r.totals", "b") == "it reads q.keep: no path of links leads from a to b"
    lone = replace(no_way, links=(Link("a", "c", oneway=True), Link("a", "far"), Link("b", "far"), Link("a", "b")))
    cut_off = replace(lone, links=tuple(one for one in lone.links if one.to != "c"))
    assert refused(cut_off, alone, "q.keep", "b") == "r.totals reads it: no path of links leads from b to c"


def test_a_journal_of_an_earlier_version_is_read() -> None:
    now = cut_of(together("a"))[1]
    plain = asdict(now)
    del plain["queries"]
    assert msgspec.convert(with_queries({**plain, "query": "r"}), Fragment) == now
    assert msgspec.convert(with_queries({**plain, "query": None}), Fragment).queries == ()
    assert msgspec.convert(with_queries(asdict(now)), Fragment) == now


def test_moves_of_both_at_once_end_upstream_first() -> None:
    now = first_plan(two_queries(), together("a"), rules())
    found = difference(now, after(now, together("b")))
    assert [old.id for old, _ in found.ends] == ["q.keep", "r.totals"]
    assert {(new.id, new.site) for new in found.starts} >= {("q.keep", "b"), ("r.totals", "b")}


def test_a_query_is_added_once_what_it_reads_is_there() -> None:
    reads, whole = two_queries().queries[0], deployment()
    now = first_plan(whole, placed(keep="a", shape="a", small="a"), rules())
    wish = AddQuery((reads,), {"r.totals": "b", "r.last": "b"})
    then = next_plan(now, wish, rules())
    assert isinstance(then, RunningPlan)
    # What it reads leaves its fragment from now on.
    assert {old.id for old in difference(now, then).olds} == {"q.keep"}
    other = replace(reads, operators=(replace(reads.operators[0], from_=("q.gone",)), reads.operators[1]))
    refused = next_plan(now, replace(wish, queries=(other,)), rules())
    assert refused == Impossible("r.totals reads q.gone, which is not there")
    assert next_plan(then, RemoveQuery("q"), rules()) == Impossible("r.totals reads q.keep: remove r first")


def test_a_query_that_comes_reads_its_source_whole_through_a_relay_of_its_own() -> None:
    before = placed(keep="b", shape="b", small="b")
    now = first_plan(deployment(), before, rules())
    assert "left" in [fragment.id for fragment in now.fragments], "a relay that has given away what it read"
    late = Query("late", (replace(KEEP, name="few"),), (Sink("few", "parquet", "o3"),))
    then = next_plan(now, AddQuery((late,), {"late.few": "b"}), rules())
    assert isinstance(then, RunningPlan)
    found = difference(now, then)
    assert not found.ends, "those who run go on untouched"
    assert [fragment.id for fragment in found.starts] == ["left@late.few", "late.few"]
    assert found.starts[1].channels == ("left@late.few",)
    # It stays so while others move, and where it was removed and comes again.
    gone = next_plan(then, RemoveQuery("late"), rules())
    assert isinstance(gone, RunningPlan)
    assert gone.fragments == now.fragments
    moved = after(then, then.placement.put("q.small", "c"))
    assert set(then.fragments) - set(moved.fragments) == {one for one in now.fragments if "small" in one.operators}
