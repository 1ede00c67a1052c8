"""What holds of every step of a desk that changes a placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken
from weft.bodies.explorer.worlds import hosting_steps
from weft.bodies.explorer.worlds.timers import TIMED, timed
from weft.protocol import Message, Received, Send
from weft.protocol.change_messages import ChannelIsDrained
from weft.protocol.messages import StartFragment, StopFragment
from weft.protocol.moving import Decided, InForce, least_epoch
from weft.protocol.moving.mover import NO_MORE


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


def who_waits_is_told(step: Taken) -> bool:
    """Whether a clean end is told of its last batch just where something made ready awaits that."""
    if not hasattr(step.after, "mover"):
        return True
    for message in _said(step):
        if isinstance(message, StopFragment) and message.clean:
            row = step.after.mover.rows.get(f"change {step.after.conductor.rows[message.fragment].ends}")
            if row is not None and message.tells != (message.fragment in row.told):
                return False
    return True


def in_its_era(step: Taken) -> bool:
    """Whether what the plan in force starts has an epoch above all that was started before that plan."""
    if not isinstance(step.input, InForce | Decided) or not hasattr(step.after, "mover"):
        return True
    number, rows = step.input.number, step.after.conductor.rows
    if isinstance(step.input, InForce):
        starts = [one.fragment for one in step.input.starts]
    else:
        row = step.after.mover.rows.get(f"change {number}")
        starts = [] if row is None or row.state != "starting" else [one.fragment for one in row.starts]
    if step.before.mover.gives == NO_MORE:
        return True
    found = dict((step.input.found or ()) if isinstance(step.input, InForce) else ())
    said = {one.fragment: one.epoch for one in _said(step) if isinstance(one, StartFragment)}
    return all(
        rows[name].least >= least_epoch(number)
        and (name not in said or said[name] > least_epoch(number) or said[name] == found.get(name))
        for name in starts
    )


def changes_left_clean(step: Taken) -> bool:
    """Whether of what a change has behind it nothing is left, and what it waits for belongs to its phase."""
    if not hasattr(step.after, "mover"):
        return all(_to_come(row) for row in step.after.preparer.rows.values())
    for row in step.after.mover.rows.values():
        before_end = row.state in ("queued", "asked", "preparing")
        if before_end and (row.asked or row.ended or row.carried or row.drains or row.drops):
            return False
        if (row.drains or row.drained) and row.state != "ending":
            return False
        if row.drops and row.state != "aborting":
            return False
        if row.said < 1 and row.state != "deciding":
            return False
    return True


def _to_come(row: Any) -> bool:
    """Whether a row of a preparer holds nothing of what is over."""
    busy = row.state in ("preparing", "carrying")
    if row.next is not None and not busy:
        return False
    return row.state not in ("preparing", "draining") or not row.carried.text


def waits(machine: Any) -> set[str]:
    """The timers of a desk or a host."""
    found = hosting_steps.waits(getattr(machine, "conductor", getattr(machine, "agent", None)))
    if hasattr(machine, "mover"):
        return found | {key for key, row in machine.mover.rows.items() if row.state not in ("queued", "over", "new")}
    return found | {key for key, row in machine.preparer.rows.items() if row.state == "ready"}


def _said(step: Taken) -> Iterator[Message]:
    return (effect.message for effect in step.effects if isinstance(effect, Send))


STEPS: dict[str, StepClaim] = {
    **hosting_steps.STEPS,
    TIMED: timed(waits),
    "a clean end tells of its last batch just where something awaits that": who_waits_is_told,
    "what a plan starts has an epoch above all that was started before": in_its_era,
    "of what a change has behind it nothing is left": changes_left_clean,
    "a reader ends only when the last of its channels is drained": readers_end_drained,
    "what runs is taken on only under the epoch that was said last": taken_on_as_said,
}
