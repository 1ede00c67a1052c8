"""The worlds of a change of placement: nothing is found in the protocol, and nearly every fault made by machine is.

Of what sites do ahead of a start, many faults break no claim of the worlds: there the rules told by hand count too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.bodies.explorer import faulty
from tests.bodies.explorer.mutants import Mutant
from weft.bodies.explorer import NAMES, explore, run
from weft.bodies.explorer.worlds import hosting, move

SEED = 3
TEXT = "only the words of a reason or a story differ"
OVERWRITTEN = "the next Want or Unwant sets it before it is looked at"
WITH_IT = "whatever leads to where it is looked at sets it anew"
ENDED = "what ended cleanly is gone, and what starts next fences for itself"
COSTS_TIME = "the change takes longer or is given up, as it may be after a fault; nothing is wrong"
NOT_FOUND = {
    "mover.leave: drop condition `row.reason`": TEXT,
    "mover.leave: drop condition `THE_END`": TEXT,
    "mover.abort: keep `row.reason`": TEXT,
    "mover.on_end_timer: drop condition `row.awaits`": TEXT,
    "mover.on_end_timer: drop condition `row.drains`": TEXT,
    "mover.verdict: negate `missing`": TEXT,
    "desk.handle: drop statement `self._recent.append(('', input, effects))`": TEXT,
    "host.handle: drop statement `self._recent.append(('', input, effects))`": TEXT,
    "preparer.forget: keep `row.impossible`": WITH_IT,
    "preparer.forget: flip `False`": WITH_IT,
    "preparer.forget: keep `row.after`": WITH_IT,
    "preparer.forget: keep `row.task`": WITH_IT,
    "preparer.forget: keep `row.carried`": WITH_IT,
    "desk.first: drop condition `input.found`": "what runs is started anew",
    "mover.abort: keep `row.drains`": "drains are looked at only while fragments end",
    "conductor.on_end: keep `row.starts`": OVERWRITTEN,
    "conductor.on_end: off by one `0`": OVERWRITTEN,
    "conductor.on_stopped: skip branch `isinstance(input.message, FragmentRefused)`": "another refusal tells it again",
    "conductor.on_stopped: drop statement `row.epoch = max(row.epoch, input.message.greatest)`":
        "another refusal tells it again",
    "conductor.on_stopped: drop condition `isinstance(input.message, FragmentStopped)`":
        "of what it ends for a change, a conductor knows the greatest epoch: its stop is not refused",
    "conductor.up: drop condition `not row.starts`": "it is told to change 0, which there is not",
    "conductor.up: swap state `DONE for IDLE`": COSTS_TIME,
    "agent.on_finished: off by one `row.epoch + 1`": ENDED,
    "agent.on_finished: drop effect `fence`": ENDED,
    "agent.on_finish_timer: off by one `1`": COSTS_TIME,
    "agent.finish: drop effect `Send(row.owner, self.answer(fragment, row))`": COSTS_TIME,
    "agent.finish: drop effect `SetTimer(fragment, self.limits.clean_ms_max)`": COSTS_TIME,
}  # fmt: skip


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    yield from faulty.guard()


@pytest.mark.parametrize("world", move.brisk(), ids=lambda world: world.name)
def test_no_order_breaks_a_change(world: move.World) -> None:
    result = run(world)
    assert result.violations == ()
    assert result.states > 50


def test_a_change_is_known_by_name() -> None:
    assert "move" in NAMES


@pytest.mark.long
def test_no_order_breaks_a_change_in_larger_worlds() -> None:
    answer = explore("move")
    assert answer["violations"] == []
    assert answer["states"] > 3_000_000


def seen(mutant: Mutant) -> bool:
    """Whether a rule told by hand, the worlds of a change, or of hosting where the fault lies there, see a fault."""
    if faulty.told_by_hand(mutant) or faulty.found(mutant, move.brisk(**faulty.machines(mutant))):
        return True
    machines = faulty.hosts(mutant)
    return bool(machines) and faulty.found(mutant, hosting.worlds(**machines)) is not None


def test_of_twenty_faults_made_by_machine_nineteen_are_found() -> None:
    mutants = [mutant for mutant in faulty.all_mutants() if mutant.name not in NOT_FOUND]
    chosen = random.Random(SEED).sample(mutants, 20)
    missed = [mutant.name for mutant in chosen if not seen(mutant)]
    assert len(missed) * 20 <= len(chosen), f"seed {SEED}: {missed}"


def test_every_fault_that_is_not_looked_for_is_still_made() -> None:
    assert set(NOT_FOUND) <= {mutant.name for mutant in faulty.all_mutants()}


@pytest.mark.long
def test_of_all_faults_made_by_machine_nineteen_of_twenty_are_found() -> None:
    mutants = [mutant for mutant in faulty.all_mutants() if mutant.name not in NOT_FOUND]
    missed = [mutant.name for mutant in mutants if not seen(mutant)]
    assert len(missed) * 20 <= len(mutants), missed
