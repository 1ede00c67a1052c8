"""What runs the fragments of all sites in this process: one Spark session, and the plans they share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession

from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Times
from weft.spark.channels.channel import reader_name
from weft.spark.channels.gate import Gate
from weft.spark.channels.position import Position, reaches
from weft.spark.checkpoints.checkpoint import last_committed
from weft.spark.fragments.batch_times import merged_time
from weft.spark.fragments.lifecycle import FragmentRun, updates_a_sink
from weft.spark.fragments.outputs import Commit, places
from weft.spark.fragments.positions import Ended, carry_over, deciding_fragments, goes_on, resume_positions
from weft.spark.fragments.wiring import Entry, RunContext, Wiring
from weft.spark.measuring.progress import StageTimes

# Every channel that a fragment reads starts a Python process, and Spark waits ten seconds for each: started all at
# once, those of a wide deployment would not answer in time.
STARTS_AT_ONCE = 2
START_S_MAX = 60.0
IDLE_S_MAX = 20.0
_starts = threading.BoundedSemaphore(STARTS_AT_ONCE)

Gates = dict[str, tuple[int, dict[str, Position]]]
"""Where fragments that were started early went on, by generation: the plan in force knows it too."""


class SparkEngine:
    """Fences, prepares and drains fragments on a shared session."""

    def __init__(
        self,
        session: SparkSession,
        context: RunContext,
        times: Times,
        fragments: tuple[Fragment, ...],
        on_commit: Callable[[Commit], None],
    ) -> None:
        self.session = session
        self.context = context
        self.times = times
        self.fragments = {fragment.id: fragment for fragment in fragments}
        self.homes: dict[str, str] = {}
        self.note_homes(fragments)
        self.on_commit = on_commit
        self.totals: dict[str, int] = {}
        self.until_done = False
        self.before_end: Callable[[], None] = lambda: None
        self.runs: dict[str, FragmentRun] = {}
        self.stages = StageTimes(session)
        self.generations: dict[str, int] = {}
        self.gates: Gates = {}
        self._warm: dict[str, tuple[Fragment, Wiring, DataFrame]] = {}
        self._early: dict[str, _DrainingRun] = {}

    def warm(self, fragment: Fragment, tick: int, ends: Sequence[Fragment] = ()) -> None:
        """Make a fragment ready before its turn comes; BadOperator where it never can run.

        One without state whose inputs are ours is started behind a gate, at about where those that end have come to.
        Others are planned: they need the state, or the files seen, that the old ones leave.
        """
        generation = self.generations.get(fragment.id, 0)
        gate = Gate(self.context.folders.gate(fragment.id, generation), disk=self.context.folders.disk)
        wiring = Wiring(self.session, self.context, fragment, tick, gate, merged_time(fragment, self.times))
        self._warm[fragment.id] = (fragment, wiring, wiring.trunk())
        if ends and self._may_start_early(fragment, wiring):
            self._start_early(fragment, tick, ends)

    def _may_start_early(self, fragment: Fragment, wiring: Wiring) -> bool:
        """Whether nothing of it depends on how the old fragments end but the positions."""
        if fragment.stateful is not None or not fragment.operators or updates_a_sink(self.context, fragment):
            return False
        return all(entry.column is None and (entry.is_channel or self._is_timed(entry)) for entry in wiring.entries)

    def _is_timed(self, entry: Entry) -> bool:
        return self.context.deployment.source(entry.stream).facts.timed

    def _start_early(self, fragment: Fragment, tick: int, ends: Sequence[Fragment]) -> None:
        run = _DrainingRun(self, fragment, None, self.generations.get(fragment.id, 0) + 1)
        run.follows = tuple(ends)
        run.gate.forget()
        run.warm = run.wire(tick)
        entries = tuple(run.warm[0].entries)
        carry_over(self.context.folders, fragment, entries, self._as_they_stand(ends), run.checkpoint)
        if last_committed(run.checkpoint) is None:
            return  # nothing to go on from yet: an empty checkpoint would begin at the beginning
        self._early[fragment.id] = run
        run.launch()
        run.wait_until_idle()

    def _as_they_stand(self, ends: Sequence[Fragment]) -> tuple[Ended, ...]:
        return tuple(self.runs[old.id].as_ended() for old in ends)

    def awaits_last_batch_of(self, old: FragmentRun) -> bool:
        """True if some early-started fragment resumes where this run's last batch ends."""
        return any(
            old.fragment
            in [one.fragment for one in deciding_fragments(early.fragment, tuple(early.entries), ending) or ()]
            for early, ending in self._not_let_in()
        )

    def open_gates_early(self) -> None:
        """Open the gates of those that were started early, where it is now known at which places they go on."""
        for early, ending in self._not_let_in():
            telling = deciding_fragments(early.fragment, tuple(early.entries), ending)
            if telling is not None and all(old.last is not None for old in telling):
                early.open(resume_positions(self.context.folders, early.fragment, tuple(early.entries), ending))

    def _not_let_in(self) -> Iterator[tuple[_DrainingRun, tuple[Ended, ...]]]:
        """Those that were started early and wait behind their gates, with the runs that end for them."""
        for early in list(self._early.values()):
            runs = [self.runs[old.id] for old in early.follows if old.id in self.runs]
            if early.opened is None and len(runs) == len(early.follows):
                yield early, tuple(run.as_ended(run.writer.last.number) for run in runs)

    def discard_prepared(self, fragment: str) -> None:
        """Forget a plan, or end an early start, that was not needed."""
        warm = self._warm.pop(fragment, None)
        early = self._early.pop(fragment, None)
        if early is not None:
            early.discard()
        if warm is not None and (fragment in self.runs or fragment not in self.fragments):
            # Channels would keep what a reader needs that never came.
            reads = {entry.name for entry in self.runs[fragment].entries} if fragment in self.runs else set()
            for entry in warm[1].entries:
                if entry.is_channel and entry.name not in reads:
                    self.context.folders.stream(entry.stream).forget(reader_name(fragment, entry.name))

    def nudge(self) -> None:
        """Let go what is held back on streams that have fallen silent."""
        for run in list(self.runs.values()):
            run.nudge_if_silent()

    def look_after(self) -> None:
        """List what Spark has added to checkpoints since."""
        for run in list(self.runs.values()):
            if run.writer.ledger is not None:
                run.writer.ledger.look()

    def syncs_ms(self) -> list[float]:
        """How long batches of late have waited for the disk, each."""
        return [spent for run in list(self.runs.values()) for spent in list(run.writer.sync_ms)]

    def close(self) -> None:
        """No early start is left behind."""
        for fragment in list(self._early):
            self.discard_prepared(fragment)

    def channel_drained(self, stream: str, fragment: str) -> bool:
        """Whether a fragment has written the results of all that a channel holds."""
        run = self.runs[fragment]
        end = self.context.folders.stream(stream).end()
        entries = [entry for entry in run.entries if entry.is_channel and entry.stream == stream]
        return all(reaches(run.writer.reached(entry), end) for entry in entries)

    def carry_over(self, ends: Sequence[Fragment], starts: Sequence[Fragment]) -> dict[str, int]:
        """Write the checkpoints of a new cut; the generation of every fragment it starts."""
        ended = self._as_they_stand(ends)
        generations: dict[str, int] = {}
        for new in starts:
            before = self.generations.get(new.id, 0)
            if self._goes_on_early(new, ended):
                generations[new.id] = before + 1
                continue
            if goes_on(self.fragments.get(new.id), new):
                generations[new.id] = before
                continue
            if new.id not in self._warm or self._warm[new.id][0] != new:
                self.warm(new, self._tick())
            entries = tuple(self._warm[new.id][1].entries)
            generations[new.id] = before + 1
            Gate(self.context.folders.gate(new.id, before + 1)).forget()
            self.gates.pop(new.id, None)
            target = self.context.folders.checkpoint(new.id, before + 1)
            for name, position in carry_over(self.context.folders, new, entries, ended, target).items():
                stream = next(entry.stream for entry in entries if entry.name == name)
                self.context.folders.stream(stream).passed(reader_name(new.id, name), position, has_read=False)
        return generations

    def _goes_on_early(self, new: Fragment, ended: tuple[Ended, ...]) -> bool:
        """Let one that was started early in at its place; False where there is none, or it was let in elsewhere."""
        early = self._early.get(new.id)
        if early is None or early.fragment != new:
            return False
        positions = resume_positions(self.context.folders, new, tuple(early.entries), ended)
        if early.opened not in (None, positions):
            del self._early[new.id]
            early.discard()
            return False
        for entry in early.entries:
            if entry.is_channel:
                channel = self.context.folders.stream(entry.stream)
                channel.passed(reader_name(new.id, entry.name), positions[entry.name], has_read=False)
        if early.opened is None:
            early.open(positions)
        self.gates[new.id] = (early.generation, positions)
        return True

    def _tick(self) -> int:
        return max((run.epoch for run in self.runs.values()), default=0) + 1

    def changed(self, fragments: tuple[Fragment, ...], generations: dict[str, int]) -> None:
        """Another cut is in force: readers that are no more hold nothing any longer."""
        kept = {fragment.id for fragment in fragments}
        for name, run in list(self.runs.items()):
            new = next((fragment for fragment in fragments if fragment.id == name), None)
            warm = self._warm.get(name)
            early = self._early.get(name)
            if early is not None and early.fragment == new:
                continue  # the same ways in
            still = {entry.name for entry in warm[1].entries} if warm is not None and warm[0] == new else None
            for entry in run.entries:
                if entry.is_channel and (name not in kept or (still is not None and entry.name not in still)):
                    self.context.folders.stream(entry.stream).forget(reader_name(name, entry.name))
            if name not in kept:
                del self.runs[name]
        self.fragments = {fragment.id: fragment for fragment in fragments}
        self.generations.update(generations)

    def adopt_plan(self, fragments: Sequence[Fragment], generations: dict[str, int], gates: Gates) -> None:
        """A cut is in force since before this process: what another was about to read is not kept for it."""
        self.gates.update(gates)
        for name, (generation, positions) in gates.items():
            if generations.get(name) == generation:
                Gate(self.context.folders.gate(name, generation), disk=self.context.folders.disk).open(positions)
        self.fragments = {fragment.id: fragment for fragment in fragments}
        self.generations.update(generations)
        self.note_homes(fragments)
        for channel in self.context.folders.streams():
            channel.forget_but([one.id for one in fragments if channel.name in one.channels])

    def forget_other_ways_in(self, run: FragmentRun) -> None:
        """A run reads as it will: other ways in, made ready for a move that was never finished, are not kept for it."""
        name = run.fragment.id
        if name in self._warm or name in self._early:
            return
        reads = {reader_name(name, entry.name) for entry in run.entries}
        for stream in run.fragment.channels:
            self.context.folders.stream(stream).forget_others(name, reads)

    def note_homes(self, fragments: Sequence[Fragment]) -> None:
        """Know at which site each stream is written."""
        self.homes.update({stream: fragment.site for fragment in fragments for stream in fragment.outputs})

    def fence(self, fragment: str, epoch: int) -> None:
        """From now on no writer with a lower epoch commits anything for the fragment."""
        for place in places(self.context, self.fragments[fragment]):
            place.destination.fence(epoch)

    def prepare(self, fragment: str, epoch: int) -> FragmentRun:
        """A fragment ready to start, or one that waits behind its gate; Fenced where a later epoch has taken over."""
        early = self._early.pop(fragment, None)
        if early is not None and early.fragment == self.fragments[fragment] and early.is_sound():
            self._warm.pop(fragment, None)
            try:
                early.adopt(epoch)
            except Exception:
                early.stop_ahead()
                raise
            self.runs[fragment] = early
            return early
        if early is not None:
            early.stop_ahead()
        run = _DrainingRun(self, self.fragments[fragment], epoch, self.generations.get(fragment, 0))
        warm = self._warm.pop(fragment, None)
        if warm is not None and warm[0] == run.fragment:
            run.warm = warm[1:]
        self.runs[fragment] = run
        return run


