"""A query is up while every fragment behind its results is, since records began to flow."""

from __future__ import annotations

import pytest

from weft.bodies.live.uptime import Uptime, queries_down
from weft.model import Column, Deployment, Operator, Placement, Query, Sink, Site, Source
from weft.plan.changing.fragments import cut
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.judging.promises import judged, kept
from weft.spec import is_stateful


def deployment() -> Deployment:
    source = Source("s", "a", "csv", (Column("v", "BIGINT"),), "in")
    first = Query("first", (Operator("o", ("s",), sql="SELECT v FROM s"),), (Sink("o", "csv", "one"),))
    reads = Operator("p", ("first.o",), sql="SELECT v FROM first.o")
    alone = Query("alone", (Operator("r", ("s",), sql="SELECT v FROM s"),), (Sink("r", "csv", "three"),))
    queries = (first, Query("second", (reads,), (Sink("p", "csv", "two"),)), alone)
    return Deployment((Site("a"), Site("b"), Site("c")), (source,), queries)


def test_a_query_is_down_with_what_it_reads_and_with_its_sites() -> None:
    whole = deployment()
    placement = Placement({"first.o": "b", "second.p": "b", "alone.r": "c"})
    fragments = cut(whole, placement, lambda _, one: is_stateful(one), passes_by_sql)
    assert queries_down(whole, fragments, {"first.o"}, ()) == {"first", "second"}
    assert queries_down(whole, fragments, {"second.p"}, ()) == {"second"}
    assert queries_down(whole, fragments, (), {"c"}) == {"alone"}
    assert queries_down(whole, fragments, {"s"}, ()) == {"first", "second", "alone"}  # the relay of the source
    assert queries_down(whole, fragments, (), ()) == set()


def test_time_is_up_or_down_from_look_to_look() -> None:
    uptime = Uptime()
    assert uptime.share("q") is None
    for moment, down in ((10.0, ()), (12.0, ()), (14.0, ("q",)), (16.0, ("q",)), (20.0, ())):
        uptime.look(moment, down)
    assert uptime.share("q") == pytest.approx(0.6)
    assert uptime.share("other") == 1.0


@pytest.mark.parametrize(("promised", "held"), [(0.5, True), (0.9, False), (None, None)])
def test_availability_is_part_of_the_promise(promised: float | None, held: bool | None) -> None:
    from weft.model import Promise

    parts = judged(Promise(availability=promised), None, 0, 0, 0.6)
    assert parts["availability"] == {"promised": promised, "measured": 0.6, "kept": held}
    assert kept(parts) is held
