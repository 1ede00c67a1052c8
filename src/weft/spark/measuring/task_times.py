"""What do the tasks of each query take? Told by Spark as they end, and summed up in its Java: asking costs one call.

Spark's own store tells it stage by stage, at several calls for each, and a little later: in a run of a dozen fragments
a look at all of them took seconds.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from weft.spark.session.compiled import compiled


class TaskTimes:
    """Hears of every task of a session until it is closed; knows nothing where Janino fails."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext._jsc.sc()
        self._told_ms: dict[str, int] = {}
        self._lock = threading.Lock()
        self._heard: Any = None
        try:
            self._heard = compiled(session.sparkContext, "TaskTimes")
            self._context.addSparkListener(self._heard)
        except Py4JError as error:
            self._heard = None
            logging.getLogger(__name__).warning("what tasks take is not known: %s", error)

    def worked_s(self, query: str) -> float | None:
        """Seconds that tasks of a query took since this was last asked; what is told late counts the next time."""
        if self._heard is None:
            return None
        try:
            with self._lock:
                now_ms = int(self._heard.ms(query))
                before_ms, self._told_ms[query] = self._told_ms.get(query, 0), now_ms
        except Py4JError:  # Spark goes
            return None
        return (now_ms - before_ms) / 1000

    def close(self) -> None:
        """Hear no more: the session may be somebody else's."""
        if self._heard is not None:
            self._context.removeSparkListener(self._heard)
            self._heard = None
