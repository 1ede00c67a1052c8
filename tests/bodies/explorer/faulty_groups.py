"""Members and instances with one fault each, and the search for them: by hand, and in the worlds that hold them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from tests.bodies.explorer import faulty, groups_by_hand
from tests.bodies.explorer.mutants import Mutant, mutants
from weft.bodies.explorer import World, run
from weft.bodies.explorer.worlds import exclusion, scaling
from weft.protocol.exclusion import core, member
from weft.protocol.scaling import core as scaling_core
from weft.protocol.scaling import instance

STATES_MAX = 1_000_000


class Subject(NamedTuple):
    """A file whose faults are looked for, the machine in it, and what looks for them."""

    module: ModuleType
    machine: str
    swaps: dict[str, str]
    worlds: Callable[[Any], tuple[World, ...]]
    by_hand: Callable[[Any], None] | None = None


SUBJECTS = (
    Subject(
        member, "Member",
        {"IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING", "KEPT": "GIVEN", "GIVEN": "LENT", "LENT": "GIVEN",
         "CALLED": "LENT"},
        lambda made: (*exclusion.brisk(made), *exclusion.telling(made)),
        groups_by_hand.member_by_hand,
    ),
    Subject(core, "Core", {"IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING"}, exclusion.in_turn,
            groups_by_hand.core_by_hand),
    Subject(
        instance, "Instance",
        {"WAITING": "ACTIVE", "ACTIVE": "GROWING", "GROWING": "ACTIVE", "LEAVING": "GROWING", "DRAINING": "ENDED",
         "ENDED": "ACTIVE"},
        lambda made: (*scaling.brisk(made), *scaling.cores(instance=made)),
        groups_by_hand.instance_by_hand,
    ),
    Subject(scaling_core, "CoreInstance", {"ACTIVE": "GROWING", "INSIDE": "IDLE"}, scaling.cores,
            groups_by_hand.core_instance_by_hand),
)  # fmt: skip


def all_mutants() -> list[tuple[Subject, Mutant]]:
    """Every mutant of what excludes and what scales."""
    return [(one, mutant) for one in SUBJECTS for mutant in mutants(one.module, swaps=one.swaps)]


def full_name(subject: Subject, mutant: Mutant) -> str:
    """A name that no mutant of another file has."""
    return f"{subject.module.__name__.split('.')[2]}.{mutant.name}"


def seen(subject: Subject, mutant: Mutant) -> str | None:
    """What sees a fault: messages fed by hand, or a world and the claim it breaks there; None where nothing does."""
    machine = faulty.guarded(getattr(mutant.load(), subject.machine))
    try:
        if subject.by_hand is not None:
            subject.by_hand(machine)
        for world in subject.worlds(machine):
            for violation in run(world._replace(states_max=STATES_MAX)).violations:
                return f"{world.name}: {violation.claim}"
    except Exception as error:
        return type(error).__name__
    return None
