"""Every wait is under a timer, and no timer is left: asked of each step, by what it sets and cancels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken
from weft.protocol import CancelTimer, SetTimer, TimerFired

TIMED = "who begins to wait sets its timer, and who waits no more has cancelled it"


def timed(waits: Callable[[Any], set[str]]) -> StepClaim:
    """A claim on steps; `waits` are the timers that a machine must have set, by what it is in the midst of."""

    def holds(step: Taken) -> bool:
        held = set(waits(step.before))
        if isinstance(step.input, TimerFired):
            held.discard(step.input.name)
        for effect in step.effects:
            if isinstance(effect, SetTimer):
                held.add(effect.name)
            elif isinstance(effect, CancelTimer):
                held.discard(effect.name)
        return held == waits(step.after)

    return holds
