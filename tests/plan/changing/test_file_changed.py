"""Which changes of a file a stopped run goes on with: queries come and go, pins and capacities change."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.changing.test_next_plan import HOMES, begun, rules, whole
from tests.plan.plan_builders import op, query
from weft.model import Control, Deployment, Link, Placement, Share, Site
from weft.model.wishes import AddQuery
from weft.plan.changing.file_changed import plan_for_file
from weft.plan.changing.running_plan import Impossible, RunningPlan

PLANNED = Placement({**HOMES, "t.d": "z"}, reasons={"t.d": "nearest"})


def after(given: Deployment, now: RunningPlan | None = None):  # type: ignore[no-untyped-def]
    return plan_for_file(now or begun(whole()), given, PLANNED, rules(given))


def test_the_same_file_changes_nothing() -> None:
    now = begun(whole())
    plan, wishes = after(whole(), now)
    assert (plan, wishes) == (now, ())


def test_a_query_that_is_new_is_planned_and_one_that_is_gone_is_no_more() -> None:
    given = whole()
    plan, wishes = after(replace(given, queries=(given.queries[0], query(op("d", "s"), name="t"))))
    assert wishes == ()
    assert plan.number == 1
    assert plan.placement.homes == {"q.a": "x", "q.b": "y", "t.d": "z"}
    assert plan.placement.reasons["t.d"] == "nearest"
    assert {one.query for one in plan.fragments if one.operators} == {"q", "t"}


def test_an_operator_that_the_file_pins_elsewhere_moves_once_all_runs() -> None:
    given = whole()
    pinned = query(op("a", "s"), op("b", "a", site="z"), name="q")
    plan, wishes = after(replace(given, queries=(pinned, given.queries[1])))
    assert plan.placement.home("q.b") == "y"
    assert [wish.homes for wish in wishes] == [{"q.b": "z"}]


def test_a_smaller_capacity_is_gone_on_with() -> None:
    plan, wishes = after(replace(whole(), sites=tuple(Site(site.name, capacity=0.01) for site in whole().sites)))
    assert (plan.number, wishes) == (0, ())


def test_a_site_that_is_gone_though_operators_run_there_is_refused() -> None:
    given = whole()
    found = after(replace(given, sites=given.sites[:1] + given.sites[2:], links=(Link("x", "z", 10.0),)))
    assert isinstance(found, Impossible)
    assert found.why == "q.b runs at y, which is gone from the file: move it first"


def test_a_query_that_reads_what_stayed_inside_a_fragment_is_added_once_all_runs() -> None:
    given = whole()
    inside = begun(given, {"q.a": "x", "q.b": "x", "r.c": "y"})
    reader = query(op("d", "q.a"), name="t")
    plan, wishes = after(replace(given, queries=(*given.queries, reader)), inside)
    assert (plan.number, plan.fragments) == (0, inside.fragments)
    assert [wish.homes for wish in wishes if isinstance(wish, AddQuery)] == [{"t.d": "z"}]


def test_a_statement_that_asks_for_what_was_not_sent_is_refused() -> None:
    def asking(sql: str) -> Deployment:
        given = replace(whole(), control=Control(share=Share()))
        asked = query(op("a", "s"), op("b", "a", sql=sql))
        return replace(given, queries=(asked, *given.queries[1:]))

    now = begun(asking("SELECT k FROM a WHERE v > 1"))
    assert [one.empty for one in now.fragments if "q.a" in one.outputs] == [(("q.a", "ts"),)]
    plan, wishes = after(asking("SELECT k FROM a WHERE v > 2"), now)
    assert (plan.fragments, wishes) == (now.fragments, ())
    assert after(asking("SELECT k FROM a WHERE ts > '2026-01-01'"), now) == Impossible(
        "`ts` of q.a was not sent so far, as nobody asked for it"
    )
