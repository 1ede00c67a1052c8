"""How does a run begin? Every fragment runs, and is through with its first batch, before sources flow."""

from __future__ import annotations

import time
from collections.abc import Callable

from weft.bodies.live.changes import Changes
from weft.bodies.live.desk import DeskBody
from weft.bodies.live.failing import RunFailed
from weft.bodies.live.house import House
from weft.bodies.live.progress import Progress
from weft.bodies.live.site import cut_of

START_S_MAX = 600.0
FIRST_BATCHES_S_MAX = 30.0


def runs_already(changes: Changes, sites: House) -> tuple[tuple[str, int], ...]:
    """What runs already as the plan in force has it, each under its epoch."""
    found = []
    for fragment in changes.fragments:
        cut = cut_of(fragment, changes.generations.get(fragment.id, 0))
        runs = sites.runs_of(fragment.site)
        found += [(one.fragment, one.epoch) for one in runs if (one.fragment, one.cut) == (fragment.id, cut)]
    return tuple(found)


def wait_until_all_run(desk: DeskBody, is_over: Callable[[], bool], look: Callable[[], None]) -> None:
    """Look on until every fragment runs or it is over; RunFailed where that takes too long."""
    deadline = time.monotonic() + START_S_MAX
    while not desk.running.wait(0.1) and not is_over():
        look()
        if time.monotonic() > deadline:
            why = "; ".join(f"{name}: {reason}" for name, reason in sorted(desk.down.items())) or "no reason is known"
            raise RunFailed(f"not all fragments were running after {START_S_MAX:.0f} s ({why})")


def wait_for_first_batches(
    progress: Progress, rest: Callable[[], bool], look: Callable[[], None], note: Callable[[str], None]
) -> None:
    """Let every fragment be through with its first batch, which is slow; `rest` waits a moment and says if it ends."""
    deadline = time.monotonic() + FIRST_BATCHES_S_MAX
    while not progress.begun() and not rest():
        look()
        if time.monotonic() > deadline:
            note(f"not all fragments were through with a first batch after {FIRST_BATCHES_S_MAX:.0f} s")
            return
