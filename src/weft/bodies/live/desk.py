"""What does the desk do live? Carries the conductor and the mover, and hears what they say of the whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container

from weft.bodies.live.carrier import THE_DESK, Carrier, Tell
from weft.bodies.live.changes import Changes
from weft.bodies.live.epochs import DeskEpochs
from weft.bodies.live.transport import DESK, Transport
from weft.protocol.hosting import AllDone, AllRunning, AllStopped, FragmentIsDown, GaveUp, Remember, Want
from weft.protocol.machine import Effect, Input
from weft.protocol.moving import Desk, InForce, Leave

UNANSWERED_S_MAX = 600.0
"""The longest that a site may be heard of, and not answer for a fragment."""


class DeskBody:
    """The desk of a run: what runs as it should, what is down, and what can no longer be helped."""

    def __init__(
        self, changes: Changes, transport: Transport, story: Tell, comes_back: Callable[[str, bool], bool]
    ) -> None:
        self.running = threading.Event()
        self.over = threading.Event()
        self.stopped = threading.Event()
        self.failure: str | None = None
        self.all_done = False  # by the last that was said of all together
        self.down: dict[str, str] = {}
        self.given_up: set[str] = set()  # fragments whose site was silent, or lost, and may be heard of again
        self.changes = changes
        self._unanswered_s: dict[str, float] = {}  # since when a site is heard of and does not answer for a fragment
        self._epochs = DeskEpochs(changes.state, THE_DESK)
        self._comes_back = comes_back
        self._leaving = False
        machine = Desk(THE_DESK, self._epochs.remembered())
        self.carrier = Carrier(machine, DESK, transport, self._perform, story)
        changes.feed = self.carrier.feed

    def start(self, found: tuple[tuple[str, int], ...] = ()) -> None:
        """Begin, and let the plan in force run; `found` runs as it has it already, under these epochs."""
        self.carrier.start()
        self.carrier.feed(InForce(self.changes.in_force.number, self.changes.starts(), found or None))

    def tell(self, fact: Input) -> None:
        """Tell the desk something."""
        self.carrier.feed(fact)

    def bring_back(self, lost: Container[str]) -> None:
        """Want again what was given up with a site that is heard of now; one that never answers ends the run."""
        for fragment in self.changes.fragments:
            if fragment.id not in self.given_up:
                continue
            if fragment.site in lost:
                self._unanswered_s.pop(fragment.id, None)
                continue
            since_s = self._unanswered_s.setdefault(fragment.id, time.monotonic())
            if time.monotonic() > since_s + UNANSWERED_S_MAX:
                self.failure = f"{fragment.id}: {self.down.get(fragment.id, 'its site does not answer')}"
                self.over.set()
                return
            self.given_up.discard(fragment.id)
            self.tell(Want(fragment.id, fragment.site))

    def leave(self) -> None:
        """Let everything end in order."""
        self._leaving = True
        self.carrier.feed(Leave())

    def stop(self) -> None:
        """Take no more inputs."""
        self.carrier.stop()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Remember):
            self._epochs.remember(effect.fragment, effect.epoch)
        elif not self.changes.perform(effect):
            self._hear(effect)

    def _hear(self, effect: Effect) -> None:
        match effect:
            case AllRunning():
                self.all_done = False
                self.running.set()
                self.down.clear()
                self._unanswered_s.clear()
            case AllDone():
                self.all_done = True
                self.running.set()
                self.over.set()
            case AllStopped():
                self.stopped.set()
            case FragmentIsDown(fragment=fragment, reason=reason):
                self.all_done = False
                self.down[fragment] = reason
            case GaveUp(fragment=fragment, reason=reason, silent=silent):
                self.all_done = False
                home = next((one.site for one in self.changes.fragments if one.id == fragment), "")
                if self._comes_back(home, silent):
                    self.down[fragment] = reason
                    self.given_up.add(fragment)
                elif not self._leaving:
                    self.failure = f"{fragment}: {reason}"
                    self.over.set()
