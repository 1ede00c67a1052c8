"""Members and instances with one fault each, and the search for them in the worlds of exclusion and scaling."""

from __future__ import annotations

from typing import Any

import faulty
import groups_by_hand
from mutants import Mutant, mutants

from weft.bodies.explorer import run
from weft.bodies.explorer.worlds import exclusion, scaling
from weft.protocol.exclusion import member, two_groups
from weft.protocol.scaling import instance

MEMBER = {
    "IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING", "KEPT": "GIVEN", "GIVEN": "LENT", "LENT": "GIVEN",
    "CALLED": "LENT",
}  # fmt: skip
STATES_MAX = 1_000_000
TWO_GROUPS = {"IDLE": "REQUESTING", "REQUESTING": "IN_CS", "IN_CS": "REQUESTING"}
INSTANCE = {
    "WAITING": "ACTIVE", "ACTIVE": "GROWING", "GROWING": "ACTIVE", "LEAVING": "GROWING", "DRAINING": "ENDED",
    "ENDED": "ACTIVE",
}  # fmt: skip


def all_mutants() -> list[Mutant]:
    """Every mutant of what excludes and what scales."""
    return [
        *mutants(member, swaps=MEMBER), *mutants(two_groups, swaps=TWO_GROUPS), *mutants(instance, swaps=INSTANCE),
    ]  # fmt: skip


def seen(mutant: Mutant) -> str | None:
    """What sees a fault: messages fed by hand, or a world and the claim it breaks there; None where nothing does."""
    made: Any = mutant.load()
    if mutant.module == member.__name__:
        machine, by_hand = faulty.guarded(made.Member), groups_by_hand.member_by_hand
        worlds = (*exclusion.brisk(machine), *exclusion.telling(machine))
    elif mutant.module == two_groups.__name__:
        machine, by_hand = faulty.guarded(made.TwoGroups), None
        worlds = exclusion.corrected(machine)
    else:
        machine, by_hand = faulty.guarded(made.Instance), groups_by_hand.instance_by_hand
        worlds = scaling.brisk(machine)
    try:
        if by_hand is not None:
            by_hand(machine)
        for world in worlds:
            for violation in run(world._replace(states_max=STATES_MAX)).violations:
                return f"{world.name}: {violation.claim}"
    except Exception as error:
        return type(error).__name__
    return None
