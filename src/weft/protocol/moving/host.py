"""The host: an agent and a preparer side by side, what a site is to its desk, carried as one machine.

What the agent knows of epochs holds for the preparer: a fragment whose epoch belongs to a change, or to a later one,
was started by it, and is no longer to come. What is launched takes up what was made ready. Fragments' timers bear
their names, those of what is to come `start FRAGMENT`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from weft.protocol.change_messages import TO_SITES, CarryOver, OpenGate, PrepareFragment
from weft.protocol.hosting.agent import Agent, AgentLimits
from weft.protocol.hosting.words import Launch
from weft.protocol.machine import Effect, Input, Machine, Received, TimerFired
from weft.protocol.moving.preparer import Preparer, PreparerLimits
from weft.protocol.moving.words import CarriedOver, ChannelDrained, NotCarriedOver, NotWarmed, Warmed, era_of

_FACTS = (Warmed, NotWarmed, CarriedOver, NotCarriedOver, ChannelDrained)


class Host(Machine):
    """Runs what it is asked to run, makes ready what is to come; `remembered` is what an earlier life remembered."""

    __slots__ = ("agent", "preparer")

    def __init__(
        self,
        name: str,
        remembered: Mapping[str, int] | None = None,
        agent_limits: AgentLimits | None = None,
        preparer_limits: PreparerLimits | None = None,
    ) -> None:
        super().__init__(name)
        self.agent = Agent(name, remembered, agent_limits)
        self.preparer = Preparer(name, preparer_limits)

    def handle(self, input: Input) -> list[Effect]:
        """Takes one step and returns what the body must do, in order."""
        effects = self.step(input)
        self._recent.append(("", input, effects))
        return effects

    def step(self, input: Input) -> list[Effect]:
        """What the one concerned makes of an input, and what follows for the other."""
        if isinstance(input, Received) and isinstance(input.message, TO_SITES):
            return [] if self.is_past(input) else self.preparer.handle(input)
        if isinstance(input, _FACTS) or (isinstance(input, TimerFired) and input.name in self.preparer.rows):
            return self.preparer.handle(input)
        effects = self.agent.handle(input)
        started = [effect.fragment for effect in effects if isinstance(effect, Launch)]
        return [*effects, *(taken for fragment in started for taken in self.preparer.started(fragment))]

    def is_past(self, input: Received) -> bool:
        """True if word comes of a change that has started the fragment here already, or of one before that."""
        word = input.message
        hosted = self.agent.rows.get(getattr(word, "fragment", ""))
        about_start = isinstance(word, PrepareFragment | CarryOver | OpenGate)
        return about_start and hosted is not None and word.number <= era_of(hosted.seen)  # type: ignore[attr-defined]

    def states(self) -> dict[str, str]:
        """How fragments are doing, and those to come."""
        return {**self.agent.states(), **self.preparer.states()}

    def snapshot(self) -> bytes:
        """Both states as canonical bytes."""
        return msgspec.msgpack.encode((self.agent.snapshot(), self.preparer.snapshot()))

    def restore(self, snapshot: bytes) -> None:
        """Takes on both states."""
        agent, preparer = msgspec.msgpack.decode(snapshot, type=tuple[bytes, bytes])
        self.agent.restore(agent)
        self.preparer.restore(preparer)
        self._recent.clear()

    def story(self) -> tuple[str, ...]:
        """The last steps of both, the agent's first."""
        return (*self.agent.story(), *self.preparer.story())
