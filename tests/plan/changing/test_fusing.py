"""What several queries share is fused across them: who goes on from it without state is a branch where it is made."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Deployment, Placement, Sharing, dataflow
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import Fragment, cut, without_unused
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.dataflow.event_times import passes_by_sql

HERE = {"q.a": "x", "r.b": "x", "r.c": "x"}


def two(shared: bool = True) -> Deployment:
    """q makes `a` for both, and shows it; r goes on from it in two steps."""
    whole = deployment(
        ["x", "y"],
        [source("s", "x")],
        query(op("a", "s"), name="q"),
        query(op("b", "q.a"), op("c", "b"), name="r"),
    )
    return replace(whole, sharing=Sharing(whole.queries, {"r.was": "q.a"})) if shared else whole


def cut_up(whole: Deployment, homes: dict[str, str], stateful: str = "") -> tuple[Fragment, ...]:
    return cut(whole, Placement(homes), lambda asked, one: f"{asked.name}.{one.name}" == stateful, passes_by_sql)


def test_stateless_operators_that_read_a_shared_stream_are_branches_of_the_fragment_that_makes_it() -> None:
    (only,) = cut_up(two(), HERE)
    assert (only.id, only.queries, only.trunk, only.branches) == ("q.a", ("q", "r"), ("a",), ("r.b", "r.c"))
    assert (only.streams, only.channels, only.outputs, only.sinks) == (("q.a", "r.b", "r.c"), (), (), ("q", "r"))


def test_what_keeps_state_has_a_fragment_of_its_own_and_reads_a_channel() -> None:
    made, other = cut_up(two(), HERE, stateful="r.b")
    assert (made.outputs, other.channels, other.queries) == (("q.a",), ("q.a",), ("r",))


def test_a_stream_that_is_read_by_its_name_alone_is_not_fused_since_its_reader_may_have_come_later() -> None:
    assert [one.id for one in cut_up(two(shared=False), HERE)] == ["q.a", "r.b"]
    apart = replace(two(), sharing=Sharing(two().queries, {}))
    assert [one.id for one in cut_up(apart, HERE)] == ["q.a", "r.b"]


def test_a_branch_that_leaves_its_site_reads_a_channel_and_one_that_comes_back_drains_it() -> None:
    away = {**HERE, "r.b": "y", "r.c": "y"}
    plans = [RunningPlan(at, two(), Placement(homes), cut_up(two(), homes)) for at, homes in enumerate((HERE, away))]
    there = difference(plans[0], plans[1])
    assert [one.id for one in there.olds] == ["q.a"]
    assert [(one.id, one.site, one.channels) for one in there.starts] == [("q.a", "x", ()), ("r.b", "y", ("q.a",))]
    back = difference(plans[1], plans[0])
    assert [(old.id, drains) for old, drains in back.ends] == [("q.a", ()), ("r.b", ("q.a",))]


def test_a_query_that_leaves_takes_its_branches_and_sinks_out_of_the_fragment_of_another() -> None:
    whole = two()
    alone = replace(whole, queries=whole.queries[:1])
    (left,) = without_unused(cut_up(whole, HERE), dataflow(alone))
    assert (left.queries, left.branches, left.sinks) == (("q",), (), ("q",))
