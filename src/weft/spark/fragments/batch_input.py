"""What does a batch bring to its fragment? Offsets, positions, births and ends, as Spark wrote them before it ran."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from weft.plan.changing.fragments import Fragment, source_of
from weft.spark.channels.manifest import Manifest
from weft.spark.checkpoints import offsets as batches
from weft.spark.checkpoints.offsets import Arrival, Offsets
from weft.spark.fragments.batch_times import BatchTimes, Births
from weft.spark.fragments.late import LateRecords
from weft.spark.fragments.wiring import Entry, RunContext
from weft.spark.sources.kafka import BORN

# Up to so many records, and so many bytes in channels, a batch is small: this process can hold it.
FEW = 20_000
FEW_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class BatchInput:
    """What a batch brings to every output."""

    offsets: Offsets
    arrivals: dict[str, Arrival]
    births: Births
    ended: bool
    births_known: bool = True


class BatchInputs:
    """Reads what each batch of one run brings; `previous` is the last that was written, with its offsets."""

    def __init__(
        self, context: RunContext, fragment: Fragment, batch_times: BatchTimes, checkpoint: Path, late: LateRecords
    ) -> None:
        self.entries: list[Entry] = []
        self.has_ticks = False
        self.previous: tuple[int, Offsets] | None = None
        self.sources_done = False
        self._context, self._fragment = context, fragment
        self._batch_times, self._checkpoint, self._late = batch_times, checkpoint, late

    def of(self, batch: int) -> BatchInput:
        """What a batch brings, as far as can be told before its records are read."""
        offsets = batches.read_offsets(self._checkpoint, batch)
        assert offsets is not None, f"batch {batch} runs without offsets"
        before = self._offsets_before(batch)
        arrivals = {entry.name: self._batch_times.arrival(entry, before, offsets) for entry in self.entries}
        comes_later = self._batch_times.topics(self.entries)
        births = None if comes_later else self._batch_times.births(arrivals, before, offsets)
        return BatchInput(offsets, arrivals, births, self._has_ended(arrivals, offsets), not comes_later)

    def with_births(self, brought: BatchInput, batch: int) -> BatchInput:
        """The same, with the births that records brought along, now that they were read."""
        if brought.births_known:
            return brought
        execution = self._late.execution()
        arrivals = dict(brought.arrivals)
        for entry in self._batch_times.topics(self.entries):
            seen = None if execution is None else execution.observedMetrics().get(f"{BORN}{entry.name}")
            if seen is not None and seen.isDefined():
                first, last, rows = (seen.get().get(index) for index in range(3))
                born = None if first is None else (float(first), float(last))
                arrivals[entry.name] = replace(arrivals[entry.name], birth_ms=born, rows=int(rows))
        births = self._batch_times.births(arrivals, self._offsets_before(batch), brought.offsets)
        return replace(brought, arrivals=arrivals, births=births, births_known=True)

    def _offsets_before(self, batch: int) -> Offsets | None:
        if self.previous is not None and self.previous[0] == batch - 1:
            return self.previous[1]
        return batches.read_offsets(self._checkpoint, batch - 1)

    def _has_ended(self, arrivals: dict[str, Arrival], offsets: Offsets) -> bool:
        if not self._batch_times.windows_closed(self.entries, offsets):
            return False
        return all(self._entry_ended(entry, arrivals[entry.name]) for entry in self.entries)

    def _entry_ended(self, entry: Entry, arrival: Arrival) -> bool:
        if entry.is_channel:
            return arrival.end
        if not self.has_ticks:
            return self.sources_done
        return (self._context.folders.ticks(self._fragment.id) / "end.json").exists()

    def are_few(self, brought: BatchInput, last: Manifest | None) -> bool:
        """True if a batch gives few records, as far as can be told from what it takes in and from the one before."""
        arrivals = brought.arrivals.values()
        known = sum(arrival.rows or 0 for arrival in arrivals)
        if known > FEW or sum(arrival.bytes for arrival in arrivals) > FEW_BYTES or brought.ended:
            return False
        if self._fragment.stateful is None and all(arrival.rows is not None for arrival in arrivals):
            return True
        return last is not None and last.rows <= FEW

    def entered(self, brought: BatchInput) -> dict[tuple[str, str], int | None]:
        """Records that each operator took from outside, by what it calls the stream."""
        ours = f"{self._fragment.query}."
        return {
            (entry.operator, source_of(entry.stream).removeprefix(ours)): brought.arrivals[entry.name].rows
            for entry in self.entries
            if entry.operator is not None
        }
