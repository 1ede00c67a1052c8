"""Members and instances with one fault each, and the search for them in the worlds of exclusion and scaling."""

from __future__ import annotations

from typing import Any

import faulty
from mutants import Mutant, mutants

from weft.bodies.explorer.worlds import exclusion, scaling
from weft.protocol.exclusion import member, two_groups
from weft.protocol.scaling import instance

MEMBER = {
    "IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING", "KEPT": "GIVEN", "GIVEN": "LENT", "LENT": "GIVEN",
    "CALLED": "LENT",
}  # fmt: skip
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
    """The world that sees a fault and the claim it breaks there, None where none does."""
    made: Any = mutant.load()
    if mutant.module == member.__name__:
        worlds = exclusion.brisk(faulty.guarded(made.Member))
    elif mutant.module == two_groups.__name__:
        worlds = exclusion.corrected(faulty.guarded(made.TwoGroups))
    else:
        worlds = scaling.brisk(faulty.guarded(made.Instance))
    return faulty.found(mutant, worlds)
