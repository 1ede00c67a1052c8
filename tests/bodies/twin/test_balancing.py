"""Balancing in the twin: what it moves and why, through crashes too; and a million steps in all weathers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bodies.twin.storm import Storm
from tests.bodies.twin.twin_worlds import placed, source, step
from weft.bodies.explorer.worlds.balancing_ground import Tree
from weft.bodies.twin import run
from weft.model import Balance, Constant, Control, CrashAt, Deployment, Link, Query, RestartAt, Sink, Site

TREE = "r a<r b<r c<a d<a e<b f<b"
CASE = Tree(
    TREE,
    "s@c! t@d! u@e! v@f! "
    + " ".join(
        f"x{leaf}{n}@{leaf}=9<{src} y{leaf}{n}@{up}=8<x{leaf}{n} z{leaf}{n}@r=6<y{leaf}{n}"
        for leaf, src, up in (("c", "s", "a"), ("d", "t", "a"), ("e", "u", "b"), ("f", "v", "b"))
        for n in range(3)
    )
    + " j@a=5<xc0,xd0 k@r=5<xc1,xf1 g@r=4<j,k",
)


def busy(rate_per_s: float = 100.0) -> Deployment:
    """A child at 70 %, of which 15 % can go to its parent; and a second child, nearly idle."""
    query = Query(
        "q",
        (step("one", "s", cost=4.0), step("two", "one", cost=1.5), step("three", "two", cost=1.5)),
        (Sink("three", "console", site="top"),),
    )
    return Deployment(
        (Site("top"), Site("left", parent="top"), Site("right", parent="top")),
        (source("s", "left", Constant(rate_per_s)),),
        (query,),
        (Link("left", "top", 5.0), Link("right", "top", 5.0)),
        Control(balance=Balance(low=0.05)),
    )


def everything_left(deployment: Deployment) -> dict[str, str]:
    return dict.fromkeys((f"q__{operator.name}" for operator in deployment.queries[0].operators), "left")


def test_an_overloaded_site_gives_and_the_move_says_why() -> None:
    world = busy()
    result = run(world, placed(world, **everything_left(world)), seconds=20, seed=1)
    (move,) = result.moves
    assert (move.operator, move.from_, move.to) == ("three", "left", "top")
    assert move.reason == "left was at 70 %, above 60 %"
    assert 5 < move.at_s < 6
    assert result.sites["top"]["utilisation"] > 0.1


def test_without_balance_nothing_moves() -> None:
    world = replace(busy(), control=Control())
    assert run(world, placed(world, **everything_left(world)), seconds=20, seed=1).moves == []


def test_memory_counts_where_it_is_asked_for() -> None:
    world = busy()
    sites = tuple(replace(site, memory_mb=100) for site in world.sites)
    (query,) = world.queries
    sizes = (50, 15, 5)
    operators = tuple(replace(one, state_kb=kb * 1024.0) for one, kb in zip(query.operators, sizes, strict=True))
    control = Control(balance=Balance(measure="memory", low=0.01))
    world = replace(world, sites=sites, queries=(replace(query, operators=operators),), control=control)
    moves = run(world, placed(world, **everything_left(world)), seconds=20, seed=1).moves
    assert [move.operator for move in moves] == ["three", "two"]
    assert "left was at 70 %" in moves[0].reason


def test_a_crash_of_the_taker_is_survived() -> None:
    """It dies with a handover under way to it, takes it back up as a stranger, and the giver offers anew."""
    world = replace(busy(), scenario=(CrashAt(at_s=5.012, crash="top"), RestartAt(at_s=7.0, restart="top")))
    result = run(world, placed(world, **everything_left(world)), seconds=60, seed=1)
    assert any("NotTaken" in line for line in result.story)
    assert [(move.operator, move.to) for move in result.moves] == [("three", "top")]
    assert result.queries["q"]["records_out"] > 0.9 * result.queries["q"]["records_in"]


def test_a_crash_while_an_operator_comes_is_survived() -> None:
    world = replace(busy(), scenario=(CrashAt(at_s=5.02, crash="top"), RestartAt(at_s=12.0, restart="top")))
    result = run(world, placed(world, **everything_left(world)), seconds=120, seed=1)
    assert [(move.operator, move.to) for move in result.moves] == [("three", "top")]
    assert result.queries["q"]["records_out"] > 0.9 * result.queries["q"]["records_in"]


def test_a_storm_of_losses_crashes_and_loads_leaves_every_operator_in_one_place() -> None:
    storm = Storm(CASE, seed=1)
    storm.run(5_000)
    assert storm.moves > 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_million_steps_in_ten_storms(seed: int) -> None:
    storm = Storm(CASE, seed)
    storm.run(100_000)
    assert storm.moves > 500
