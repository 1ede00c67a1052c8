"""What is there at a site before its turn: gates that open in time, checkpoints that are written once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.spark.fragments.test_last_batch import ENTRY, checkpoint, fragment
from weft.model import Deployment
from weft.plan.changing.task import GoesOn, Task
from weft.plan.dataflow.event_times import Times
from weft.spark import prepared as module
from weft.spark.channels.folders import Folders
from weft.spark.checkpoints.checkpoint import last_committed, positions
from weft.spark.fragments.draining import RunSettings
from weft.spark.fragments.positions import Standing
from weft.spark.fragments.wiring import RunContext
from weft.spark.prepared import Prepared

OLD = fragment("q.down", "down")
NEW = fragment("q.down", "down", outputs=("q.down",))  # cut anew: it is read elsewhere by now
TASK = Task(NEW, 0, plan=3)
AFTER = (("q.down", 9),)
LINES = ((0, '{"segment": 2, "tick": 0}'), (1, '{"segment": 6, "tick": 0}'))


class EarlyRun:
    """A run behind its gate, as far as it matters here."""

    def __init__(self, generation: int = 1) -> None:
        self.fragment, self.generation, self.entries = NEW, generation, [ENTRY]
        self.follows: dict[str, Any] = {}
        self.opened: dict[str, Any] | None = None
        self.ended = ""

    def open(self, at: dict[str, Any]) -> None:
        self.opened = at

    def is_sound(self) -> bool:
        return True

    def discard(self) -> None:
        self.ended = "discarded"

    def stop_ahead(self) -> None:
        self.ended = "stopped"


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    folders = Folders(tmp_path, "run")
    folders.stream("q.up").create()
    checkpoint(folders.checkpoint("q.down", 0), *LINES, committed=0)
    return folders


@pytest.fixture
def prepared(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Prepared:
    made = Prepared(RunSettings(None, Times({}), lambda commit: None), RunContext(Deployment((), (), ()), folders, {}))  # type: ignore[arg-type]

    def plan(task: Task, ends: Any) -> None:
        wiring = type("Wired", (), {"entries": [ENTRY]})()
        made._warm[task.fragment.id] = (task.fragment, wiring, None)  # type: ignore[assignment]

    monkeypatch.setattr(made, "_plan", plan)
    return made


def standing(last: int | None = None) -> Standing:
    return Standing(OLD, 0, (ENTRY,), last=last)


def commit(folders: Folders, batch: int) -> None:
    (folders.checkpoint("q.down", 0) / "commits" / str(batch)).write_text("v1\n{}")


def early_in(prepared: Prepared, generation: int = 1) -> EarlyRun:
    early = EarlyRun(generation)
    prepared._early["q.down"] = early  # type: ignore[assignment]
    return early


def test_a_gate_opens_where_the_last_batch_will_end_once_that_has_begun(prepared: Prepared, folders: Folders) -> None:
    early = early_in(prepared)
    prepared.let_in("q.down", standing())
    assert early.opened is None, "its last batch is not known yet"
    prepared.let_in("q.down", standing(last=1))
    assert early.opened == {ENTRY.name: 6}
    prepared.let_in("q.other", standing(last=1))
    commit(folders, 1)
    assert prepared.carry_over(TASK, [standing()], AFTER) == GoesOn(NEW, 1, {ENTRY.name: 6})
    assert prepared.carry_over(TASK, [standing()], AFTER) == GoesOn(NEW, 1, {ENTRY.name: 6}), "asked again"
    assert early.ended == ""


def test_one_let_in_elsewhere_is_discarded_and_a_checkpoint_is_made(prepared: Prepared, folders: Folders) -> None:
    early = early_in(prepared)
    prepared.let_in("q.down", standing(last=1))  # a batch that came to nothing
    assert prepared.carry_over(TASK, [standing()], AFTER) == GoesOn(NEW, 1)
    assert early.ended == "discarded"
    assert positions(folders.checkpoint("q.down", 1))[ENTRY.name] == LINES[0][1]


def test_what_was_carried_over_is_not_written_again_for_the_same_ends_also_not_by_a_site_that_came_back(
    prepared: Prepared, folders: Folders
) -> None:
    assert prepared.carry_over(TASK, [standing()], AFTER) == GoesOn(NEW, 1)
    target = folders.checkpoint("q.down", 1)
    (target / "begun").touch()
    again = Prepared(prepared.settings, prepared.context)
    assert again.carry_over(TASK, [standing()], AFTER) == GoesOn(NEW, 1)
    assert (target / "begun").exists()
    commit(folders, 1)
    assert prepared.carry_over(TASK, [standing()], (("q.down", 10),)) == GoesOn(NEW, 1)
    assert not (target / "begun").exists(), "after other ends it is written anew"
    assert last_committed(target) == 1


def test_one_that_only_changes_its_site_goes_on_with_its_own_checkpoint(prepared: Prepared, folders: Folders) -> None:
    moved = Task(OLD, 0, {ENTRY.name: 2}, plan=3)
    assert prepared.carry_over(moved, [standing()], AFTER) == GoesOn(OLD, 0, {ENTRY.name: 2})
    assert not folders.checkpoint("q.down", 1).exists()


def test_a_launch_takes_only_the_early_start_of_its_generation(prepared: Prepared) -> None:
    early = early_in(prepared)
    assert prepared.take_early(TASK) is None
    assert early.ended == "stopped", "what was started early was not for this plan"
    early = early_in(prepared)
    assert prepared.take_early(Task(NEW, 1)) is early  # type: ignore[comparison-overlap]


def test_what_the_plan_in_force_rests_on_stays_when_what_another_change_made_ready_goes(prepared: Prepared) -> None:
    early = early_in(prepared, generation=1)
    prepared.discard("q.down", 1)
    assert early.ended == "stopped"
    early = early_in(prepared, generation=1)
    prepared.discard("q.down", 0)
    assert early.ended == "discarded"
    early = early_in(prepared, generation=1)
    assert prepared.warm(Task(NEW, 1, plan=4), []) == (), "it waits for its start"
    assert early.ended == ""


def test_an_early_start_that_was_dropped_while_spark_took_it_is_ended_and_leaves_its_checkpoint_alone(
    prepared: Prepared, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Launched(EarlyRun):
        over = False
        gate = SimpleNamespace(forget=lambda: None)
        checkpoint = folders.checkpoint("q.down", 1)

        def __init__(self, *given: Any) -> None:
            super().__init__()

        def wire(self, tick: int) -> tuple[Any, None]:
            return SimpleNamespace(entries=[ENTRY]), None

        def launch(self) -> None:
            assert prepared.take_early(TASK) is None, "the plan in force starts the fragment anew, as it was"
            self.over = True

    monkeypatch.setattr(module, "DrainingRun", Launched)
    monkeypatch.setattr(prepared, "_may_start_early", lambda fragment, wiring: True)
    stops: list[str] = []
    monkeypatch.setattr(Launched, "stop_ahead", lambda self: stops.append("stopped"))
    assert prepared.warm(TASK, [standing()]) == ()
    assert stops == ["stopped", "stopped"], "again, when there was something to stop"
    assert last_committed(folders.checkpoint("q.down", 1)) is not None
