"""Which sites run in this process? Their bodies, the epochs that each must not forget, their loss and return."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.site import Engine, SiteBody
from weft.bodies.live.state import State
from weft.bodies.live.transport import Transport

FILE = "epochs.json"


class Sites:
    """The sites of an embedded run."""

    def __init__(self, state: State, engine: Engine, transport: Transport, story: Tell) -> None:
        self.state = state
        self.lost: set[str] = set()
        self._engine = engine
        self._transport = transport
        self._story = story
        self._bodies: dict[str, SiteBody] = {}
        self._epochs: dict[str, dict[str, int]] = state.read(FILE) or {}
        self._lock = threading.Lock()

    def remembered(self, machine: str) -> dict[str, int]:
        """The greatest epochs that an earlier life of a machine has seen, by fragment."""
        return self._epochs.get(machine, {})

    def remember(self, machine: str, fragment: str, epoch: int) -> None:
        """Keep an epoch for the next life of a machine; it is on disk when this returns."""
        with self._lock:
            self._epochs.setdefault(machine, {})[fragment] = epoch
            self.state.write(FILE, self._epochs)

    def start(self, name: str) -> None:
        """A site begins to take orders, or comes back, knowing only the epochs it was to remember."""
        remembered = self.remembered(name)
        body = SiteBody(name, remembered, self.remember, self._engine, self._transport, self._story)
        self._bodies[name] = body
        self.lost.discard(name)
        body.start()

    def crash(self, name: str) -> None:
        """Lose a site: its agent and all it runs, at once."""
        self.lost.add(name)
        self._bodies.pop(name).crash()

    def carriers(self) -> Iterator[Carrier]:
        """Who carries the agents."""
        return (body.carrier for body in list(self._bodies.values()))

    def bodies(self) -> list[SiteBody]:
        """The sites that are up."""
        return list(self._bodies.values())
