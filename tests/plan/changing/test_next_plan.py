"""The one door: what follows from each kind of wish, and which cannot be, in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plan.plan_builders import deployment, op, query, source
from weft.model import Deployment, Link, Order, Placement, Sink, Site
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, Replace, ScaleTo, TakeOver, Wish
from weft.plan.changing.difference import difference
from weft.plan.changing.fragments import cut, each_alone
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Impossible, Rules, RunningPlan, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.network.paths import Paths
from weft.spec import is_stateful


def whole() -> Deployment:
    """Three sites in a row and one that no link reaches; `s` enters at x."""
    links = (Link("x", "y", 10.0), Link("y", "z", 10.0))
    one = query(op("a", "s"), op("b", "a"), name="q")
    two = query(op("c", "s"), name="r", sinks=(Sink("c", "parquet", "out/r", site="z"),))
    return deployment(["x", "y", "z", "far"], [source("s", "x", 100.0)], one, two, links=links)


HOMES = {"q.a": "x", "q.b": "y", "r.c": "y"}


def rules(given: Deployment, alone: bool = False) -> Rules:
    def cut_up(found, placement, relays):  # type: ignore[no-untyped-def]
        return cut(found, placement, lambda _, operator: is_stateful(operator), passes_by_sql, relays)

    return Rules(each_alone if alone else cut_up, Paths(given), instances=alone)


def begun(given: Deployment, homes: dict[str, str] = HOMES, alone: bool = False) -> RunningPlan:
    return first_plan(given, Placement(homes, reasons=dict.fromkeys(homes, "planned")), rules(given, alone))


def granted(now: RunningPlan, wish: Wish, alone: bool = False) -> RunningPlan:
    then = next_plan(now, wish, rules(now.deployment, alone))
    assert isinstance(then, RunningPlan), then
    return then


def why_not(now: RunningPlan, wish: Wish, alone: bool = False) -> str:
    then = next_plan(now, wish, rules(now.deployment, alone))
    assert isinstance(then, Impossible), then
    return then.why


def test_a_move_gives_the_next_number_a_reason_and_keeps_all_else() -> None:
    now = begun(whole())
    then = granted(now, MoveTo({"q.b": "z"}, "closer to its reader"))
    assert (now.number, then.number) == (0, 1)
    assert then.placement.homes == {**HOMES, "q.b": "z"}
    assert then.placement.reasons["q.b"] == "moved there from y by `weft move`: closer to its reader"
    assert then.placement.reasons["q.a"] == "planned"
    assert next(one for one in then.fragments if "b" in one.operators).site == "z"


def test_several_operators_move_in_one_change() -> None:
    now = begun(whole())
    then = granted(now, MoveTo({"q.a": "y", "q.b": "x", "r.c": "y"}))
    assert {stream: then.placement.home(stream) for stream in HOMES} == {"q.a": "y", "q.b": "x", "r.c": "y"}
    ended = [old.id for old in difference(now, then).olds]
    assert "r.c" not in ended
    assert {"q.a", "q.b"} <= set(ended)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("homes", "why"),
    [
        ({"p.a": "y"}, "there is no query p; there are: q, r"),
        ({"q.z": "y"}, "query q has no operator z; it has: a, b"),
        ({"q.a": "mars"}, "there is no site mars; there are: x, y, z, far"),
        ({"q.a": "x"}, "q.a runs at x already"),
        ({"q.a": "far"}, "it reads s: no path of links leads from x to far"),
        ({"q.b": "far"}, "it reads a: no path of links leads from x to far"),
        ({"r.c": "far"}, "it reads s: no path of links leads from x to far"),
        ({}, "no operator is named"),
        ({"q.a": "y", "q.b": "far"}, "q.a: b reads it: no path of links leads from y to far"),
    ],
)
def test_what_cannot_be_says_why_in_the_same_words_however_it_is_cut(
    homes: dict[str, str], why: str, alone: bool
) -> None:
    assert why_not(begun(whole(), alone=alone), MoveTo(homes), alone) == why


def test_a_full_site_is_told_with_its_figures_unless_room_was_measured() -> None:
    full = replace(whole(), sites=tuple(Site(site.name, capacity=0.15) for site in whole().sites))
    now = begun(full)
    assert why_not(now, MoveTo({"q.b": "x"})) == (
        "x has no room: 100 ms/s planned there and 100 ms/s more, of 150 ms/s (capacity 0.15 x quota 1)"
    )
    assert granted(now, MoveTo({"q.b": "x"}, by="balance")).placement.home("q.b") == "x"
    assert granted(now, MoveTo({"q.b": "x", "q.a": "z"})).placement.home("q.b") == "x"


def test_what_orders_an_operators_records_goes_along() -> None:
    one = query(op("a", "s"), op("b", "a", order=Order()), name="q")
    given = with_ordering(deployment(["x", "y"], [source("s", "x", 10.0)], one))
    homes = {"q.a": "x", "q.b_order": "x", "q.b": "x"}
    then = granted(begun(given, homes), MoveTo({"q.b": "y"}))
    assert then.placement.homes == {"q.a": "x", "q.b_order": "y", "q.b": "y"}
    assert then.placement.reasons["q.b_order"] == "goes with b"


def test_a_whole_placement_replaces_another_with_its_backups() -> None:
    now = begun(whole())
    better = Placement({**HOMES, "q.b": "x"}, backups={"q.b": ("z",)})
    then = granted(now, Replace(better))
    assert then.placement.home("q.b") == "x"
    assert then.placement.backups == {"q.b": ("z",)}
    assert why_not(now, Replace(Placement(HOMES))) == "everything is there already"
    assert why_not(now, Replace(Placement({"q.a": "x"}))) == "the placement puts q.b nowhere"


def test_backups_and_instances_of_others_outlive_a_move() -> None:
    now = begun(whole())
    now = replace(now, placement=replace(now.placement, backups={"q.a": ("z",), "q.b": ("z",)}))
    then = granted(now, MoveTo({"q.b": "z"}))
    assert then.placement.backups == {"q.a": ("z",), "q.b": ()}


def test_a_site_that_is_gone_is_taken_over_cut_as_it_was_and_nothing_ends() -> None:
    now = begun(whole(), {"q.a": "x", "q.b": "y", "r.c": "z"})
    then = granted(now, TakeOver("y", {"q.b": "x"}))
    assert then.placement.home("q.b") == "x"
    before, after = ([one for one in plan.fragments if "b" in one.operators] for plan in (now, then))
    assert [replace(one, site="x") for one in before] == after
    found = difference(now, then, gone="y")
    assert (found.ends, [old.id for old in found.lost], [new.site for new in found.starts]) == ((), ["q.b"], ["x"])


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (TakeOver("mars", {}), "there is no site mars; there are: x, y, z, far"),
        (TakeOver("y", {"q.b": "x"}), "r.c ran at y too, and has nowhere to go"),
        (TakeOver("y", {"q.b": "y", "r.c": "x"}), "q.b cannot be taken over at y: that site is gone"),
        (TakeOver("y", {"q.b": "x", "r.c": "x", "q.a": "z"}), "q.a runs at x, not at y"),
        (TakeOver("x", {"q.a": "y"}), "q.a reads s, which enters at x, which is gone"),
    ],
)
def test_what_cannot_be_taken_over_says_why(wish: TakeOver, why: str) -> None:
    assert why_not(begun(whole()), wish) == why


def test_operators_that_run_as_one_are_taken_over_together() -> None:
    now = begun(whole(), {"q.a": "y", "q.b": "y", "r.c": "z"})
    assert why_not(now, TakeOver("y", {"q.a": "x", "q.b": "z"})) == (
        "a and b run as one, and can only be taken over together"
    )
    assert granted(now, TakeOver("y", {"q.a": "z", "q.b": "z"})).placement.home("q.a") == "z"


def test_a_query_comes_and_goes_and_no_other_is_touched() -> None:
    now = begun(whole())
    new = query(op("d", "s"), name="t")
    then = granted(now, AddQuery((new,), {"t.d": "z"}))
    found = difference(now, then)
    assert found.olds == ()
    assert "t.d" in [one.id for one in found.starts]
    back = granted(then, RemoveQuery("t"))
    assert back.fragments == now.fragments
    assert back.placement.homes == HOMES
    assert why_not(now, RemoveQuery("t")) == "there is no query t; there are: q, r"
    assert why_not(now, AddQuery((new,), {"t.d": "far"})) == "it reads s: no path of links leads from x to far"
    assert why_not(then, AddQuery((new,), {"t.d": "z"})) == "there is a query t already"


def test_instances_are_for_bodies_that_have_them() -> None:
    wish = ScaleTo("q.b", ("y", "z"))
    assert why_not(begun(whole()), wish) == "q.b cannot run as several instances here yet"
    then = granted(begun(whole(), alone=True), wish, alone=True)
    assert then.placement.sites_of("q.b") == ("y", "z")
