"""What holds of every step of a desk that changes a placement."""

from __future__ import annotations

from weft.bodies.explorer.world import StepClaim, Taken
from weft.protocol import Received
from weft.protocol.change_messages import ChannelIsDrained


def readers_end_drained(step: Taken) -> bool:
    """Whether a reader is asked to end by the word that the last of its own channels is drained, and by no other."""
    if not hasattr(step.after, "mover"):
        return True  # it is a host
    drained: tuple[str, tuple[str, ...]] = ("", ())
    if isinstance(step.input, Received) and isinstance(step.input.message, ChannelIsDrained):
        drained = (step.input.message.fragment, (step.input.message.channel,))
    for key, row in step.after.mover.rows.items():
        before = step.before.mover.rows.get(key)
        for end in row.ends[before.asked if before else 0 : row.asked]:
            if end.drains and (before is None or drained != (end.fragment, before.drains)):
                return False
    return True


STEPS: dict[str, StepClaim] = {"a reader ends only when the last of its channels is drained": readers_end_drained}
