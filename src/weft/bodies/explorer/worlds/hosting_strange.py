"""What an agent or a conductor hears of another epoch than the present one: it changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.bodies.explorer.world import Claim, View
from weft.bodies.explorer.worlds.hosting_steps import rows_of
from weft.bodies.explorer.worlds.strange import Stale
from weft.protocol import Machine, Received, Send
from weft.protocol.hosting import Died, Drained, Halted, LastBatchBegun, Launched, Refused
from weft.protocol.messages import (
    FragmentDone,
    FragmentFailed,
    FragmentFinishing,
    FragmentPending,
    FragmentRefused,
    FragmentRunning,
    FragmentStopped,
    StopFragment,
)

HEEDED = "where a site has seen a greater epoch, the next start has a greater one"


def refusals_heeded(machines: Callable[[], Mapping[str, Machine]], name: str) -> dict[str, Claim]:
    """A claim for a conductor: of an epoch that a site refuses because it has seen a greater one, none below starts."""
    scratch: list[Any] = []

    def heeds(view: View) -> bool:
        if not scratch:
            scratch.append(machines()[name])
        machine, now = scratch[0], view.machine(name)
        before = now.snapshot()
        for fragment, row in rows_of(now, "conductor").items():
            if row.state in ("starting", "running", "stopping"):
                machine.restore(before)
                machine.handle(Received(row.site, FragmentRefused(fragment, row.epoch, row.epoch + 5)))
                if rows_of(machine, "conductor")[fragment].epoch < row.epoch + 5:
                    return False
        return True

    return {HEEDED: heeds}


def stale(machine: Any) -> Iterator[Stale]:
    """Facts about launches that are not looked after, and what sites say of epochs before the last."""
    for fragment, row in rows_of(machine, "agent").items():
        for epoch in (row.epoch - 1, row.epoch + 1):
            yield Launched(fragment, epoch), ()
            yield Died(fragment, epoch, "late"), ()
            yield Drained(fragment, epoch), ()
            yield Halted(fragment, epoch), ()
            yield Refused(fragment, epoch, epoch + 1), ()
            yield LastBatchBegun(fragment, epoch), ()
    for fragment, row in rows_of(machine, "conductor").items():
        epoch = row.epoch - 1
        if epoch < 1:
            continue
        stop = Send("a", StopFragment(fragment, epoch, task=row.task))
        yield Received("a", FragmentRunning(fragment, epoch)), (stop,)
        for word in (
            FragmentPending(fragment, epoch), FragmentStopped(fragment, epoch, True), FragmentDone(fragment, epoch),
            FragmentFailed(fragment, epoch, "late"), FragmentFinishing(fragment, epoch),
        ):  # fmt: skip
            yield Received("a", word), ()