class _DrainingRun(FragmentRun):
    """A run that, where the whole is to end by itself, finishes its sources when they are read."""

    def __init__(self, engine: SparkEngine, fragment: Fragment, epoch: int | None, generation: int) -> None:
        super().__init__(engine.session, engine.context, engine.times, fragment, epoch, generation, engine.on_commit)
        self.engine = engine
        self.trouble: str | None = None
        self.follows: tuple[Fragment, ...] = ()
        self.opened: dict[str, Position] | None = None

    def launch(self) -> None:
        """Start, not too many at once."""
        with _starts:
            super().launch()
            self._wait_for_sources()

    def open(self, positions: dict[str, Position]) -> None:
        """Let a run behind its gate in, at these places."""
        self.opened = positions
        self.gate.open(positions)

    def stop(self, clean: bool = False) -> bool:
        """Also let those that go on from here know, ahead of the end, where it will be."""
        goes_on = self.query is not None and self.query.isActive and not self.drained()
        if clean and goes_on and self.engine.awaits_last_batch_of(self):
            self.writer.last.ask(self.engine.open_gates_early)
        return super().stop(clean)

    def wait_until_idle(self) -> None:
        """Wait until a query behind its gate has rehearsed and finds nothing to do."""
        assert self.query is not None
        latest = time.monotonic() + IDLE_S_MAX
        while self.query.isActive and not (
            self.writer.rehearsed is not None and self.query.status["message"].startswith("Waiting for data")
        ):
            if time.monotonic() > latest:
                return
            time.sleep(0.02)

    def is_sound(self) -> bool:
        """Whether a query that started early still runs."""
        return self.query is not None and bool(self.query.isActive)

    def start(self) -> None:
        """Start, and where all is to end by itself, watch for the end of the sources."""
        super().start()
        self.engine.forget_other_ways_in(self)
        if self.engine.until_done and self.fragment.sources:
            threading.Thread(target=self._drain, name=f"drain-{self.fragment.id}", daemon=True).start()

    def _wait_for_sources(self) -> None:
        assert self.query is not None
        latest = time.monotonic() + START_S_MAX
        while self.query.isActive and self.query.status["message"] == "Initializing sources":
            if time.monotonic() > latest:
                return
            time.sleep(0.02)

    def _drain(self) -> None:
        try:
            self.read_all(self.engine.totals, self.engine.before_end)
        except Exception as error:
            # A query that was stopped or has failed ends the wait; `failure` tells why, where Spark still answers.
            with suppress(Exception):
                if self.query is not None and self.query.isActive:
                    self.trouble = str(error)

    def failure(self) -> tuple[str, bool] | None:
        """Also where the end could not be written."""
        return (self.trouble, False) if self.trouble else super().failure()
