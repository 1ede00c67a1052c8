"""What was measured? A line of JSON every period in the run's folder, for plots, for the planner and for the twin.

    {"at_s": 12.3, "clock": 1763190000.0, "operators": {"q.o": {...}}, "queries": {"q": {...}},
     "channels": {"stream -> fragment": {...}}, "sites": {"s": {...}}, "fragments": {"q.o": {...}},
     "observed": {...}}

`observed` is what was measured in the period (`model/observed.py`), all else is of the whole run. A file of more than a
million bytes is put aside once (`.1`, in place of the one before), so that a run that never ends keeps a bounded
history; rates of sources are kept longer (`bodies/live/rates.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from weft.bodies.live.last_run import FILE
from weft.bodies.live.observing import Observer
from weft.bodies.live.rates import SourceRates
from weft.bodies.live.view import RunView
from weft.model import Deployment, Observed

EVERY_S = 5.0
WARMING = 3  # batches of a start that pay for what later ones find ready
RECENT = 30
BYTES_MAX = 1_000_000


class Measurements:
    """Writes what a run measures, every few seconds and at its end."""

    def __init__(self, run: RunView, folder: Path) -> None:
        self.run = run
        self.path = folder / FILE
        self.rates = SourceRates(run.state)
        self._observer = Observer(
            run.deployment, run.meter, lambda site: None if run.sites is None else run.sites.machine(site)
        )
        self._due_s = 0.0

    def know(self, deployment: Deployment) -> None:
        """Measure the queries of another deployment from now on."""
        self._observer.deployment = deployment

    def look(self, finally_: bool = False) -> None:
        """Write a line where one is due."""
        now = time.monotonic()
        if self.run.progress is None or self.run.flowing_s is None or (now < self._due_s and not finally_):
            return
        if self._due_s == 0.0:
            self.rates.take_up()
        self._due_s = now + EVERY_S
        observed = self._observer.observe(self.run.flowed_s(), self.run.progress, self.run.crashed)
        self.rates.take(observed)
        self.rates.keep(finally_)
        if self.path.exists() and self.path.stat().st_size > BYTES_MAX:
            os.replace(self.path, self.path.with_suffix(".jsonl.1"))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(self._line(observed)) + "\n")

    def _line(self, observed: Observed) -> dict[str, Any]:
        run, progress = self.run, self.run.progress
        assert progress is not None
        return {
            "at_s": round(run.flowed_s(), 3),
            "clock": round(time.time(), 3),
            "operators": progress.operators(),
            "queries": {query.name: run.meter.query(query) for query in run.deployment.queries},
            "channels": progress.channels(),
            "sites": progress.sites(run.deployment, run.flowing_s),
            "fragments": {name: _batches(history) for name, history in progress.history.items()},
            "observed": msgspec.to_builtins(observed),
        }


def _batches(history: Collection[tuple[int, float]]) -> dict[str, Any]:
    """How many batches a fragment has had in this run, and what the recent ones took (ms, the median)."""
    took = [took_ms for _, took_ms in history][WARMING:][-RECENT:]
    return {"batches": len(history), "batch_ms": median(took) if took else None}
