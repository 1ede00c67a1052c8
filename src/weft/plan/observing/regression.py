"""What does a record cost? Time of batches regressed on the records each operator took in, and on their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCHES_MIN = 8
SPREAD_MIN = 0.05  # batches all of one size do not tell what is fixed and what each record adds
RIDGE = 1e-6
ROUNDS = 30
SHARE_MIN = 1e-3  # of the greatest declared cost: nothing is free


@dataclass(frozen=True, slots=True)
class Costs:
    """What a batch costs whatever is in it, what each of its tasks adds, and each record into each operator."""

    fixed_ms: float
    task_ms: float
    record_ms: tuple[float, ...]


def fit(
    records: NDArray[np.float64], tasks: NDArray[np.float64], work_ms: NDArray[np.float64],
    declared_ms: Sequence[float | None] = (),
) -> Costs | None:  # fmt: skip
    """The costs that explain batches best, by least absolute errors; None where the batches do not tell.

    `records` has a row for each batch and a column for each operator. Operators whose counts only ever rise and fall
    together cannot be told apart: they share the cost as `declared_ms` has it, evenly where it has nothing: a slight
    pull towards one common factor sees to that.
    Batches of more records tend to have more tasks, and each task costs something by itself: left out, that would look
    like the records' doing.
    """
    total = records.sum(axis=1)
    if len(work_ms) < BATCHES_MIN or total.max(initial=0.0) <= 0 or total.std() < SPREAD_MIN * total.mean():
        return None
    shares = _shares(records.shape[1], declared_ms)
    shared = records * shares
    # Columns: a constant, tasks, all records together, and each operator's own deviation from the common factor.
    together = shared.sum(axis=1)
    scale, most = together.max(), max(1.0, tasks.max())
    design = np.column_stack([np.ones(len(total)), tasks / most, together / scale, shared / scale])
    pull = RIDGE * len(total) * np.diag([0.0, 1.0, 0.0, *np.ones(records.shape[1])])
    error_least = 1e-3 * max(1.0, float(np.median(work_ms)))
    weights = np.ones(len(total))
    found: NDArray[np.floating] = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        weighted = design * weights[:, None]
        found = np.linalg.solve(design.T @ weighted + pull, weighted.T @ work_ms)
        weights = 1 / np.maximum(np.abs(design @ found - work_ms), error_least)
        weights /= weights.mean()
    each = np.maximum(0.0, (found[2] + found[3:]) / scale) * shares
    fixed_ms, task_ms = (max(0.0, float(value)) for value in (found[0], found[1] / most))
    return Costs(fixed_ms, task_ms, tuple(float(value) for value in each))


def _shares(count: int, declared_ms: Sequence[float | None]) -> NDArray[np.float64]:
    """What operators cost relative to one another, as declared; one of which nothing is declared is as the mean."""
    known = [cost_ms for cost_ms in declared_ms if cost_ms]
    if not known:
        return np.ones(count)
    most, mean = max(known), sum(known) / len(known)
    return np.array([max(SHARE_MIN, (mean if cost_ms is None else cost_ms) / most) for cost_ms in declared_ms])
