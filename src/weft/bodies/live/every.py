"""When is it time again? Tasks of a run that are done every so many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable


class Every:
    """A task that is due at once, and again so many seconds after each time."""

    def __init__(self, seconds: float, task: Callable[[], None]) -> None:
        self.seconds = seconds
        self.task = task
        self._due_s = 0.0

    def look(self, now: bool = False) -> None:
        """Do the task where it is due, or `now`."""
        moment_s = time.monotonic()
        if now or moment_s >= self._due_s:
            self._due_s = moment_s + self.seconds
            self.task()
