"""What does a site do live? Performs what its agent asks: fences, launches and halts fragments on Spark."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.transport import Transport
from weft.protocol.hosting import (
    Agent,
    Died,
    Drained,
    Fence,
    Halt,
    Halted,
    Launch,
    Launched,
    Refused,
    Remember,
)
from weft.protocol.machine import Effect, Input
from weft.spark.channels.channel import Fenced
from weft.spark.failures.causes import cause_of
from weft.spark.failures.tracebacks import whole


class Launchable(Protocol):
    """A fragment under one epoch, as the Spark side gives it."""

    def start(self) -> None:
        """Begin; returns when it runs."""

    def stop(self, clean: bool = False) -> bool:
        """End it, where `clean` at a batch boundary; returns whether it was one, when nothing of it is alive."""

    def failure(self) -> tuple[str, bool] | None:
        """Why it ended unasked and whether that would come back with every start; None while it runs."""

    def drained(self) -> bool:
        """Whether its inputs have ended and everything is committed."""


class Engine(Protocol):
    """What runs fragments; the only part of a site that knows Spark."""

    def fence(self, fragment: str, epoch: int) -> None:
        """From now on no writer with a lower epoch commits anything for the fragment."""

    def prepare(self, fragment: str, epoch: int) -> Launchable:
        """A fragment ready to start; Fenced where the epoch is too low."""


WATCH_S = 0.25


class SiteBody:
    """One site's agent with its hands: an engine, a memory for epochs, and a watch on what runs."""

    def __init__(
        self,
        name: str,
        remembered: dict[str, int],
        remember: Callable[[str, str, int], None],
        engine: Engine,
        transport: Transport,
        story: Tell,
    ) -> None:
        self.name = name
        self.running: dict[str, tuple[int, Launchable]] = {}
        self._engine = engine
        self._remember = remember
        self._work = ThreadPoolExecutor(max_workers=8, thread_name_prefix=f"site-{name}")
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._gone = threading.Event()
        self.carrier = Carrier(Agent(name, remembered), transport, self._perform, story)
        self._watch = threading.Thread(target=self._look_after, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        """Begin to take orders."""
        self.carrier.start()
        self._watch.start()

    def crash(self) -> None:
        """Be gone at once, as a site that lost its power: nothing is said, nothing ends in order."""
        self._gone.set()
        self.carrier.kill()
        for _, run in list(self.running.values()):
            run.stop()
        self.running.clear()

    def stop(self) -> None:
        """Take no more orders and end what still runs."""
        self._gone.set()
        self.carrier.stop()
        for epoch, run in list(self.running.values()):
            del epoch
            run.stop()
        self._work.shutdown(wait=True, cancel_futures=True)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Remember(fragment=fragment, epoch=epoch):
                self._remember(self.name, fragment, epoch)
            case Fence(fragment=fragment, epoch=epoch):
                self._engine.fence(fragment, epoch)
            case Launch(fragment=fragment, epoch=epoch):
                self._work.submit(self._launch, fragment, epoch)
            case Halt(fragment=fragment, epoch=epoch, clean=clean):
                self._work.submit(self._halt, fragment, epoch, clean)

    def _tell(self, fact: Input) -> None:
        if not self._gone.is_set():
            self.carrier.feed(fact)

    def _turn(self, fragment: str) -> threading.Lock:
        """One thing at a time for each fragment: a halt waits until the launch before it is through."""
        with self._lock:
            return self._turns.setdefault(fragment, threading.Lock())

    def _launch(self, fragment: str, epoch: int) -> None:
        with self._turn(fragment):
            self._launch_now(fragment, epoch)

    def _launch_now(self, fragment: str, epoch: int) -> None:
        try:
            run = self._engine.prepare(fragment, epoch)
            run.start()
        except Fenced as off:
            self._tell(Refused(fragment, epoch, off.fence))
            return
        except Exception as error:
            print(whole(error), file=sys.stderr)  # the command line keeps it in a log
            cause = cause_of(error)
            self._tell(Died(fragment, epoch, cause.text, permanent=cause.permanent))
            return
        with self._lock:
            self.running[fragment] = (epoch, run)
        self._tell(Launched(fragment, epoch))

    def _halt(self, fragment: str, epoch: int, clean: bool) -> None:
        was_clean = False
        with self._turn(fragment):
            held = self.running.get(fragment)
            if held is not None and self._drop(fragment, epoch):
                was_clean = held[1].stop(clean)
        self._tell(Halted(fragment, epoch, clean and was_clean))

    def _look_after(self) -> None:
        while not self._gone.wait(WATCH_S):
            for fragment, (epoch, run) in list(self.running.items()):
                fact = self._ended(fragment, epoch, run)
                turn = self._turn(fragment)
                # Who halts it meanwhile must hear of its end first: else a clean end would look like none.
                if fact is not None and turn.acquire(blocking=False):
                    try:
                        if self._drop(fragment, epoch):
                            run.stop(clean=isinstance(fact, Drained))
                            self._tell(fact)
                    finally:
                        turn.release()

    def _ended(self, fragment: str, epoch: int, run: Launchable) -> Input | None:
        if run.drained():
            return Drained(fragment, epoch)
        failure = run.failure()
        return None if failure is None else Died(fragment, epoch, failure[0], permanent=failure[1])

    def _drop(self, fragment: str, epoch: int) -> bool:
        with self._lock:
            held = self.running.get(fragment)
            if held is None or held[0] != epoch:
                return False
            del self.running[fragment]
            return True
