"""What does a record cost? Time of batches regressed on the records each operator took in, and on their tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCHES_MIN = 8
SPREAD_MIN = 0.05  # batches all of one size do not tell what is fixed and what each record adds
RIDGE = 1e-5
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Costs:
    """What a batch costs whatever is in it, what each of its tasks adds, and each record into each operator."""

    fixed_ms: float
    task_ms: float
    record_ms: tuple[float, ...]


def fit(records: NDArray[np.float64], tasks: NDArray[np.float64], work_ms: NDArray[np.float64]) -> Costs | None:
    """The costs that explain batches best, by least absolute errors; None where the batches do not tell.

    `records` has a row for each batch and a column for each operator. Operators whose counts only ever rise and fall
    together cannot be told apart: they share the cost evenly, which a slight pull towards one common cost sees to.
    Batches of more records tend to have more tasks, and each task costs something by itself: left out, that would look
    like the records' doing.
    """
    total = records.sum(axis=1)
    if len(work_ms) < BATCHES_MIN or total.max(initial=0.0) <= 0 or total.std() < SPREAD_MIN * total.mean():
        return None
    # Columns: a constant, tasks, all records together, and each operator's own deviation from the common cost.
    scale, most = total.max(), max(1.0, tasks.max())
    design = np.column_stack([np.ones(len(total)), tasks / most, total / scale, records / scale])
    pull = RIDGE * len(total) * np.diag([0.0, 1.0, 0.0, *np.ones(records.shape[1])])
    error_least = 1e-3 * max(1.0, float(np.median(work_ms)))
    weights = np.ones(len(total))
    found: NDArray[np.floating] = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        weighted = design * weights[:, None]
        found = np.linalg.solve(design.T @ weighted + pull, weighted.T @ work_ms)
        weights = 1 / np.maximum(np.abs(design @ found - work_ms), error_least)
        weights /= weights.mean()
    each = np.maximum(0.0, (found[2] + found[3:]) / scale)
    fixed_ms, task_ms = (max(0.0, float(value)) for value in (found[0], found[1] / most))
    return Costs(fixed_ms, task_ms, tuple(float(value) for value in each))
