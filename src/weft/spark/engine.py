"""What runs the fragments of one site: those it was told of, and those that it makes ready for a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from weft.model import Deployment, sink_name
from weft.plan.changing.task import GoesOn, Task
from weft.plan.dataflow.event_times import Times
from weft.plan.network.paths import Path as Way
from weft.protocol.change_messages import After
from weft.protocol.reporting import Measured
from weft.spark.channels.channel import reader_name
from weft.spark.channels.gate import Gate
from weft.spark.channels.position import reaches
from weft.spark.checkpoints.inspection import begin_anew
from weft.spark.fragments.draining import DrainingRun, RunSettings
from weft.spark.fragments.lifecycle import FragmentRun
from weft.spark.fragments.outputs import claims_of, places, sink_log
from weft.spark.fragments.pacing import Pace
from weft.spark.fragments.positions import Standing
from weft.spark.fragments.real_time import RealTimeRun, runs_in_real_time
from weft.spark.fragments.wiring import RunContext
from weft.spark.measuring.progress import StageTimes
from weft.spark.measuring.site import SiteMeasures
from weft.spark.prepared import Prepared
from weft.spark.sinks.updates import settle


class SparkEngine:
    """Fences, launches and drains the fragments of one site, on a session that it may share with others."""

    def __init__(
        self,
        site: str,
        settings: RunSettings,
        context: RunContext,
        between: Callable[[str, str], Way | None],
        stages: StageTimes,
        bad: Mapping[str, int] | None = None,
    ) -> None:
        self.homes: dict[str, str] = {}
        told = next((one for one in context.deployment.sites if one.name == site), None)
        pace = Pace(told.capacity) if told is not None and told.cap and told.capacity > 0 else None
        self.context = replace(context, ways=lambda stream, site: self._way(between, stream, site), pace=pace)
        self.runs: dict[str, DrainingRun] = {}
        self.measures = SiteMeasures(site, self.runs, stages, bad or {}, pace)
        self._ask_before_end: Callable[[str, Callable[[], bool]], None] = lambda fragment, alive: None
        self.settings = replace(settings, on_commit=self.measures.committed, before_end=self._before_end)
        self.prepared = Prepared(self.settings, self.context)

    def learn(self, deployment: Deployment, schemas: dict[str, StructType], times: Times) -> None:
        """What is made ready and started from now on may be of these queries; what runs goes on as it is."""
        self.context = replace(self.context, deployment=deployment, schemas=schemas)
        self.settings = replace(self.settings, times=times)
        self.prepared.settings, self.prepared.context = self.settings, self.context

    def asks_before_end(self, ask: Callable[[str, Callable[[], bool]], None]) -> None:
        """Let somebody be asked before a fragment ends the streams of its sources."""
        self._ask_before_end = ask

    def _before_end(self, fragment: str, alive: Callable[[], bool]) -> None:
        self._ask_before_end(fragment, alive)

    def measure(self, finally_: bool = False) -> Measured:
        """What is new, and how all stands."""
        return self.measures.look(finally_)

    def _way(self, between: Callable[[str, str], Way | None], stream: str, site: str) -> Way | None:
        home = self.homes.get(stream)
        return None if home is None else between(home, site)

    def fence(self, task: Task, epoch: int) -> None:
        """From now on no writer with a lower epoch commits anything for the fragment."""
        for place in places(self.context, task.fragment):
            place.destination.fence(epoch)

    def prepare(self, task: Task, epoch: int) -> DrainingRun:
        """A fragment ready to start, or one that waits behind its gate; Fenced where a later epoch has taken over."""
        self.homes.update(task.homes)
        run = self.prepared.take_early(task)
        if run is not None:
            try:
                run.adopt(epoch)
            except Exception:
                run.stop_ahead()
                raise
        else:
            folders = self.context.folders
            gate = Gate(folders.gate(task.fragment.id, task.generation), disk=folders.disk)
            if task.gate is not None and not gate.is_open():
                gate.open(task.gate)
            claims = claims_of(self.context.deployment, folders)
            begin_anew(folders, task.fragment, task.generation, task.gate, claims)
            kind = RealTimeRun if runs_in_real_time(self.context, task.fragment) else DrainingRun
            run = kind(self.settings, self.context, task.fragment, epoch, task.generation)
            run.warm = self.prepared.take_planned(task.fragment)
        run.on_start = self._forget_other_ways_in
        before = self.runs.get(task.fragment.id)
        self.runs[task.fragment.id] = run
        if before is not None:
            self.measures.replaced(before)
        return run

    def _forget_other_ways_in(self, run: FragmentRun) -> None:
        """A run reads as it will: other ways in, made ready for a move that was never finished, are not kept for it."""
        name = run.fragment.id
        if name in self.prepared:
            return
        reads = {reader_name(name, entry.name) for entry in run.entries}
        for stream in run.fragment.channels:
            self.context.folders.stream(stream).forget_others(name, reads)

    def warm(self, task: Task, ends: Sequence[Standing] | None) -> tuple[str, ...]:
        """Make a fragment ready before its turn; the ends whose last batches it waits for; None: not all are known."""
        self.homes.update(task.homes)
        return self.prepared.warm(task, ends)

    def discard_prepared(self, task: Task) -> None:
        """Forget what was made ready, or carried over."""
        self.prepared.discard(task.fragment.id, task.generation)

    def let_in(self, fragment: str, standing: Standing) -> None:
        """One that others go on from is at its last batch."""
        self.prepared.let_in(fragment, standing)

    def carry_over(self, task: Task, ends: Sequence[Standing], after: After) -> GoesOn:
        """Write down where a fragment goes on after these ends."""
        self.homes.update(task.homes)
        return self.prepared.carry_over(task, ends, after)

    def channel_drained(self, stream: str, fragment: str) -> bool:
        """Whether a fragment that runs here has written the results of all that a channel holds."""
        run = self.runs.get(fragment)
        if run is None:
            return False
        end = self.context.folders.stream(stream).end()
        entries = [entry for entry in run.entries if entry.is_channel and entry.stream == stream]
        return bool(entries) and all(reaches(run.writer.reached(entry), end) for entry in entries)

    def look_after(self) -> None:
        """List what Spark has added to checkpoints since, and let go what is held back on silent streams."""
        for run in self._alive():
            if run.writer.ledger is not None:
                run.writer.ledger.look()
            run.nudge_if_silent()

    def settle(self, sinks: Sequence[str]) -> None:
        """Leave only the last value of every key in sinks of update mode, now that no more will come."""
        deployment = self.context.deployment
        for query in deployment.queries:
            for sink in query.sinks:
                name = sink_name(query, sink)
                if name in sinks and sink.mode == "update" and sink.path is not None:
                    settle(self.settings.session, sink_log(deployment, self.context.folders, sink, name), query)

    def _alive(self) -> list[DrainingRun]:
        """Runs that were not asked to end; others' checkpoints may be somebody else's by now."""
        return [run for run in list(self.runs.values()) if not run.over]

    def lose(self) -> None:
        """Be gone, as with a loss of power: nothing is taken back."""
        self.prepared.lose()

    def close(self) -> None:
        """Leave nothing behind that was made ready."""
        self.prepared.close()
