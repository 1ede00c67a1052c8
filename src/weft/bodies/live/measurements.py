"""What was measured? A line of JSON now and then in the run's folder, for plots, for the planner and for the twin.

    {"at_s": 12.3, "clock": 1763190000.0, "operators": {"q.o": {...}}, "queries": {"q": {...}},
     "channels": {"stream -> fragment": {...}}, "sites": {"s": {...}}}

A file that has grown long is put aside once (`.1`), so that a run that never ends keeps a bounded history.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from weft.bodies.live.view import RunView

FILE = "measurements.jsonl"
EVERY_S = 5.0
BYTES_MAX = 1_000_000


class Measurements:
    """Writes what a run measures, every few seconds and at its end."""

    def __init__(self, run: RunView, folder: Path) -> None:
        self.run = run
        self.path = folder / FILE
        self._due_s = 0.0

    def look(self, finally_: bool = False) -> None:
        """Write a line where one is due."""
        now = time.monotonic()
        if self.run.progress is None or self.run.flowing_s is None or (now < self._due_s and not finally_):
            return
        self._due_s = now + EVERY_S
        if self.path.exists() and self.path.stat().st_size > BYTES_MAX:
            os.replace(self.path, self.path.with_suffix(".jsonl.1"))
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(self._line()) + "\n")

    def _line(self) -> dict[str, Any]:
        run, progress = self.run, self.run.progress
        assert progress is not None
        return {
            "at_s": round(run.flowed_s(), 3),
            "clock": round(time.time(), 3),
            "operators": progress.operators(),
            "queries": {query.name: run.meter.query(query) for query in run.deployment.queries},
            "channels": progress.channels(),
            "sites": progress.sites(run.deployment, run.flowing_s),
        }


def last_measured(folder: Path) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Cost and selectivity of operators (query, operator) as the last run in a state folder measured them."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            told = json.loads(line)["operators"]
            split = {(name.rpartition(".")[0], name.rpartition(".")[2]): values for name, values in told.items()}
            return {key: (_number(one["cost_ms"]), _number(one["selectivity"])) for key, one in split.items()}
        except (ValueError, KeyError, TypeError, AttributeError):  # a line that a crash cut off, or no such line
            continue
    return {}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
