"""What would be better? Rules look at what was measured in every period; what they wish is done, or only told."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from weft.bodies.live.carrier import Tell
from weft.bodies.live.controlling import THE_END, Controlling
from weft.bodies.live.meter import Meter
from weft.bodies.live.observing import Counting, Observer
from weft.bodies.live.transport import Transport
from weft.model import Advise, Deployment, MachineState, Placement
from weft.model.wishes import MoveTo
from weft.protocol.control import AskFor, Consider, looks_every_s
from weft.protocol.machine import Effect


class Advising(Controlling):
    """A controller that is told what was measured; what rules wish goes to `grant`, unless they only advise."""

    def __init__(
        self,
        deployment: Deployment,
        meter: Meter,
        running: Callable[[], Placement],
        transport: Transport,
        story: Tell,
        machine: Callable[[str], MachineState | None] = lambda site: None,
    ) -> None:
        super().__init__(deployment, running, transport, story, advises=deployment.control.advise is not None)
        self.grant: Callable[[MoveTo, Callable[[str | None], None]], object] = lambda wish, told: None
        self._observer = Observer(deployment, meter, machine)
        self._period_s = looks_every_s(deployment) or Advise().period_s
        self._due_s = 0.0
        self._looking = False
        self._failure: BaseException | None = None
        # Rules may take longer to look than a person waits: they do it beside the controller.
        self._work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rules")

    def know(self, deployment: Deployment) -> None:
        """Rules look at another deployment from now on."""
        super().know(deployment)
        self._observer.deployment = deployment

    def look(self, at_s: float, progress: Counting, lost: Collection[str]) -> None:
        """Hand on what was measured up to `at_s` seconds of flow, where a period has passed; the first begins one."""
        if time.monotonic() < self._due_s or self._looking:
            return  # not yet, or rules still look at what was measured before
        observed = self._observer.observe(at_s, progress, lost)
        with self._lock:
            facts = self._rounds.measured(observed, self._running()) if self._due_s else []
        self._due_s = time.monotonic() + self._period_s
        for fact in facts:
            self._carrier.feed(fact)

    def stop(self) -> None:
        """Say no more."""
        self._work.shutdown(wait=False, cancel_futures=True)
        super().stop()

    def latest(self) -> dict[str, Any]:
        """What is advised now, as the commands print it."""
        failure = self._carrier.failure or self._failure
        return {"failed": str(failure)} if failure is not None else self._rounds.latest() or {}

    def _perform(self, effect: Effect) -> None:
        super()._perform(effect)
        with self._lock:
            self._rounds.told(effect)
        if isinstance(effect, AskFor):
            wish = self._rounds.granted(effect.number)
            told = partial(self._over, effect.number)
            if wish is not None and self._leaving:
                told(THE_END)
            elif wish is not None:
                self.grant(wish, told)
        if isinstance(effect, Consider):
            self._looking = True
            self._work.submit(self._consider, effect.number)

    def _consider(self, number: int) -> None:
        try:
            found = self._rounds.desires()
            with self._lock:
                facts = self._rounds.wishes(number, found)
            for fact in facts:
                self._carrier.feed(fact)
            self._failure = None
        except Exception as error:
            self._failure = error
        finally:
            self._looking = False
