"""A parallel map on Spark: what it runs is passed in, failures come back as values, results as they are ready."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

ROUNDS_MIN = 20
_pickle: Any = cloudpickle


@dataclass(frozen=True, slots=True)
class Done:
    """One item worked on: its result, or why there is none."""

    index: int
    result: Any = None
    error: str | None = None


def attempt(work: Callable[[Any], Any], index: int, item: Any) -> Done:
    """Works on one item; what goes wrong is told, not raised."""
    try:
        return Done(index, work(item))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Done(index, error=f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})")


def parallel_map(
    session: SparkSession, work: Callable[[Any], Any], items: Sequence[Any], carried: ModuleType | None = None
) -> Iterator[Done]:
    """Works on all items, a round at a time so that progress can be shown; every item comes back once, in order.

    Workers import what `work` names; a module that they cannot know is `carried` to them by value.
    """
    if carried is not None:
        _pickle.register_pickle_by_value(carried)
    try:
        yield from _rounds(session, work, items)
    finally:
        if carried is not None:
            _pickle.unregister_pickle_by_value(carried)


def _rounds(session: SparkSession, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Done]:
    context = session.sparkContext
    cores = context.defaultParallelism
    size = max(cores, -(-len(items) // ROUNDS_MIN))
    for start in range(0, len(items), size):
        numbered = list(enumerate(items[start : start + size], start))
        pieces = context.parallelize(numbered, min(len(numbered), 4 * cores))
        yield from pieces.map(lambda one: attempt(work, *one)).collect()
