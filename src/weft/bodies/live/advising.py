"""What would be better? A controller that looks at what was measured every period of a run, and only advises."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from weft.bodies.live.calibration import known_costs
from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.measure import Meter
from weft.bodies.live.observing import Counting, Observer
from weft.bodies.live.transport import Transport
from weft.model import Advise, Deployment, Placement
from weft.plan import counting_hops
from weft.protocol.control import Consider, Controller, Rounds
from weft.protocol.machine import Effect

CONTROLLER = "controller"
WAIT_S_MAX = 0.1


class Advising:
    """A controller in a thread of its own; nothing is changed by it, and nothing fails with it."""

    def __init__(
        self, deployment: Deployment, meter: Meter, running: Callable[[], Placement], transport: Transport, story: Tell
    ) -> None:
        self._running = running
        self._observer = Observer(deployment, meter)
        self._rounds = Rounds(counting_hops(deployment, known_costs()[0].hop_ms), running())
        self._carrier = Carrier(Controller(CONTROLLER, advises=True), transport, self._perform, story)
        self._period_s = (deployment.control.advise or Advise()).period_s
        self._due_s = 0.0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin."""
        self._carrier.start()

    def look(self, at_s: float, progress: Counting, lost: Collection[str]) -> None:
        """Hand on what was measured up to `at_s` seconds of flow, where a period has passed; the first begins one."""
        if time.monotonic() < self._due_s or not self._lock.acquire(timeout=WAIT_S_MAX):
            return  # not yet, or rules still look at what was measured before
        try:
            observed = self._observer.observe(at_s, progress, lost)
            facts = self._rounds.measured(observed, self._running()) if self._due_s else []
            self._due_s = time.monotonic() + self._period_s
        finally:
            self._lock.release()
        for fact in facts:
            self._carrier.feed(fact)

    def stop(self) -> None:
        """Say no more."""
        self._carrier.stop()

    def latest(self) -> dict[str, Any]:
        """What is advised now, as the commands print it."""
        if self._carrier.failure is not None:
            return {"failed": str(self._carrier.failure)}
        return self._rounds.latest() or {}

    def _perform(self, effect: Effect) -> None:
        with self._lock:
            self._rounds.told(effect)
            facts = self._rounds.considered(effect.number) if isinstance(effect, Consider) else []
        for fact in facts:
            self._carrier.feed(fact)
