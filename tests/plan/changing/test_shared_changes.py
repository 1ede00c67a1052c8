"""Changes of a plan in which queries share: who leaves takes nothing from others, and nobody is cut anew by it."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.changing.test_next_plan import begun, granted, rules, why_not
from tests.plan.dataflow.test_sharing import first, second, streams, two
from tests.plan.plan_builders import op, query
from weft.model import Placement
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery
from weft.plan.changing.difference import difference
from weft.plan.changing.file_changed import plan_for_file
from weft.plan.changing.running_plan import RunningPlan
from weft.plan.dataflow.sharing import made_for_others, resumed, with_sharing

HOMES = {"q.valid": "x", "q.sums": "x", "r.high": "y"}


def running() -> RunningPlan:
    return begun(with_sharing(two(first(), second())), HOMES)


def test_a_shared_operator_is_a_fragment_that_both_queries_read() -> None:
    found = {one.id: (one.channels, one.outputs, one.sinks) for one in running().fragments}
    assert found == {
        "q.valid": ((), ("q.valid",), ()),
        "q.sums": (("q.valid",), (), ("q",)),
        "r.high": (("q.valid",), (), ("r",)),
    }


def test_the_first_query_leaves_and_only_what_was_its_own_ends() -> None:
    now = running()
    then = granted(now, RemoveQuery("q"))
    assert set(then.placement.homes) == {"q.valid", "r.high"}
    change = difference(now, then)
    assert [old.id for old, _ in change.ends] == ["q.sums"]
    assert change.starts == ()
    last = granted(then, RemoveQuery("r"))
    assert (last.fragments, dict(last.placement.homes)) == ((), {})


def test_the_other_leaves_and_the_first_goes_on_as_it_is_cut() -> None:
    now = running()
    then = granted(now, RemoveQuery("r"))
    change = difference(now, then)
    assert [old.id for old, _ in change.ends] == ["r.high"]
    assert change.starts == ()


def test_a_query_of_the_old_name_waits_until_nobody_uses_what_is_left() -> None:
    then = granted(running(), RemoveQuery("q"))
    again = AddQuery((first(),), {"q.valid": "x", "q.sums": "x"})
    assert why_not(then, again) == ("query q was removed, and others still use q.valid: give the new one another name")
    assert granted(granted(then, RemoveQuery("r")), again)


def test_who_reads_a_stream_by_name_still_keeps_its_query_from_leaving() -> None:
    named = query(op("d", "q.sums", sql="SELECT k FROM `q.sums`"), name="t")
    now = begun(with_sharing(two(first(), second(), named)), {**HOMES, "t.d": "y"})
    assert why_not(now, RemoveQuery("q")) == "t.d reads q.sums: remove t first"


def test_an_operator_that_is_made_once_moves_by_either_name() -> None:
    then = granted(running(), MoveTo({"r.good": "y"}))
    assert then.placement.home("q.valid") == "y"


def test_a_stopped_run_goes_on_without_the_first_query_and_what_is_left_is_not_touched() -> None:
    now = running()
    assert now.deployment.sharing is not None
    held = (now.deployment.sharing.stands, made_for_others(now.deployment))
    file = resumed(two(second()), {"q", "r"}, *held)
    plan, wishes = plan_for_file(now, file, Placement(HOMES), rules(file))  # type: ignore[misc]
    assert (plan.number, wishes) == (1, ())
    assert plan.fragments == tuple(one for one in now.fragments if one.id != "q.sums")
    assert set(plan.placement.homes) == {"q.valid", "r.high"}
    # And again, and with a third query that comes: it shares with nobody that runs.
    third = replace(second(), name="t")
    more = resumed(two(second(), third), {"q", "r"}, *held)
    assert set(streams(more)) == {"q.valid", "r.high", "t.good", "t.high"}
    planned = Placement({**HOMES, "t.good": "x", "t.high": "x"}, reasons={})
    after, wishes = plan_for_file(plan, more, planned, rules(more))  # type: ignore[misc]
    assert wishes == ()
    assert {"t.good", "t.high"} <= set(after.placement.homes)
    assert set(plan.fragments) < set(after.fragments)
