"""Which sites run in this process? Their bodies, each with an engine and epochs of its own, their loss and return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from weft.bodies.live.balancing.kept import KeptBalance
from weft.bodies.live.carrier import Carrier, Tell
from weft.bodies.live.engine import Engine
from weft.bodies.live.epochs import SiteEpochs
from weft.bodies.live.site import Companion, SiteBody
from weft.bodies.live.state import State
from weft.bodies.live.transport import Transport

Any_Engine = TypeVar("Any_Engine", bound=Engine)


class Sites(Generic[Any_Engine]):
    """The sites of an embedded run; they share nothing but the folder, and Spark."""

    def __init__(
        self,
        state: State,
        engine: Callable[[str], Any_Engine],
        transport: Transport,
        story: Tell,
        measured: bool = True,
        companions: Callable[[SiteBody], list[Companion]] = lambda body: [],
    ) -> None:
        self.state = state
        self.lost: set[str] = set()
        self.engines: dict[str, Any_Engine] = {}
        self._engine = engine
        self._transport = transport
        self._story = story
        self._measured = measured
        self._companions = companions
        self._bodies: dict[str, SiteBody] = {}

    def start(self, name: str) -> None:
        """A site begins to take orders, or comes back, knowing only the epochs it was to remember."""
        self.engines[name] = engine = self._engine(name)
        epochs, balance = SiteEpochs(self.state, name), KeptBalance(self.state, name)
        body = SiteBody(name, epochs, balance, engine, self._transport, self._story, self._measured)
        body.companions += self._companions(body)
        self._bodies[name] = body
        self.lost.discard(name)
        body.start()

    def crash(self, name: str) -> None:
        """Lose a site: its agent, its engine and all it runs, at once."""
        self.lost.add(name)
        self._bodies.pop(name).crash()
        del self.engines[name]

    def carriers(self) -> Iterator[Carrier]:
        """Who carries the hosts."""
        return (body.carrier for body in list(self._bodies.values()))

    def bodies(self) -> list[SiteBody]:
        """The sites that are up."""
        return list(self._bodies.values())
