"""One door: the twin and the live desk make the same changes, and refuse the same ones with the same words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.bodies import drawn_wishes
from tests.bodies.drawn_moves import NAMES, at_the_live_desk, drawn, in_the_twin, placement_of
from weft.bodies.live import journal
from weft.bodies.live.assembly import cutting
from weft.bodies.live.run import Options, Run
from weft.bodies.twin import run as twin
from weft.model import AddAt, CrashAt, RemoveAt, RestartAt
from weft.model.wishes import MoveTo, RemoveQuery, Replace, ScaleTo, TakeOver
from weft.plan.changing.adding import coming
from weft.plan.changing.next_plan import next_plan
from weft.plan.changing.running_plan import Impossible, Rules, first_plan
from weft.plan.dataflow.event_times import passes_by_sql
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.network.paths import Paths
from weft.spec import is_stateful, plain_added

SEEDS = range(20)
WISHING = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_twin_and_live_desk_do_and_refuse_the_same_in_the_same_words(seed: int, tmp_path: Path) -> None:
    deployment = drawn(tmp_path, seed)
    placement = placement_of(deployment)
    live, changes, fake = at_the_live_desk(deployment, placement, tmp_path)
    assert in_the_twin(deployment, placement, seed) == live
    held = journal.read(changes.state)
    assert held is not None
    assert (held.placement, held.fragments) == (changes.placement, changes.fragments)
    assert all(many == 1 for many in fake.most.values()), "of each fragment one runs at a time"


def test_the_drawn_moves_are_of_every_kind(tmp_path: Path) -> None:
    words: set[str] = set()
    done = 0
    for seed in SEEDS:
        deployment = drawn(tmp_path, seed)
        for _, _, state, word in in_the_twin(deployment, placement_of(deployment), seed):
            done += state == "done"
            words |= {kind for kind in ("already", "no path", "no room", "tree") if state == "refused" and kind in word}
    assert done >= 10
    assert words >= {"already", "no path", "no room", "tree"}


def test_live_refuses_instances_in_a_clear_word_and_the_rest_in_the_words_of_the_twin(tmp_path: Path) -> None:
    deployment = drawn(tmp_path, 0, moves=1)
    _, changes, _ = at_the_live_desk(deployment, placement_of(deployment), tmp_path)
    several = changes.ask(ScaleTo("use.valid", ("north", "hub"), by="person"))
    assert (several.state, several.why) == ("refused", "use.valid cannot run as several instances here yet")
    plan, wish = changes.in_force, ScaleTo("lost.valid", ("north", "hub"))
    shared = next_plan(plan, wish, replace(changes.rules, instances=True))
    assert isinstance(shared, Impossible)
    assert changes.ask(wish).why == shared.why == "there is no query lost; there are: use, alerts"
    everywhere = replace(plan.placement, instances={"use.valid": ("hub",)})
    assert changes.ask(Replace(everywhere)).why == "use.valid cannot run as several instances here yet"
    assert changes.in_force == plan


@pytest.mark.parametrize(
    ("name", "cost", "gone", "why"),
    [
        ("more", 200, None, "north has no room"),
        ("more", 1, "lost", "there is no query lost; there are: use, alerts"),
    ],
)
def test_queries_that_cannot_come_or_go_are_refused_in_the_same_words(
    tmp_path: Path, name: str, cost: float, gone: str | None, why: str
) -> None:
    deployment = drawn(tmp_path, 1, moves=1)
    operator = {"name": "o", "from": ["readings"], "sql": "SELECT k FROM readings", "cost_ms": cost, "site": "north"}
    sink = {"from": "o", "format": "parquet", "path": f"out/{name}"}
    queries = plain_added({"queries": [{"name": name, "operators": [operator], "sink": sink}]}, deployment).queries
    assert queries
    placement = placement_of(deployment)
    _, changes, _ = at_the_live_desk(deployment, placement, tmp_path)
    happening = AddAt(1.0, "more.yaml", queries) if gone is None else RemoveAt(1.0, gone)
    found = twin(replace(deployment, scenario=(happening,)), placement, seconds=5.0)
    now, control = changes.in_force, deployment.control
    wish = coming(now.deployment, now.placement, queries, control, "scenario", "scenario")
    live = changes.ask(wish if gone is None else RemoveQuery(gone, "scenario", "scenario"))  # type: ignore[arg-type]
    [told] = found.changes
    assert (live.state, live.why) == (told["state"], told["why"])
    assert live.state == "refused"
    assert live.why.startswith(why)
    assert live.as_json().keys() == told.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_instances_in_the_twin_come_and_go_as_the_door_of_the_live_desk_would_have_it(
    seed: int, tmp_path: Path
) -> None:
    deployment = replace(with_ordering(drawn(tmp_path, seed)), scenario=())
    placement, rng = placement_of(deployment), Random(seed)
    asked = [
        (1.0 + at, rng.choice(("start", "start", "stop")), rng.choice(list(placement.homes)), rng.choice(NAMES))
        for at in range(12)
    ]  # fmt: skip
    told = twin(deployment, placement, seconds=15, seed=seed, instances=tuple(asked))  # type: ignore[arg-type]
    rules = Rules(cutting(lambda _, operator: is_stateful(operator), passes_by_sql), Paths(deployment), instances=True)
    plan, done, refused = first_plan(deployment, placement, rules), [], []
    for at_s, verb, stream, site in asked:
        others = list(plan.placement.instances.get(stream, ()))
        if verb == "stop" and site not in others:
            refused.append(f"at {at_s:g} s: no further instance of {stream} runs at {site}")
            continue
        others.append(site) if verb == "start" else others.remove(site)
        then = next_plan(plan, ScaleTo(stream, (placement.home(stream), *others), by="scenario"), rules)
        if isinstance(then, Impossible):
            refused.append(f"at {at_s:g} s: {then.why}")
        else:
            plan = then
            done.append((at_s, stream, site))
    assert [(one.at_s, f"{one.query}.{one.operator}", one.from_ or one.to) for one in told.moves] == done
    assert [warning for warning in told.warnings if warning.startswith("at ")] == refused
    assert told.placement_at_end == plan.placement.as_json()


@pytest.mark.parametrize("seed", WISHING)
def test_wishes_of_every_kind_end_alike_in_twin_and_live(seed: int, tmp_path: Path) -> None:
    deployment = drawn(tmp_path, seed, moves=0)
    placement = placement_of(deployment)
    steps = drawn_wishes.drawn_wishes(deployment, placement, seed)
    live = drawn_wishes.at_the_live_desk(deployment, placement, steps, tmp_path)
    assert drawn_wishes.in_the_twin(deployment, placement, steps) == live


def test_the_drawn_wishes_are_of_every_kind_and_some_of_each_come_true(tmp_path: Path) -> None:
    done: set[type] = set()
    refused: set[type] = set()
    for seed in WISHING:
        deployment = drawn(tmp_path, seed, moves=0)
        placement = placement_of(deployment)
        steps = drawn_wishes.drawn_wishes(deployment, placement, seed)
        asked = [step for step in steps if not isinstance(step, CrashAt | RestartAt)]
        ends, _ = drawn_wishes.in_the_twin(deployment, placement, steps)
        for step, (state, _) in zip(asked, ends, strict=True):
            (done if state == "done" else refused).add(type(step[1] if isinstance(step, tuple) else step))
    assert done == {MoveTo, Replace, TakeOver, AddAt, RemoveQuery}
    assert refused == {*done, ScaleTo}


@pytest.mark.spark
@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 2))])
def test_spark_does_and_refuses_what_the_twin_does(seed: int, spark: object, tmp_path: Path) -> None:
    deployment = drawn(tmp_path, seed, moves=4)
    wishes = [MoveTo({one.move: one.to}, "scenario", "scenario") for one in deployment.scenario]  # type: ignore[union-attr]

    def watch(run: Run) -> None:
        asked = list(run.changes.asked.values()) if run.changes else []
        # A wish is judged by the plan in force when it comes: on a busy machine the move before it must be through.
        if run.phase != "running" or any(one.state == "asked" for one in asked):
            return
        if len(asked) < len(wishes):
            run.ask(wishes[len(asked)])
        else:
            run.stop()

    run = Run(replace(deployment, scenario=()), tmp_path / "state", Options(seconds=120))
    run.go(watch)
    assert run.changes is not None
    live = [
        (*one.wish.homes.items(), one.state, one.moves[0].start if one.state == "done" else one.why)
        for one in run.changes.asked.values()
    ]
    told = [((operator, to), state, word) for operator, to, state, word in in_the_twin(deployment, run.placement, seed)]
    assert [(pair, state, word) for pair, state, word in live] == told
