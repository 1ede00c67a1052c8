"""What do operators do to records? Cost and selectivity of each, from what every batch took and gave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.plan.observing.regression import Costs, fit
from weft.protocol.reporting import BatchWeighed

BATCHES_MAX = 256
DeclaredCost = Callable[[str, str], float | None]
"""What a record costs an operator of a query by the file; None where it does not say."""

WARMING = 3  # batches of a start that pay for what later ones find ready: compiled code, Python processes


@dataclass(slots=True)
class Taken:
    """Records into and out of an operator, over the batches in which both were known."""

    records_in: int = 0
    records_out: int = 0


@dataclass(slots=True)
class _Batches:
    """Batches of a fragment as it is cut now: a row of records into each operator, and the work they were."""

    query: str
    operators: tuple[str, ...]
    start: tuple[str, int]
    seen: int = 0
    records: deque[list[float]] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))
    work: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))

    def costs(self, declared_ms: DeclaredCost) -> Costs | None:
        """What the batches tell of the costs in them."""
        if not self.records:
            return None
        tasks, work_ms = np.array(self.work).T
        declared = [declared_ms(*_named(self.query, name)) for name in self.operators]
        return fit(np.array(self.records), tasks, work_ms, declared)


class OperatorCosts:
    """Hears of every batch; estimates cost per record and selectivity of operators."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, str], Taken] = {}
        self._batches: dict[str, _Batches] = {}
        self._known_ms: dict[tuple[str, str], float] = {}

    def add(self, life: str, batch: BatchWeighed) -> None:
        """A batch is done, in a life of its site; a fragment that starts anew warms up again."""
        for name, into, out in zip(batch.operators, batch.into, batch.out, strict=True):
            if into is not None and out is not None:
                taken = self.taken.setdefault(_named(batch.query, name), Taken())
                taken.records_in += into
                taken.records_out += out
        held, start = self._batches.get(batch.fragment), (life, batch.start)
        if held is None or held.operators != batch.operators:
            held = self._batches[batch.fragment] = _Batches(batch.query, batch.operators, start)
        if held.start != start:
            held.start, held.seen = start, 0
        held.seen += 1
        known = [float(rows) for rows in batch.into if rows is not None]
        if batch.work_ms is not None and held.seen > WARMING and len(known) == len(batch.operators):
            held.records.append(known)
            held.work.append((batch.tasks, batch.work_ms))

    def weigh(self, declared_ms: DeclaredCost) -> None:
        """Estimate costs anew from the batches at hand; what these cannot tell apart, the declared costs do."""
        for held in self._batches.values():
            found = held.costs(declared_ms)
            if found is not None:
                for name, cost_ms in zip(held.operators, found.record_ms, strict=True):
                    self._known_ms[_named(held.query, name)] = cost_ms

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


def _named(query: str, name: str) -> tuple[str, str]:
    """The query and the name of an operator of a fragment, which names those of other queries by their streams."""
    if "." not in name:
        return query, name
    owner, _, own = name.partition(".")
    return owner, own
