"""Worlds of hosting and of a change of placement in which machines crash between two effects of one step.

Beside the claims of those worlds, every step of an agent or a conductor is looked at: what is said of another epoch
than the present one must not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken, World
from weft.bodies.explorer.worlds import hosting, move
from weft.bodies.explorer.worlds.move_plan import MoveCase
from weft.protocol import Message, Received, Send
from weft.protocol.hosting import Drained, Halted, Refused, Unwant, Want
from weft.protocol.messages import (
    FragmentDone,
    FragmentFailed,
    FragmentPending,
    FragmentRefused,
    FragmentRunning,
    FragmentStopped,
    StartFragment,
    StopFragment,
)

_REPORTS = (FragmentPending, FragmentRunning, FragmentStopped, FragmentDone, FragmentFailed, FragmentRefused)


def said(step: Taken) -> Iterator[Message]:
    """The messages that a step sends."""
    return (effect.message for effect in step.effects if isinstance(effect, Send))


def within(machine: Any, part: str) -> Any:
    """The agent of a host or the conductor of a desk; one that stands alone is itself."""
    return getattr(machine, part, machine)


def old_epochs_refused(step: Taken) -> bool:
    """Whether an agent refuses an epoch below the greatest it has seen, names that, and is as it was."""
    match step.input:
        case Received(sender, StartFragment(fragment, epoch) | StopFragment(fragment, epoch)):
            row = within(step.before, "agent").rows.get(fragment)
            if row is None or epoch >= row.seen:
                return True
            answer = (Send(sender, FragmentRefused(fragment, epoch, row.seen)),)
            return step.effects == answer and step.before.snapshot() == step.after.snapshot()
        case Refused(fragment, epoch, fence):
            named = [one for one in said(step) if isinstance(one, FragmentRefused)]
            return all(one.greatest == fence for one in named)
    return True


def clean_is_of_that_epoch(step: Taken) -> bool:
    """Whether an end is called clean only of the epoch that was asked for, and ended drained or at a batch boundary."""
    for message in said(step):
        if not isinstance(message, FragmentStopped) or not message.clean:
            continue
        row = within(step.before, "agent").rows[message.fragment]
        ends = isinstance(step.input, Drained) or (isinstance(step.input, Halted) and step.input.clean)
        known = row.seen == message.epoch and (row.clean or row.state == "done")
        if not (known or (ends and row.epoch == message.epoch)):
            return False
    return True


def other_epochs_pass(step: Taken) -> bool:
    """Whether word of another epoch than the present one leaves a conductor as it was; what runs is told to stop."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, _REPORTS):
        return True
    message: Any = step.input.message
    before, after = (within(one, "conductor") for one in (step.before, step.after))
    row = before.rows.get(message.fragment)
    if row is None or row.epoch == message.epoch:
        return True
    stops = (Send(step.input.sender, StopFragment(message.fragment, message.epoch, task=row.task)),)
    asked = stops if isinstance(message, FragmentRunning) else ()
    return step.effects == asked and row == after.rows[message.fragment]


def given_up_stays_so(step: Taken) -> bool:
    """Whether what was given up though its site was not silent is told to stop when it speaks."""
    if not isinstance(step.input, Received) or not isinstance(step.input.message, FragmentRunning):
        return True
    before, after = (within(one, "conductor") for one in (step.before, step.after))
    message = step.input.message
    row = before.rows.get(message.fragment)
    if row is None or row.state != "down" or row.silent:
        return True
    stops = any(isinstance(one, StopFragment) for one in said(step))
    return bool(stops and after.rows[message.fragment].state == "down")


STEPS: dict[str, StepClaim] = {
    "what was given up is told to stop when it speaks": given_up_stays_so,
    "an epoch below the greatest seen is refused, and changes nothing": old_epochs_refused,
    "a clean end is of the epoch that was asked for": clean_is_of_that_epoch,
    "word of another epoch changes nothing": other_epochs_pass,
}


def hosts(**machines: Any) -> tuple[World, ...]:
    """Fragments started, moved and stopped, while agents and the conductor crash in the midst of a step."""
    start, go, stop = Want("f1", "a"), Want("f1", "b"), Unwant("f1")
    every = ("a", "b", "conductor")
    some = (
        hosting.world("started, a torn step", (start,), sites=("a",), mortal=("a", "conductor"), crash=1, torn=1,
                      lose=1, **machines),
        hosting.world("a move, a torn step", (start, go), mortal=every, crash=1, torn=1, **machines),
        hosting.world("a move and back, a torn step and a death", (start, go, start), mortal=every, crash=1, torn=1,
                      deaths=1, **machines),
        hosting.world("a move, a crash and a torn step", (start, go), mortal=every, crash=2, torn=1, **machines),
        hosting.world("stopped, the inputs end, a torn step", (start, stop), mortal=every, crash=1, torn=1, lose=1,
                      may_drain=True, **machines),
        hosting.world("wanted again where it does not halt", (start, stop, start), sites=("a",), mortal=(), tries=1,
                      early=4, **machines),
        hosting.world("given up, words that overtake", (start,), sites=("a",), mortal=(), deaths=1, restarts=0,
                      overtake=1, early=1, **machines),
    )  # fmt: skip
    return tuple(one._replace(steps=STEPS) for one in some)


def moves(**machines: Any) -> tuple[World, ...]:
    """Changes of placement while agents and the desk crash in the midst of a step."""
    some = (
        move.world("a move, a torn step", MoveCase("1a", "1b", records=1), crash=1, torn=1, **machines),
        move.world("a full disk, a torn step", MoveCase("1a", "1b", records=1), crash=1, torn=1, undecided=1,
                   **machines),
        move.world("into a fragment, a torn step", MoveCase("1a 2b", "1b", records=1), crash=1, torn=1, **machines),
    )  # fmt: skip
    return tuple(one._replace(steps={**one.steps, **STEPS}) for one in some)
