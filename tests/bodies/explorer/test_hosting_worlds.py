"""The hosting worlds: nothing is found in the protocol, and every planted fault is."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from weft.bodies.explorer import NAMES, explore, run
from weft.bodies.explorer.worlds import hosting
from weft.protocol import CancelTimer, Effect, Input, Send, SetTimer
from weft.protocol.hosting import Agent, Conductor, Fence, Halt, Launch, Remember, agent, conductor
from weft.protocol.hosting.agent import Hosted
from weft.protocol.hosting.conductor import Wanted
from weft.protocol.machine import Step
from weft.protocol.messages import FragmentFailed, FragmentStopped, StartFragment, StopFragment


def test_no_order_breaks_hosting_and_the_answer_is_json() -> None:
    answer = json.loads(json.dumps(explore("hosting")))
    assert answer["violations"] == []
    assert answer["states"] == sum(world["states"] for world in answer["worlds"]) > 20_000
    assert len(answer["worlds"]) == 17


def test_two_explorations_see_the_same_states() -> None:
    first, again = ([run(world) for world in hosting.worlds()[1:]] for _ in range(2))
    assert first == again


def test_hosting_is_known_by_name_and_others_are_not() -> None:
    assert "hosting" in NAMES
    with pytest.raises(KeyError):
        explore("nothing")


@pytest.mark.long
def test_no_order_breaks_hosting_with_more_faults() -> None:
    assert explore("hosting", long=True)["violations"] == []


def without(kind: type[Effect], base: type) -> type:
    """A machine that never asks for one kind of effect."""

    class Forgetful(base):  # type: ignore[misc]
        __slots__ = ()

        def handle(self, input: Input) -> list[Effect]:
            return [effect for effect in super().handle(input) if not isinstance(effect, kind)]

    return Forgetful


class Relauncher(Agent):
    """Launches an epoch again when it is asked again and nothing lives."""

    __slots__ = ()

    def answer(self, fragment: str, row: Hosted) -> Any:
        return StartFragment(fragment, row.seen) if row.state == agent.FAILED else super().answer(fragment, row)

    def handle(self, input: Input) -> list[Effect]:
        effects = super().handle(input)
        for at, effect in enumerate(effects):
            if isinstance(effect, Send) and isinstance(effect.message, StartFragment):
                row = self.rows[effect.message.fragment]
                effects[at : at + 1] = self.launch(effect.message.fragment, row, row.seen)
        return effects


class Hasty(Agent):
    """Launches the newer epoch without waiting for the older one to end."""

    __slots__ = ()

    def halt(self, fragment: str, row: Hosted, reason: str = "") -> list[Effect]:
        effects = super().halt(fragment, row, reason)
        if row.seen > row.epoch:
            row.state = agent.STOPPED
        return effects

    STEPS: ClassVar = {key: step._replace(to=agent.STATES) for key, step in Agent.STEPS.items()}


class Forgetting(Agent):
    """Does not hold a stop against a start that comes after it."""

    __slots__ = ()

    def on_stop(self, fragment: str, row: Hosted, input: Any) -> list[Effect]:
        before, effects = row.seen, super().on_stop(fragment, row, input)
        if row.state == agent.STOPPED:
            row.seen = min(before, input.message.epoch - 1)
            return [*effects[:-1], Send(row.owner, FragmentStopped(fragment, input.message.epoch))]
        return effects

    STEPS: ClassVar = {
        **Agent.STEPS,
        **{
            key: Step(lambda machine, *rest: machine.on_stop(*rest), step.to)
            for key, step in Agent.STEPS.items()
            if key[1] is StopFragment
        },
    }


class SameEpoch(Conductor):
    """Starts again under the epoch that failed."""

    __slots__ = ()

    def start(self, fragment: str, row: Wanted) -> list[Effect]:
        if row.state == conductor.WAITING:
            row.epoch -= 1
        return super().start(fragment, row)


class Impatient(Conductor):
    """Moves on without waiting for the stop, and without a new epoch."""

    __slots__ = ()

    def stop(self, fragment: str, row: Wanted) -> list[Effect]:
        if row.want:
            row.epoch -= 1
            return super().start(fragment, row)
        return super().stop(fragment, row)

    STEPS: ClassVar = {key: step._replace(to=conductor.STATES) for key, step in Conductor.STEPS.items()}


class Credulous(Conductor):
    """Takes any failure for the answer to its stop."""

    __slots__ = ()
    STEPS: ClassVar = {
        **Conductor.STEPS,
        (conductor.STOPPING, FragmentFailed): Step(Conductor.on_stopped, (conductor.STARTING, conductor.IDLE)),
    }


class Silent(Conductor):
    """Says things once."""

    __slots__ = ()

    def on_timer(self, fragment: str, row: Wanted, input: Any) -> list[Effect]:
        return [effect for effect in super().on_timer(fragment, row, input) if not isinstance(effect, Send)]

    STEPS: ClassVar = {
        key: Step(lambda machine, *rest: machine.on_timer(*rest), step.to) if step.do is Conductor.on_timer else step
        for key, step in Conductor.STEPS.items()
    }


PLANTED: dict[str, dict[str, type]] = {
    "an agent that does not fence": {"agent": without(Fence, Agent)},
    "an agent that does not remember": {"agent": without(Remember, Agent)},
    "an agent that does not halt": {"agent": without(Halt, Agent)},
    "an agent that launches a failed epoch again": {"agent": Relauncher},
    "an agent that launches beside a halting launch": {"agent": Hasty},
    "an agent that forgets stops": {"agent": Forgetting},
    "an agent without timers that are cancelled": {"agent": without(CancelTimer, Agent)},
    "an agent that never launches": {"agent": without(Launch, Agent)},
    "a conductor that does not remember": {"conductor": without(Remember, Conductor)},
    "a conductor without timers": {"conductor": without(SetTimer, Conductor)},
    "a conductor that says things once": {"conductor": Silent},
    "a conductor that reuses an epoch": {"conductor": SameEpoch},
    "a conductor that moves without a new epoch": {"conductor": Impatient},
    "a conductor that takes a failure for a stop": {"conductor": Credulous},
}


def found(machines: dict[str, type]) -> bool:
    """Whether some world sees a fault."""
    return any(run(world).violations for world in hosting.worlds(**machines))


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    assert found(PLANTED[fault]), f"no world sees {fault}"
