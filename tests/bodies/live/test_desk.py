"""The live desk and its sites, driven without Spark: starts that fail, a site that is gone, what the journal holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bodies.drawn_moves import Fake
from tests.plan.changing.test_next_plan import begun, rules, whole
from weft.bodies.live import journal
from weft.bodies.live.changes import Changes
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.moves import Asked
from weft.bodies.live.sites import Sites
from weft.bodies.live.state import State
from weft.bodies.live.transport import InProcess
from weft.model.wishes import AddQuery, MoveTo, RemoveQuery, TakeOver
from weft.plan.changing.task import GoesOn, Task
from weft.protocol.change_messages import After
from weft.spark.fragments.operators import BadOperator
from weft.spark.fragments.positions import Standing

HOMES = {"q.a": "x", "q.b": "y", "r.c": "z"}


class Failing(Fake):
    """An engine whose first starts fail."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    def prepare(self, task: Task, epoch: int) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return super().prepare(task, epoch)


@contextmanager
def desk(folder: Path, fake: Fake | Callable[[str], Fake]) -> Iterator[tuple[DeskBody, Changes, Sites]]:
    deployment = whole()
    state = State(folder / "state")
    state.disk.make(state.path)
    plan = begun(deployment, HOMES)
    changes = Changes(state, rules(deployment))
    changes.begin(replace(plan, placement=replace(plan.placement, backups={"q.b": ("z",)})), None)
    transport = InProcess()
    engine = (lambda site: fake) if isinstance(fake, Fake) else fake
    sites = Sites(state, engine, transport, lambda line: None)
    for site in deployment.sites:
        sites.start(site.name)
    body = DeskBody(changes, transport, lambda line: None, lambda site, silent: False)
    body.start()
    try:
        yield body, changes, sites
    finally:
        body.stop()
        changes.close()
        for one in sites.bodies():
            one.stop()


def until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def test_a_start_that_fails_for_a_passing_reason_is_tried_again(tmp_path: Path) -> None:
    with desk(tmp_path, Failing(ConnectionResetError("Connection reset by peer"))) as (body, _, _):
        assert body.running.wait(20)
        assert body.failure is None


def test_a_start_that_can_never_succeed_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    with desk(tmp_path, Failing(BadOperator("operator q.a: there is no column v"))) as (body, _, _):
        assert body.over.wait(20)
        assert body.failure is not None
        assert "there is no column v" in body.failure


