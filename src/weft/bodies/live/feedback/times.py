"""How long are records at the operators of a site, and results on their way? Reckoned from what the site measures.

Records are in a fragment for as long as they wait for a batch and for as long as that takes. How long they wait follows
from how many wait, in the mean, and how many are taken a second (Little's law). What a fragment takes is that of those
of its operators that read from outside it: behind them all happens within the same batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.model import Deployment, dataflow, sink_name
from weft.plan.changing.fragments import Fragment
from weft.protocol.reporting import BatchDone, Committed, FragmentNow, Measured


@dataclass(slots=True)
class _Period:
    """What a fragment did since it was last reckoned.

    A batch may be told later than the records that it took, and take longer than the time between two looks: so what
    does not tell yet is kept for the next look.
    """

    since_s: float
    batches: int = 0
    busy_ms: int = 0
    waiting: int = 0
    looks: int = 0
    of_files: int = 0
    taken: int = 0
    then: tuple[int, int] | None = None
    """Its epoch, and the records that it had taken by the last report."""

    def add(self, now: FragmentNow) -> None:
        self.waiting += sum(one.records for one in now.waiting)
        self.looks += 1
        if self.then is not None and self.then[0] == now.epoch:
            self.taken += max(0, now.taken - self.then[1])
        self.then = (now.epoch, now.taken)

    def ms(self, now_s: float) -> float | None:
        """How long a record was in it; None where that is not known yet."""
        records = self.taken + self.of_files
        if not self.batches or not records or not self.looks:
            return None
        waits_ms = 1000.0 * (now_s - self.since_s) * self.waiting / self.looks / records
        return waits_ms + self.busy_ms / self.batches


class SiteTimes:
    """Counts what one site measures between two looks."""

    def __init__(self) -> None:
        self._periods: dict[str, _Period] = {}
        self._results: dict[str, tuple[float, int]] = {}

    def add(self, measured: Measured, measured_s: float) -> None:
        """Take in what the site has measured at a moment."""
        for event in measured.events:
            match event:
                case BatchDone():
                    period = self._periods.setdefault(event.fragment, _Period(measured_s))
                    period.batches += event.batches
                    period.busy_ms += event.busy_ms
                    period.of_files += sum(event.sources.values())
                case Committed(sink=True, late=False, birth_ms=(first_ms, last_ms)) if event.rows:
                    took_ms, rows = self._results.get(event.stream, (0.0, 0))
                    mean_ms = event.committed_ms - (first_ms + last_ms) / 2
                    self._results[event.stream] = (took_ms + mean_ms * event.rows, rows + event.rows)
        for now in measured.now.fragments:
            self._periods.setdefault(now.fragment, _Period(measured_s)).add(now)

    def look(
        self, deployment: Deployment, running: Mapping[str, Fragment], now_s: float
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Milliseconds by operator of which news is known, and by query that gave results here since the last look."""
        flow, took = dataflow(deployment), {}
        self._periods = {name: self._periods[name] for name in running if name in self._periods}
        for name, period in list(self._periods.items()):
            ms, streams = period.ms(now_s), running[name].streams
            if ms is None:
                continue
            self._periods[name] = _Period(now_s, then=period.then)
            for stream in streams:
                if flow.makes(stream):
                    enters = any(one not in streams for one in flow.node(stream).inputs)
                    took[stream] = round(ms) if enters else 0
        delays = {}
        for query in deployment.queries:
            held = [self._results[name] for sink in query.sinks if (name := sink_name(query, sink)) in self._results]
            if held:
                delays[query.name] = max(0, round(sum(ms for ms, _ in held) / sum(rows for _, rows in held)))
        self._results = {}
        return took, delays
