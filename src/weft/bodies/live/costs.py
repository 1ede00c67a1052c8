"""What do operators do to records? Cost and selectivity of each, from what every batch took and gave."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.model import Query
from weft.plan.changing.fragments import Fragment
from weft.plan.observing.regression import Costs, fit
from weft.spark.fragments.counts import BatchCounts, records_in, records_out
from weft.spark.measuring.progress import Work

BATCHES_MAX = 256
WARMING = 3  # batches of a start that pay for what later ones find ready: compiled code, Python processes


@dataclass(slots=True)
class Taken:
    """Records into and out of an operator, over the batches in which both were known."""

    records_in: int = 0
    records_out: int = 0


@dataclass(slots=True)
class _Batches:
    """Batches of a fragment as it is cut now: a row of records into each operator, and the work they were."""

    fragment: Fragment
    seen: int = 0
    records: deque[list[float]] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))
    work: deque[Work] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))

    def costs(self) -> Costs | None:
        """What the batches tell of the costs in them."""
        if not self.records:
            return None
        tasks, work_ms = np.array([(work.tasks, work.ms) for work in self.work]).T
        return fit(np.array(self.records), tasks, work_ms)


class OperatorCosts:
    """Hears of every batch; estimates cost per record and selectivity of operators."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], Taken] = {}
        self._batches: dict[str, _Batches] = {}
        self._known_ms: dict[tuple[str, str], float] = {}

    def add(
        self,
        query: Query,
        fragment: Fragment,
        counts: BatchCounts,
        observed: Mapping[str, int],
        from_files: Mapping[str, int],
        work: Work | None,
    ) -> None:
        """A batch is done."""
        entered = {key: from_files.get(key[1], 0) if rows is None else rows for key, rows in counts.entered.items()}
        all_in = sum(entered.values())
        gave = records_out(query, fragment, counts.committed, observed, all_in)
        took = records_in(query, fragment, entered, gave)
        for name in fragment.operators:
            into, out = took[name], gave[name]
            if into is not None and out is not None:
                taken = self.taken.setdefault((query.name, name), Taken())
                taken.records_in += into
                taken.records_out += out
        held = self._batches.get(fragment.id)
        if held is None or held.fragment.operators != fragment.operators:
            held = self._batches[fragment.id] = _Batches(fragment)
        held.seen += 1
        if work is not None and held.seen > WARMING and all(took[name] is not None for name in fragment.operators):
            held.records.append([float(took[name] or 0) for name in fragment.operators])
            held.work.append(work)

    def started(self, fragment: str) -> None:
        """A fragment starts anew, and warms up again."""
        if fragment in self._batches:
            self._batches[fragment].seen = 0

    def weigh(self) -> None:
        """Estimate costs anew from the batches at hand."""
        for held in self._batches.values():
            found = held.costs()
            if found is not None and held.fragment.query is not None:
                for name, cost_ms in zip(held.fragment.operators, found.record_ms, strict=True):
                    self._known_ms[held.fragment.query, name] = cost_ms

    def operators(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Records in and out, selectivity and cost of every operator that has run; None where nothing tells."""
        return {
            key: {
                "records_in": taken.records_in,
                "records_out": taken.records_out,
                "selectivity": round(taken.records_out / taken.records_in, 6) if taken.records_in else None,
                "cost_ms": round(self._known_ms[key], 6) if key in self._known_ms else None,
            }
            for key, taken in sorted(self.taken.items())
        }
