"""How far is each fragment? What sites have reported of batches, commits and backlogs, put together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from weft.bodies.live.costs import OperatorCosts, Taken
from weft.bodies.live.counts import FILE, Counted, as_plain, taken_up
from weft.bodies.live.meter import Meter
from weft.bodies.live.state import State
from weft.bodies.live.uptime import serves
from weft.model import Deployment, dataflow
from weft.plan.changing.fragments import Fragment
from weft.protocol.reporting import BatchDone, BatchWeighed, Committed, Event, FragmentNow, Inbox
from weft.spark.fragments.counts import records_out
from weft.spec import only_filters

HISTORY_MAX = 1000
SYNCS_KEPT = 4096


class Progress:
    """Gathers what sites report for the meter, and keeps in the state what only they tell."""

    def __init__(
        self,
        meter: Meter,
        fragments: Callable[[], Sequence[Fragment]],
        inbox: Inbox | None = None,
        state: State | None = None,
        on_commit: Callable[[Committed], None] = lambda commit: None,
    ) -> None:
        self.meter = meter
        self.inbox = inbox or Inbox()
        self.state = state
        self.costs = OperatorCosts()
        self.history: dict[str, deque[tuple[int, float]]] = {}
        self.syncs_ms: deque[float] = deque(maxlen=SYNCS_KEPT)
        self._fragments = fragments
        self._on_commit = on_commit
        self._batch_ms: dict[str, int] = {}
        self._backlog_max: dict[str, int] = {}
        self._state_kb: dict[str, float] = {}
        self._to_weigh = False
        self._kept: Any = None
        if state is not None:
            self._take_up(state)

    def _take_up(self, state: State) -> None:
        try:
            self.meter.counts = taken_up(state.noted(FILE))
        except ValueError:  # garbled: then nothing is known of earlier runs
            return
        for name, taken in self.meter.counts.operators.items():
            query, _, operator = name.rpartition(".")
            self.costs.taken[query, operator] = Taken(*taken)

    def hear(self, site: str, life: str, event: Event, now_ms: float) -> None:
        """Something has happened at a site, whose clock shows `now_ms` at this moment; told once."""
        match event:
            case Committed():
                self.meter.committed(event, max(0.0, now_ms - event.committed_ms) / 1000)
                self._on_commit(event)
            case BatchDone():
                self._take_batch(event)
            case BatchWeighed():
                self.costs.add(life, event)
                self._to_weigh = True

    def _take_batch(self, done: BatchDone) -> None:
        self._follow()  # one that reads a source on since a move must be known as such before its records count
        if not self.meter.counts.take(done):
            return
        self._batch_ms[done.fragment] = done.busy_ms // max(1, done.batches)
        self._state_kb.update(done.state_kb)
        self.syncs_ms.extend(done.sync_ms)
        recent = self.history.setdefault(done.fragment, deque(maxlen=HISTORY_MAX))
        recent.append((sum(done.sources.values()), done.busy_ms))

    def look(self) -> None:
        """Put together what has been reported since the last look."""
        self._follow()
        timed = {one.name for one in self.meter.deployment.sources if one.facts.timed}
        for fragment, now in self._reported():
            for source, rows in now.sources.items():
                self.meter.timed[fragment.id, source] = rows
            for one in now.waiting:
                if one.segments is None and one.stream in timed:
                    self.meter.at_source[fragment.id, one.stream] = one.records
                    self.meter.looked_ms[one.stream] = self.inbox.at_ms(fragment.site)
            for sink, rows in now.sinks.items():
                self.meter.holds(sink, rows)
            for place, rows in now.late.items():
                self.meter.left_out(place, rows)
            waiting = sum(one.records for one in now.waiting)
            self._backlog_max[fragment.site] = max(self._backlog_max.get(fragment.site, 0), waiting)
        for held in list(self.inbox.sites.values()):
            for source, bad in held.bad.items():
                self.meter.bad["recording", source] = bad
        if self._to_weigh:
            self._to_weigh = False
            self.costs.weigh(self._declared_ms)
        self._keep()

    def _declared_ms(self, query: str, operator: str) -> float | None:
        flow, stream = dataflow(self.meter.deployment), f"{query}.{operator}"
        cost = flow.node(stream).operator.cost_ms if flow.makes(stream) else None
        return None if cost is None else cost.mean_ms

    def forget(self, queries: Collection[str]) -> None:
        """Drop what was weighed of operators of some queries."""
        self.costs.taken = {key: taken for key, taken in self.costs.taken.items() if key[0] not in queries}

    def _reported(self) -> Iterator[tuple[Fragment, FragmentNow]]:
        """The fragments in force of which the site where they run has told."""
        for fragment in self._fragments():
            now = self.inbox.fragment(fragment.site, fragment.id)
            if now is not None:
                yield fragment, now

    def _now(self, name: str) -> FragmentNow | None:
        return next((now for fragment, now in self._reported() if fragment.id == name), None)

    def undrained(self) -> list[str]:
        """Fragments in force that, by what their sites told last, have not come to the end of their inputs.

        A site that came back after its fragments had ended tells nothing of them.
        """
        return [fragment.id for fragment, now in self._reported() if not now.drained]

    def begun(self) -> bool:
        """True if, by what their sites told last, all fragments in force are through with their first batch."""
        found = [now.begun for _, now in self._reported()]
        return len(found) == len(self._fragments()) and all(found)

    def _follow(self) -> None:
        of_files = {one.name for one in self.meter.deployment.sources if not one.facts.timed}
        self.meter.counts.follow({one.id: of_files.intersection(one.sources) for one in self._fragments()})

    def _keep(self) -> None:
        if self.state is None:
            return
        for (query, operator), taken in self.costs.taken.items():
            self.meter.counts.operators[f"{query}.{operator}"] = (taken.records_in, taken.records_out)
        plain = as_plain(self.meter.counts)
        if plain != self._kept:
            self.state.note(FILE, plain)
            self._kept = plain

    def operators(self) -> dict[str, dict[str, Any]]:
        """Records of every operator (`query.operator`), late and filtered ones too, its selectivity and its cost."""
        flow = dataflow(self.meter.deployment)
        found = {}
        for (query, name), values in self.costs.operators().items():
            stream = f"{query}.{name}"
            late = self.meter.late_of(stream)
            filtered = None
            if flow.makes(stream):  # else it was removed since
                known = only_filters(flow.node(stream).operator)
                lost = self.meter.late_of(stream, own=True)
                filtered = max(0, values["records_in"] - values["records_out"] - lost) if known else None
            found[stream] = {**values, "late": late, "filtered": filtered}
        return found

    def channels(self) -> dict[str, dict[str, int]]:
        """Segments and records that wait in every channel, by stream and reader."""
        return {
            f"{one.stream} -> {fragment.id}": {"segments": one.segments, "records": one.records}
            for fragment, now in self._reported()
            for one in now.waiting
            if one.segments is not None
        }

    def waiting(self) -> dict[str, int]:
        """Records that wait in channels and at sources, by the operator (`query.operator`) that will take them."""
        found: dict[str, int] = {}
        for fragment, now in self._reported():
            for one in now.waiting:
                if one.operator and fragment.query is not None:
                    stream = f"{fragment.query}.{one.operator}"
                    found[stream] = found.get(stream, 0) + one.records
        return found

    def state_kb(self) -> dict[str, float]:
        """The size of their state as Spark last told it, by operator (`query.operator`)."""
        return dict(self._state_kb)

    def ordering(self) -> dict[str, dict[str, float]]:
        """How ordering is doing, by the stream it puts in order."""
        return {stream: held for _, now in self._reported() for stream, held in now.ordering.items()}

    def used_s(self, site: str) -> float:
        """CPU seconds that a site's tasks have taken so far."""
        return self.inbox.cpu_s(site)

    def backlog(self, fragment: str) -> int:
        """Records that wait in the channels and at the sources a fragment reads."""
        now = self._now(fragment)
        return 0 if now is None else sum(one.records for one in now.waiting)

    def backlog_of_query(self, query: str) -> int:
        """Records that wait anywhere on the way to a query's results, at its sources too."""
        deployment = self.meter.deployment
        return sum(
            one.records
            for fragment, now in self._reported()
            if serves(deployment, fragment, query)
            for one in now.waiting
        )

    def fragment(self, name: str) -> dict[str, Any]:
        """A fragment's numbers, the records of its operators included; all but `batch_ms` are of all runs."""
        counted = self.meter.counts.fragments.get(name, Counted())
        numbers: dict[str, Any] = {
            "batches": counted.batches,
            "batch_ms": self._batch_ms.get(name),
            "busy_ms": counted.busy_ms,
        }
        for fragment, now in self._reported():
            if fragment.id == name:
                numbers["records_in"] = now.taken + self.meter.counts.records_into(name)
                numbers["records_out"] = self._records_out(fragment, now, counted, numbers["records_in"])
        return numbers

    def _records_out(
        self, fragment: Fragment, now: FragmentNow, counted: Counted, records_in: int
    ) -> dict[str, int | None]:
        """Records out of each operator so far; None where nothing tells."""
        if fragment.query is None:
            return {}
        query = self.meter.deployment.query(fragment.query)
        flow = dataflow(self.meter.deployment)
        return records_out(flow, query, fragment, now.committed, counted.operators, records_in)

    def sites(self, deployment: Deployment, flowing_s: float | None) -> dict[str, dict[str, Any]]:
        """Utilisation, also of the quota, and the longest backlog.

        CPU time of tasks over elapsed time and capacity; of a site with a cap the time of batches, where that is more.
        """
        elapsed_s = max(1e-9, time.monotonic() - flowing_s) if flowing_s else 0.0
        found = {}
        for site in deployment.sites:
            used = self.used_s(site.name) / (elapsed_s * site.capacity) if elapsed_s else 0.0
            found[site.name] = {
                "utilisation": round(used, 4),
                "of_quota": round(used / site.quota, 4) if site.quota else None,
                "queue_max": self._backlog_max.get(site.name, 0),
            }
        return found
