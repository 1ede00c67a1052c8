"""How long are records at the operators of a site, and results on their way? Reckoned from what the site measures.

Records are in a fragment for as long as they wait for a batch and for as long as that takes. How long they wait follows
from how many wait, in the mean, and how many are taken a second (Little's law). What a fragment takes is that of those
of its operators that read from outside it: behind them all happens within the same batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.model import Deployment, dataflow, sink_name
from weft.plan.changing.fragments import Fragment
from weft.protocol.reporting import BatchDone, Committed, FragmentNow, Measured


@dataclass(slots=True)
class _Period:
    """What a fragment did since the last look."""

    batches: int = 0
    busy_ms: int = 0
    waiting: list[int] = field(default_factory=list)
    of_files: int = 0
    taken: int = 0
    then: tuple[int, int] | None = None
    """Its epoch, and the records that it had taken by the last look."""

    def add(self, now: FragmentNow) -> None:
        self.waiting.append(sum(one.records for one in now.waiting))
        if self.then is not None and self.then[0] == now.epoch:
            self.taken += max(0, now.taken - self.then[1])
        self.then = (now.epoch, now.taken)

    def ms(self, seconds: float) -> float | None:
        """How long a record was in it; None where none was."""
        records = self.taken + self.of_files
        if not self.batches or not records or not self.waiting:
            return None
        waits_ms = 1000.0 * seconds * sum(self.waiting) / len(self.waiting) / records
        return waits_ms + self.busy_ms / self.batches


class SiteTimes:
    """Counts what one site measures between two looks."""

    def __init__(self) -> None:
        self._periods: dict[str, _Period] = {}
        self._results: dict[str, tuple[float, int]] = {}

    def add(self, measured: Measured) -> None:
        """Take in what the site has measured."""
        for event in measured.events:
            match event:
                case BatchDone():
                    period = self._periods.setdefault(event.fragment, _Period())
                    period.batches += event.batches
                    period.busy_ms += event.busy_ms
                    period.of_files += sum(event.sources.values())
                case Committed(sink=True, late=False, birth_ms=(first_ms, last_ms)) if event.rows:
                    took_ms, rows = self._results.get(event.stream, (0.0, 0))
                    mean_ms = event.committed_ms - (first_ms + last_ms) / 2
                    self._results[event.stream] = (took_ms + mean_ms * event.rows, rows + event.rows)
        for now in measured.now.fragments:
            self._periods.setdefault(now.fragment, _Period()).add(now)

    def look(
        self, deployment: Deployment, running: Mapping[str, Fragment], seconds: float
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Milliseconds by operator that had records since the last look, and by query that gave results here."""
        flow, took = dataflow(deployment), {}
        for name, fragment in running.items():
            ms = self._periods[name].ms(seconds) if name in self._periods else None
            for stream in fragment.streams if ms is not None else ():
                if not flow.makes(stream):
                    continue
                enters = any(one not in fragment.streams for one in flow.node(stream).inputs)
                took[stream] = round(ms) if enters and ms is not None else 0
        delays = {}
        for query in deployment.queries:
            held = [self._results[name] for sink in query.sinks if (name := sink_name(query, sink)) in self._results]
            if held:
                delays[query.name] = max(0, round(sum(ms for ms, _ in held) / sum(rows for _, rows in held)))
        self._results = {}
        self._periods = {name: _Period(then=self._periods[name].then) for name in running if name in self._periods}
        return took, delays
