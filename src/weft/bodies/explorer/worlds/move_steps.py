"""What holds of every step of a desk that changes a placement."""

from __future__ import annotations

from collections.abc import Iterator

from weft.bodies.explorer.world import StepClaim, Taken
from weft.protocol import Message, Received, Send
from weft.protocol.change_messages import ChannelIsDrained
from weft.protocol.messages import StartFragment
from weft.protocol.moving import InForce


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


def taken_on_as_said(step: Taken) -> bool:
    """Whether what runs under another epoch than the last that was said of it starts anew."""
    if not isinstance(step.input, InForce) or not step.input.found:
        return True
    rows, found = step.before.conductor.rows, dict(step.input.found)
    starts = {one.fragment: one.epoch for one in _said(step) if isinstance(one, StartFragment)}
    return all(
        starts[fragment] == epoch if row.epoch == epoch else starts[fragment] > row.epoch
        for fragment, epoch in found.items()
        if fragment in starts and (row := rows.get(fragment)) is not None
    )


def _said(step: Taken) -> Iterator[Message]:
    return (effect.message for effect in step.effects if isinstance(effect, Send))


STEPS: dict[str, StepClaim] = {
    "a reader ends only when the last of its channels is drained": readers_end_drained,
    "what runs is taken on only under the epoch that was said last": taken_on_as_said,
}
