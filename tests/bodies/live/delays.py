"""What sites measure of records that take so long: an engine without Spark whose batches and results tell of delays."""

from __future__ import annotations

import threading
import time

from tests.bodies.drawn_moves import Fake, _Launch
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.task import Task
from weft.protocol.reporting import BatchDone, Committed, Event, FragmentNow, Measured, SiteNow


class Delaying(Fake):
    """Batches of 200 ms with ten records each, and results that took as long as `delay_ms` says."""

    delay_ms = 1000.0

    def __init__(self) -> None:
        super().__init__()
        self.fragments: dict[tuple[str, int], Fragment] = {}
        self._looks = 0
        self._guard = threading.Lock()

    def prepare(self, task: Task, epoch: int) -> _Launch:
        self.fragments[task.fragment.id, epoch] = task.fragment
        return super().prepare(task, epoch)

    def measure(self, finally_: bool = False) -> Measured:
        with self._guard:
            self._looks += 1
            events: list[Event] = []
            told: list[FragmentNow] = []
            for name, epoch in list(self.alive):
                events.append(BatchDone(name, 0, self._looks, 200))
                told.append(FragmentNow(name, epoch, 0, taken=10 * self._looks))
                now_ms = time.time() * 1000
                born_ms = (now_ms - self.delay_ms, now_ms - self.delay_ms)
                for sink in self.fragments[name, epoch].sinks:
                    events.append(Committed(name, sink, True, self._looks, 10, 10 * self._looks, now_ms, born_ms))
            return Measured(tuple(events), SiteNow(tuple(told), 0.0))
