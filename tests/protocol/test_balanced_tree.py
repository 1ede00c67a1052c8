"""What balancers of a deployment are told before records flow: who is above, what may move, what counts as load."""

from __future__ import annotations

from dataclasses import replace

from weft.model import Balance, Control, Cost, Deployment, MoveAt, Operator, Query, Sink, Site, Source
from weft.protocol.balancing import BalancedTree, asks_again
from weft.protocol.counting import came

HOMES = {"q.one": "left", "q.two": "left", "q.three": "top"}


def world(**changes: object) -> Deployment:
    operators = (
        Operator("one", ("s",), sql="SELECT 1", cost_ms=Cost("constant", (4.0,)), state_kb=512.4),
        Operator("two", ("one",), sql="SELECT 1"),
        Operator("three", ("two",), sql="SELECT 1", cost_ms=Cost("uniform", (1.0, 3.0))),
    )
    sites = (Site("top"), Site("left", 2.0, parent="top", memory_mb=10), Site("leaf", parent="left"), Site("alone"))
    query = Query("q", operators, (Sink("three", "console", site="top"),))
    made = Deployment(sites, (Source("s", "leaf", "rate", ()),), (query,), control=Control(balance=Balance()))
    return replace(made, **changes)  # type: ignore[arg-type]


def tree(balance: Balance | None = None, **changes: object) -> BalancedTree:
    return BalancedTree(balance or Balance(), world(**changes), HOMES)


def test_only_sites_of_a_tree_balance() -> None:
    made = tree()
    assert made.sites == ("leaf", "left", "top")
    assert (made.parent("left"), made.parent("top"), made.children("top")) == ("top", "", ("left",))


def test_a_site_knows_what_is_here_and_under_which_child_the_rest_lies() -> None:
    memory = tree().memory("top", lambda site: f"at {site}")
    assert sorted(memory.here) == ["q.three", "sink q 0"]
    assert memory.below == {"source s": "at left", "q.one": "at left", "q.two": "at left"}


def test_sources_sinks_and_what_is_pinned_shared_or_moved_by_the_scenario_stays() -> None:
    assert tree().streams.pinned == {"source s", "sink q 0"}
    moved = tree(scenario=(MoveAt(1.0, "q.one", "top"),))
    assert {"q.one", "q.two", "q.three"} <= moved.streams.pinned
    assert "q.two" in BalancedTree(Balance(), world(), HOMES, {"q.two"}).streams.pinned


def test_load_is_work_a_second_and_state() -> None:
    both = tree(Balance(measure="both", period_s=2.0))
    assert both.load("q.one", 100) == (200_000, 512)
    assert both.load("q.two", 100) == (5_000, 0), "what names no cost is taken to cost 0.1 ms"
    assert both.load("source s", 100) == (0, 0)
    assert both.limits("left").capacity == (2_000_000, 10_240)


def test_going_up_readers_go_first_and_going_down_they_go_last() -> None:
    made = tree()
    up, down = (made.in_order(("q.one", "q.two"), giver, to) for giver, to in (("left", "top"), ("top", "left")))
    assert down == ["q.one", "q.two"]
    assert up == ["q.two", "q.one"]


def test_a_move_that_failed_is_owed_while_its_balancer_holds_the_operator() -> None:
    assert asks_again("left", "top", "top")
    assert not asks_again("top", "top", "top")
    assert not asks_again("left", "left", "top")


def test_a_count_that_begins_anew_counts_from_nothing() -> None:
    assert (came(5, 12), came(12, 5)) == (7, 5)
