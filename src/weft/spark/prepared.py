"""What is there at a site before its turn? Fragments that a change will start: planned, maybe running behind a gate.

One without state whose inputs are ours is started early, at about where those that end have come to, and is let in as
soon as it is known where their last batches end. Others are planned: they need the state, or the files seen, that the
old ones leave. Where each goes on is written down when all have ended: for an early start that is its gate, for others
a checkpoint made from the old ones, and a note of the ends it was made from, so that it is not written twice.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame

from weft.plan.changing.fragments import Fragment
from weft.plan.changing.task import GoesOn, Task
from weft.protocol.change_messages import After
from weft.protocol.moving import least_epoch
from weft.spark.channels.channel import reader_name
from weft.spark.channels.gate import Gate
from weft.spark.checkpoints.checkpoint import last_committed
from weft.spark.fragments.batch_times import merged_time
from weft.spark.fragments.draining import DrainingRun, RunSettings
from weft.spark.fragments.lifecycle import updates_a_sink
from weft.spark.fragments.positions import (
    Ended,
    Standing,
    carry_over,
    deciding_fragments,
    goes_on,
    resume_positions,
)
from weft.spark.fragments.wiring import Entry, RunContext, Wiring
from weft.spark.storage.disk import Damaged, read_sealed


class Prepared:
    """The fragments to come of one site."""

    def __init__(self, settings: RunSettings, context: RunContext) -> None:
        self.settings = settings
        self.context = context
        self._read: dict[str, set[str] | None] = {}
        self._warm: dict[str, tuple[Fragment, Wiring, DataFrame]] = {}
        self._early: dict[str, DrainingRun] = {}
        self._lock = threading.Lock()
        self._over = False

    def __contains__(self, fragment: str) -> bool:
        return fragment in self._warm or fragment in self._early

    def warm(self, task: Task, ends: Sequence[Standing] | None) -> tuple[str, ...]:
        """Make a fragment ready before its turn comes; the ends whose last batches it waits for.

        BadOperator where it never can run. Where it is not known how all that ends stands, it is only planned.
        """
        fragment = task.fragment
        before = self._early.get(fragment.id)
        if before is not None and before.generation == task.generation:
            return ()  # the plan in force has it so, and it waits for its start
        self._drop_early(fragment.id, task.generation)
        wiring = self._plan(task, ends)
        if not ends or not self._may_start_early(fragment, wiring):
            return ()
        return self._start_early(task, tuple(one.ended(self.context.folders) for one in ends))

    def _plan(self, task: Task, ends: Sequence[Standing] | None) -> Wiring:
        fragment, tick = task.fragment, least_epoch(task.plan)
        gate = Gate(self.context.folders.gate(fragment.id, task.generation), disk=self.context.folders.disk)
        merged = merged_time(fragment, self.settings.times)
        wiring = Wiring(self.settings.session, self.context, fragment, tick, gate, merged)
        # By which ways in the plan in force has it read, maybe at another site: those are not to be forgotten.
        same = [one for one in ends or () if one.fragment.id == fragment.id]
        self._read[fragment.id] = None if ends is None else {entry.name for one in same for entry in one.entries}
        self._warm[fragment.id] = (fragment, wiring, wiring.trunk())
        return wiring

    def _may_start_early(self, fragment: Fragment, wiring: Wiring) -> bool:
        """Whether nothing of it depends on how the old fragments end but the positions."""
        if fragment.stateful is not None or updates_a_sink(self.context, fragment):
            return False
        return all(entry.column is None and (entry.is_channel or self._is_timed(entry)) for entry in wiring.entries)

    def _is_timed(self, entry: Entry) -> bool:
        return self.context.deployment.source(entry.stream).facts.timed

    def _start_early(self, task: Task, ends: tuple[Ended, ...]) -> tuple[str, ...]:
        fragment = task.fragment
        run = DrainingRun(self.settings, self.context, fragment, None, task.generation + 1)
        run.gate.forget()
        self._note(fragment.id, run.generation).unlink(missing_ok=True)
        run.warm = run.wire(least_epoch(task.plan))
        entries = tuple(run.warm[0].entries)
        carry_over(self.context.folders, fragment, entries, ends, run.checkpoint)
        if last_committed(run.checkpoint) is None:
            return ()  # nothing to go on from yet: an empty checkpoint would begin at the beginning
        run.follows = {old.fragment.id: old for old in ends}
        self._early[fragment.id] = run
        run.launch()
        if self._over or run.over:  # the site, or this, has ended meanwhile; its checkpoint may be another's by now
            if self._early.get(fragment.id) is run:
                del self._early[fragment.id]
            run.stop_ahead()
            return ()
        run.wait_until_idle()
        return tuple(old.fragment.id for old in deciding_fragments(fragment, entries, ends) or ())

    def let_in(self, fragment: str, standing: Standing) -> None:
        """One that others go on from is at its last batch: open a gate, where it is now known at which places."""
        early = self._early.get(fragment)
        if early is None:
            return
        with self._lock:
            early.follows[standing.fragment.id] = standing.ended(self.context.folders)
            entries, ending = tuple(early.entries), tuple(early.follows.values())
            telling = deciding_fragments(early.fragment, entries, ending)
            if early.opened is None and telling is not None and all(old.last is not None for old in telling):
                early.open(resume_positions(self.context.folders, early.fragment, entries, ending))

    def discard(self, fragment: str, generation: int) -> None:
        """Forget a plan, an early start, or where a fragment goes on, that was not needed."""
        warm = self._warm.pop(fragment, None)
        self._drop_early(fragment, generation)
        self._note(fragment, generation + 1).unlink(missing_ok=True)
        reads = self._read.pop(fragment, None)
        if warm is not None and reads is not None:
            # Channels would keep what a reader needs that never came.
            for entry in warm[1].entries:
                if entry.is_channel and entry.name not in reads:
                    self.context.folders.stream(entry.stream).forget(reader_name(fragment, entry.name))

    def _drop_early(self, fragment: str, generation: int) -> None:
        """End an early start; where the plan in force, of that generation, rests on its checkpoint, that stays."""
        early = self._early.pop(fragment, None)
        if early is not None and early.generation > generation:
            early.discard()
        elif early is not None:
            early.stop_ahead()

    def lose(self) -> None:
        """End what was started early, as it is; nothing is taken back."""
        self._over = True
        for early in list(self._early.values()):
            early.stop()

    def close(self) -> None:
        """No early start is left behind."""
        self._over = True
        for fragment, early in list(self._early.items()):
            del self._early[fragment]
            early.discard()

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        """Write down where a fragment goes on, after these ends; on disk when this returns, and written once."""
        new, before = task.fragment, task.generation
        ended = tuple(one.ended(self.context.folders) for one in ends)
        early = self._goes_on_early(task, ended)
        if early is not None:
            return early
        if goes_on(next((one.fragment for one in ends if one.fragment.id == new.id), None), new):
            return GoesOn(new, before, task.gate)
        note = self._note(new.id, before + 1)
        if _noted(note) == [task.plan, [list(one) for one in after]]:
            return GoesOn(new, before + 1)
        if new.id not in self._warm or self._warm[new.id][0] != new:
            self._plan(task, ends)
        entries = tuple(self._warm[new.id][1].entries)
        note.unlink(missing_ok=True)
        Gate(self.context.folders.gate(new.id, before + 1)).forget()
        target = self.context.folders.checkpoint(new.id, before + 1)
        for name, position in carry_over(self.context.folders, new, entries, ended, target).items():
            stream = next(entry.stream for entry in entries if entry.name == name)
            self.context.folders.stream(stream).passed(reader_name(new.id, name), position, has_read=False)
        self.context.folders.disk.make(note.parent)
        self.context.folders.disk.seal(note, (task.plan, after))
        return GoesOn(new, before + 1)

    def _goes_on_early(self, task: Task, ended: tuple[Ended, ...]) -> GoesOn | None:
        """Let one that was started early in at its place; None where there is none, or it was let in elsewhere."""
        new, folders = task.fragment, self.context.folders
        early = self._early.get(new.id)
        if early is None or early.fragment != new:
            return None
        with self._lock:
            positions = resume_positions(folders, new, tuple(early.entries), ended)
            if early.opened not in (None, positions):
                del self._early[new.id]
                early.discard()
                return None
            for entry in early.entries:
                if entry.is_channel:
                    channel = folders.stream(entry.stream)
                    channel.passed(reader_name(new.id, entry.name), positions[entry.name], has_read=False)
            if early.opened is None:
                early.open(positions)
        return GoesOn(new, early.generation, positions)

    def take_early(self, task: Task) -> DrainingRun | None:
        """The early start that a launch goes on with; one that is not sound, or of another cut, is ended."""
        early = self._early.pop(task.fragment.id, None)
        if early is None:
            return None
        if early.fragment == task.fragment and early.generation == task.generation and early.is_sound():
            self._warm.pop(task.fragment.id, None)
            return early
        early.stop_ahead()
        return None

    def take_planned(self, fragment: Fragment) -> tuple[Wiring, DataFrame] | None:
        """The plan that was made of a fragment; one of another cut is dropped."""
        warm = self._warm.pop(fragment.id, None)
        return warm[1:] if warm is not None and warm[0] == fragment else None

    def _note(self, fragment: str, generation: int) -> Path:
        return self.context.folders.fragment(fragment) / f"carried-{generation}.json"


def _noted(path: Path) -> object:
    """The ends that a checkpoint was made from; None where that is not known."""
    try:
        return read_sealed(path)
    except (FileNotFoundError, Damaged):
        return None
