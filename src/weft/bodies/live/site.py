"""What does a site do live? Performs what its host asks: fences, launches and halts fragments on Spark."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Protocol

import msgspec

from weft.bodies.live.balancing.kept import KeptBalance
from weft.bodies.live.balancing.loads import Running
from weft.bodies.live.balancing.site import SiteBalancing
from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.engine import Engine, Launchable
from weft.bodies.live.epochs import SiteEpochs
from weft.bodies.live.parcels import pack, unpack
from weft.bodies.live.preparing import Preparing
from weft.bodies.live.reporting import Attending, Reporting
from weft.bodies.live.transport import Transport, host
from weft.plan.changing.fragments import Fragment
from weft.plan.changing.task import Task
from weft.protocol.agents import RunsHere
from weft.protocol.hosting import (
    Died,
    Drained,
    Fence,
    Halt,
    Halted,
    LastBatchBegun,
    Launch,
    Launched,
    Refused,
    Remember,
)
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import Host
from weft.protocol.words import Parcel
from weft.spark.channels.channel import Fenced
from weft.spark.failures.causes import cause_of
from weft.spark.failures.tracebacks import whole
from weft.spark.fragments.positions import Standing

WATCH_S = 0.25


def cut_of(fragment: Fragment, generation: int) -> str:
    """Tells fragments apart that are cut otherwise, or go on from another checkpoint."""
    return sha256(msgspec.json.encode((fragment, generation))).hexdigest()[:32]


class Companion(Protocol):
    """What a site carries beside its host, and runs without."""

    def start(self) -> None:
        """Begin; returns at once."""

    def stop(self) -> None:
        """End in order."""

    def crash(self) -> None:
        """Be gone, as with a loss of power."""


class SiteBody:
    """One site's host with its hands: an engine, a memory for epochs, a watch on what runs, and what it tells of it."""

    def __init__(
        self, name: str, epochs: SiteEpochs, balance: KeptBalance, engine: Engine, transport: Transport, story: Tell,
        measured: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self.companions: list[Companion] = []
        """They start, stop and are lost with the site; see `companions`."""
        self.running: dict[str, tuple[int, Launchable]] = {}
        self._engine = engine
        self._epochs = epochs
        self._work = ThreadPoolExecutor(max_workers=8, thread_name_prefix=f"site-{name}")
        self._lock = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}
        self._gone = threading.Event()
        self._preparing = Preparing(engine, self._work, self._tell, self._gone)
        self.balancing = SiteBalancing(name, balance, transport, story, self.fragments)
        self._reporting = Reporting(name, engine, self.balancing, transport, self._gone, story, measured)
        self.carrier = Carrier(Host(name, epochs.remembered()), host(name), transport, self._perform, story)
        self._watch = threading.Thread(target=self._look_after, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        """Begin to take orders."""
        self.carrier.start()
        self._reporting.start()
        self._watch.start()
        for one in self.companions:
            one.start()

    def crash(self) -> None:
        """Be gone at once, as a site that lost its power: nothing is said, nothing ends in order."""
        self._gone.set()
        for one in self.companions:
            one.crash()
        self._reporting.stop()
        self.balancing.crash()
        self.carrier.kill()
        for _, run in list(self.running.values()):
            run.stop()
        self.running.clear()
        self._engine.lose()

    def stop(self) -> None:
        """Take no more orders and end what still runs."""
        self._gone.set()
        for one in self.companions:
            one.stop()
        self._reporting.stop()
        self.balancing.stop()
        self.carrier.stop()
        for _, run in list(self.running.values()):
            run.stop()
        self._engine.close()
        self._work.shutdown(wait=True, cancel_futures=True)

    def runs(self) -> tuple[RunsHere, ...]:
        """What runs here, for a desk that begins anew."""
        found = []
        for fragment, (epoch, run) in list(self.running.items()):
            stands = run.standing()
            found.append(RunsHere(fragment, epoch, cut_of(stands.fragment, stands.generation)))
        return tuple(found)

    def attend(self, one: Attending) -> None:
        """Let something know all that is measured here; it is to be said before the site starts."""
        self._reporting.attending.append(one)

    def used_s(self) -> float | None:
        """CPU seconds that its tasks have taken in this life, as last measured."""
        return self._reporting.used_s

    def fragments(self) -> Running:
        """What runs here, each under its epoch."""
        return {name: (epoch, run.standing().fragment) for name, (epoch, run) in list(self.running.items())}

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Remember(fragment=fragment, epoch=epoch):
                self._epochs.remember(fragment, epoch)
            case Fence(epoch=epoch, task=task):
                self._engine.fence(unpack(task, Task), epoch)
            case Launch(fragment=fragment, epoch=epoch, task=task):
                self._work.submit(self._launch, fragment, epoch, task)
            case Halt():
                self._work.submit(self._halt, effect)
            case _:
                self._preparing.perform(effect)

    def _tell(self, fact: Input) -> None:
        if not self._gone.is_set():
            self.carrier.feed(fact)

    def _turn(self, fragment: str) -> threading.Lock:
        """One thing at a time for each fragment: a halt waits until the launch before it is through."""
        with self._lock:
            return self._turns.setdefault(fragment, threading.Lock())

    def _launch(self, fragment: str, epoch: int, task: Parcel) -> None:
        with self._turn(fragment):
            self._launch_now(fragment, epoch, task)

    def _launch_now(self, fragment: str, epoch: int, task: Parcel) -> None:
        try:
            run = self._engine.prepare(unpack(task, Task), epoch)
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
        if self._gone.is_set():  # what ran by then was ended without it
            run.stop()
        self._tell(Launched(fragment, epoch, pack(run.standing())))
        self._reporting.wake()

    def _halt(self, asked: Halt) -> None:
        fragment, epoch, was_clean, stands = asked.fragment, asked.epoch, False, Parcel()
        with self._turn(fragment):
            held = self.running.get(fragment)
            if held is not None and self._drop(fragment, epoch):
                tells = partial(self._last_batch_begun, fragment, epoch) if asked.tells else None
                was_clean = held[1].stop(asked.clean, tells) and asked.clean
                stands = pack(held[1].standing())
        self._tell(Halted(fragment, epoch, was_clean, stands))
        self._reporting.wake()

    def _last_batch_begun(self, fragment: str, epoch: int, standing: Standing) -> None:
        self._tell(LastBatchBegun(fragment, epoch, pack(standing)))

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
                            self._reporting.wake()
                    finally:
                        turn.release()

    def _ended(self, fragment: str, epoch: int, run: Launchable) -> Input | None:
        if run.drained():
            return Drained(fragment, epoch, pack(run.standing()))
        failure = run.failure()
        return None if failure is None else Died(fragment, epoch, failure[0], permanent=failure[1])

    def _drop(self, fragment: str, epoch: int) -> bool:
        with self._lock:
            held = self.running.get(fragment)
            if held is None or held[0] != epoch:
                return False
            del self.running[fragment]
            return True
