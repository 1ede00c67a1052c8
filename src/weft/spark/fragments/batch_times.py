"""What does a batch mean for those downstream? Births, event times and the end, from offsets and manifests alone."""

from __future__ import annotations

from weft.plan.changing.fragments import Fragment
from weft.plan.dataflow.event_times import Origin, Times
from weft.spark.channels.manifest import END_TIME_US, Written
from weft.spark.channels.position import BEGINNING, Position, later
from weft.spark.checkpoints import offsets as batches
from weft.spark.checkpoints.offsets import Arrival, Offsets
from weft.spark.fragments.outputs import Output
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.sources import streams as sources
from weft.spark.sources.arrivals import Flow
from weft.spark.sources.kafka import rows_between
from weft.spark.sources.rate import Clock
from weft.spec import gathers

Births = tuple[float, float] | None


class BatchTimes:
    """Reads what each batch of one fragment brings, and says what it means for its outputs."""

    def __init__(self, context: RunContext, times: Times, fragment: Fragment, updates: bool) -> None:
        self.context = context
        self.times = times
        self.fragment = fragment
        self.updates = updates
        self.merged = merged_time(fragment, times)
        self._flows: dict[str, Flow] = {}
        self._was_born: Births = None
        self.first: dict[str, Position] = {}  # where inputs went on that somebody else had read before

    def arrival(self, entry: Entry, before: Offsets | None, offsets: Offsets) -> Arrival:
        """What one input brings; a rehearsal, planned before it was known where the input goes on, brings nothing."""
        if entry.is_channel:
            start = later(batches.position_of(before, entry.name), self.first.get(entry.name, BEGINNING))
            end = later(start, batches.position_of(offsets, entry.name))
            return batches.from_channel(self.context.folders.stream(entry.stream), start, end)
        source = self.context.deployment.source(entry.stream)
        now = (offsets.clock_ms, offsets.clock_ms)
        if source.facts.has_topic:
            ends = before.ends.get(entry.name, {}) if before else {}
            return Arrival(now, {}, False, rows=rows_between(ends, offsets.ends.get(entry.name, {})))
        if not source.facts.timed:
            return Arrival(now, {}, False)
        first = self.first.get(entry.name, BEGINNING)
        assert isinstance(first, int), "a timed source counts records"
        start = max(batches.count_of(before, entry.name), first)
        end = max(start, batches.count_of(offsets, entry.name))
        born = now if source.arrivals is None else self._born(entry.stream, start, end)
        return Arrival(born if end > start else None, {}, False, end, end - start)

    def _born(self, name: str, start: int, end: int) -> Births:
        if end <= start:
            return None
        flows = sources.read_flows(self.context.folders.flows)
        if name not in self._flows:
            source = self.context.deployment.source(name)
            assert source.arrivals is not None
            factors = [tuple(pair) for pair in flows["factors"].get(name, [])]
            self._flows[name] = Flow(source.arrivals, sources.seed_of(source), factors)
        flow, clock = self._flows[name], Clock([tuple(pair) for pair in flows["starts"]])
        first = clock.clock_us(flow.births(start, start + 1))[0] / 1000
        last = clock.clock_us(flow.births(end - 1, end))[0] / 1000
        return float(first), float(last)

    def topics(self, entries: list[Entry]) -> list[Entry]:
        """The ways in whose records bring their births along: they are known when a batch was worked out."""
        known = [entry for entry in entries if not entry.is_channel]
        return [entry for entry in known if self.context.deployment.source(entry.stream).facts.has_topic]

    def births(self, arrivals: dict[str, Arrival], before: Offsets | None, offsets: Offsets) -> Births:
        """Whose birth counts for a result: this batch's records, or for a window those that moved the watermark."""
        now = batches.least([arrival.birth_ms for arrival in arrivals.values()])
        if not self._closes_windows():
            return now
        earlier, self._was_born = self._was_born, now or self._was_born
        moved = before is not None and offsets.watermark_ms > before.watermark_ms
        return (earlier or now) if moved else (now or earlier)

    def _closes_windows(self) -> bool:
        """Whether results wait for the watermark, as those of an aggregate in append mode do."""
        if self.fragment.stateful is None or self.fragment.query is None or self.updates:
            return False
        return gathers(self.context.deployment.query(self.fragment.query).operator(self.fragment.stateful))

    def windows_closed(self, entries: list[Entry], offsets: Offsets) -> bool:
        """Whether the end has moved the watermark past every window, where append mode waits for that."""
        watched = [entry for entry in entries if entry.column is not None]
        if not watched or self.fragment.stateful is None or self.updates:
            return True
        delay_ms = max(entry.delay_ms for entry in watched)
        return offsets.watermark_ms >= END_TIME_US // 1000 - delay_ms

    def measured(self, stream: str) -> list[str]:
        """The time columns of an output that are read off what was written."""
        return [column for column in self.times.columns(stream) if self._is_measured(stream, column)]

    def _origin(self, stream: str, column: str) -> Origin:
        """Where the time of a column comes from, seen from within the fragment.

        All that leaves a fragment with state is what its stateful operator gives, or was handed on from there: that is
        no input of the fragment, whose inputs know nothing of its time.
        """
        origin, kept = self.times.origin(stream, column), self.fragment.stateful
        return self.times.origin(self.fragment.stream(kept), column) if origin == "passed" and kept else origin

    def _is_measured(self, stream: str, column: str) -> bool:
        origin = self._origin(stream, column)
        alone = len(self.fragment.inputs) == 1 == len(self.fragment.sources)
        return origin == "measured" or (origin == "passed" and alone)

    def ended_times(self, output: Output) -> dict[str, int]:
        """The event times of an output that has ended."""
        return dict.fromkeys(self.times.columns(output.stream), END_TIME_US)

    def times_us(
        self, output: Output, arrivals: dict[str, Arrival], offsets: Offsets, written: Written
    ) -> dict[str, int]:
        """How far an output's event times have come with this batch; they never go back."""
        last = output.writer.last.times_us if output.writer.last else {}
        times: dict[str, int] = {}
        for column in self.times.columns(output.stream):
            if self._origin(output.stream, column) == "watermark" or column == self.merged:
                reached: int | None = offsets.watermark_ms * 1000 if offsets.watermark_ms else None
            elif self._is_measured(output.stream, column):
                reached = written.times_us.get(column)
            else:
                brought = [arrival.times_us.get(column) for arrival in arrivals.values()]
                known = [moment for moment in brought if moment is not None]
                reached = min(known) if len(known) == len(brought) else None
            best = max((moment for moment in (reached, last.get(column)) if moment is not None), default=None)
            if best is not None:
                times[column] = best
        return times


def merged_time(fragment: Fragment, times: Times) -> str | None:
    """The event time that a stateless fragment must take as the least of several inputs, sources among them.

    Spark's own watermark, with no delay, is that least, one batch behind.
    """
    if fragment.stateful or not fragment.sources or len(fragment.inputs) < 2:
        return None
    passed = [
        column
        for stream in fragment.outputs
        for column in times.columns(stream)
        if times.origin(stream, column) == "passed"
    ]
    return passed[0] if passed else None
