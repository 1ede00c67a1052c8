"""What holds of every step of hosting: epochs only grow, words of other epochs do not count, nothing old is left.

The agent and the conductor stand alone, or within a host and a desk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.bodies.explorer.world import StepClaim, Taken
from weft.protocol import Message, Received, Send
from weft.protocol.hosting import Drained, Halted, Refused, Remember
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


def rows_of(machine: Any, part: str) -> dict[str, Any]:
    """The rows of an agent or a conductor; none where the machine is the other."""
    held: Any = getattr(machine, part, machine)
    return held.rows if hasattr(held, "said") == (part == "conductor") else {}


def marks_grow(step: Taken) -> bool:
    """Whether no epoch that was seen or said ever falls, and a greater one is written down before all else."""
    for part, mark in (("agent", "seen"), ("conductor", "epoch")):
        before = rows_of(step.before, part)
        for fragment, row in rows_of(step.after, part).items():
            was, now = getattr(before[fragment], mark) if fragment in before else 0, getattr(row, mark)
            if now < was:
                return False
            sent = [one for one in said(step) if isinstance(one, StartFragment) and one.fragment == fragment]
            if part == "conductor" and not any(one.epoch > was for one in sent):
                continue  # what a site has seen it tells again
            if now > was and not _written_first(step, fragment, now):
                return False
    return True


def _written_first(step: Taken, fragment: str, epoch: int) -> bool:
    """Whether an epoch is written down before anything is said or done under it."""
    for effect in step.effects:
        if effect == Remember(fragment, epoch):
            return True
        about = effect.message if isinstance(effect, Send) else effect
        if getattr(about, "fragment", "") == fragment and getattr(about, "epoch", 0) >= epoch:
            return False
    return False


def starts_are_new(step: Taken) -> bool:
    """Whether a start under a new epoch has one above the least that it may have."""
    before, after = rows_of(step.before, "conductor"), rows_of(step.after, "conductor")
    for message in said(step):
        if isinstance(message, StartFragment) and message.fragment in after:
            was = before[message.fragment].epoch if message.fragment in before else 0
            if message.epoch != was and message.epoch <= max(was, after[message.fragment].least):
                return False
    return True


def nothing_old(step: Taken) -> bool:
    """Whether of what is over nothing is left in what an agent or a conductor knows."""
    for row in rows_of(step.after, "agent").values():
        alive = row.state in ("launching", "running", "finishing")
        if (row.next and row.state != "halting") or (alive and (row.clean or row.reason or row.permanent)):
            return False
        if row.state == "halting" and (row.permanent or row.next not in (0, row.seen)):
            return False
        if alive and row.epoch != row.seen:
            return False
    for row in rows_of(step.after, "conductor").values():
        if (row.silent and row.state != "down") or (row.ends and row.state != "stopping"):
            return False
        if row.starts and row.state in ("idle", "running", "done"):
            return False
        if not row.want and row.state not in ("idle", "stopping") and not row.ends:
            return False
    return True


def waits(machine: Any) -> set[str]:
    """The timers of an agent or a conductor."""
    hosted, wanted = rows_of(machine, "agent"), rows_of(machine, "conductor")
    found = {fragment for fragment, row in hosted.items() if row.state in ("launching", "finishing", "halting")}
    found |= {
        fragment for fragment, row in wanted.items() if row.state in ("starting", "running", "waiting", "stopping")
    }
    return found


STEPS: dict[str, StepClaim] = {
    "what was given up is told to stop when it speaks": given_up_stays_so,
    "an epoch below the greatest seen is refused, and changes nothing": old_epochs_refused,
    "a clean end is of the epoch that was asked for": clean_is_of_that_epoch,
    "word of another epoch changes nothing": other_epochs_pass,
    "epochs only grow, and are written down before they are said": marks_grow,
    "what starts has a greater epoch than whatever was started before": starts_are_new,
    "of what is over nothing is left": nothing_old,
}