class SlowToStart(Fake):
    """An engine whose runs start when they may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may = threading.Event(), threading.Event()

    def prepare(self, task: Task, epoch: int) -> Any:
        self.begun.set()
        self.may.wait(20)
        return super().prepare(task, epoch)


def test_what_starts_while_its_site_goes_does_not_run_on(tmp_path: Path) -> None:
    fake = SlowToStart()
    with desk(tmp_path, fake) as (_, _, sites):
        assert fake.begun.wait(20)
        for site in ("x", "y", "z"):
            sites.crash(site)
        fake.may.set()
        assert until(lambda: bool(fake.most) and not fake.alive)


def test_the_journal_holds_reasons_and_backups_through_a_move(tmp_path: Path) -> None:
    with desk(tmp_path, Fake()) as (body, changes, _):
        assert body.running.wait(20)
        asked = changes.ask(MoveTo({"r.c": "y"}, "less traffic"))
        assert until(lambda: asked.state == "done")
        held = journal.read(changes.state)
        assert held is not None
        assert held.placement == changes.placement
        assert held.placement.backups == {"q.b": ("z",)}
        assert held.placement.reasons["r.c"] == "moved there from z by `weft move`: less traffic"


class Full(Fake):
    """An engine of a site whose disk is full when something is to be carried over."""

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        raise OSError(28, "No space left on device")


def test_a_site_that_cannot_take_a_fragment_over_is_known_before_anything_is_decided(tmp_path: Path) -> None:
    fake = Full()
    with desk(tmp_path, fake) as (body, changes, _):
        assert body.running.wait(20)
        before = changes.in_force
        asked = changes.ask(MoveTo({"r.c": "y"}))
        assert until(lambda: asked.state == "refused")
        assert "No space left on device" in asked.why
        held = journal.read(changes.state)
        assert held is not None
        assert (held.number, held.fragments) == (before.number, before.fragments)
        assert until(lambda: "r.c" in {name for name, _ in fake.alive}), "it goes on where it was"


def test_each_site_runs_only_what_it_was_told(tmp_path: Path) -> None:
    fakes: dict[str, Fake] = {}
    with desk(tmp_path, lambda site: fakes.setdefault(site, Fake())) as (body, changes, sites):
        assert body.running.wait(20)
        asked = changes.ask(MoveTo({"r.c": "y"}))
        assert until(lambda: asked.state == "done")
        for site, fake in fakes.items():
            here = {one.id for one in changes.fragments if one.site == site}
            assert {name for name, _ in fake.alive} == here
            assert sites.engines[site] is fake
        held = {site: state_file(changes.state, site) for site in fakes}
        assert held["y"].keys() >= {"q.b", "r.c"}
        assert "r.c" not in held["x"]


def state_file(state: State, site: str) -> dict[str, int]:
    held: dict[str, int] = state.read(f"epochs/{site}.json")
    return held


def test_several_operators_move_in_one_change(tmp_path: Path) -> None:
    with desk(tmp_path, Fake()) as (body, changes, _):
        assert body.running.wait(20)
        asked = changes.ask(MoveTo({"q.b": "x", "r.c": "y"}))
        assert until(lambda: asked.state == "done")
        assert [(move.operator, move.start, move.to, move.state) for move in asked.moves] == [
            ("b", "y", "x", "done"), ("c", "z", "y", "done"),
        ]  # fmt: skip
        assert changes.in_force.number == 1


def test_a_wish_that_another_has_passed_is_carried_out_after_it(tmp_path: Path) -> None:
    held: list[Asked] = []
    with desk(tmp_path, Fake()) as (body, changes, _):
        assert body.running.wait(20)
        changes.hand_on = held.append
        waited, passed = changes.ask(MoveTo({"r.c": "y"})), changes.ask(MoveTo({"r.c": "x"}))
        assert held == [waited, passed]
        changes.tell_desk(passed)
        assert until(lambda: passed.state == "done")
        back = changes.ask(MoveTo({"r.c": "z"}))
        changes.tell_desk(back)
        assert until(lambda: back.state == "done")
        changes.tell_desk(waited)
        assert until(lambda: waited.state == "done"), "epochs follow the numbers of changes: it is not taken for past"
        assert passed.number < back.number < waited.number
        assert changes.asked[waited.number] is waited
        assert changes.placement.home("r.c") == "y"
        assert [move.number for move in waited.moves] == [waited.number]


def test_what_ran_at_a_site_that_is_gone_is_taken_over_while_it_is_silent(tmp_path: Path) -> None:
    fake = Fake()
    with desk(tmp_path, fake) as (body, changes, sites):
        assert body.running.wait(20)
        sites.crash("y")
        asked = changes.ask(TakeOver("y", {"q.b": "x"}))
        assert until(lambda: asked.state == "done", 8.0), "nothing is waited for at a site that is gone"
        assert changes.placement.home("q.b") == "x"
        assert until(lambda: "q.b" in {name for name, _ in fake.alive})


def test_queries_come_and_go_while_others_run(tmp_path: Path) -> None:
    from tests.plan.plan_builders import op, query

    fake = Fake()
    with desk(tmp_path, fake) as (body, changes, _):
        assert body.running.wait(20)
        before = {name: epoch for name, epoch in fake.alive if name.startswith("q.")}
        added = changes.ask(AddQuery((query(op("d", "s"), name="t"),), {"t.d": "x"}))
        assert until(lambda: added.state == "done")
        gone = changes.ask(RemoveQuery("r"))
        assert until(lambda: gone.state == "done")
        assert until(lambda: {name for name, _ in fake.alive if not name.startswith("s")} == {"q.a", "q.b", "t.d"})
        assert {name: epoch for name, epoch in fake.alive if name.startswith("q.")} == before, "others are not touched"
