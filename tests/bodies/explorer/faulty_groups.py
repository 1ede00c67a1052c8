"""Members and instances with one fault each."""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from tests.bodies.explorer.mutants import Mutant, mutants
from weft.protocol.exclusion import core, member
from weft.protocol.scaling import core as scaling_core
from weft.protocol.scaling import instance


class Subject(NamedTuple):
    """A file whose faults are looked for, and which of its states are mixed up."""

    module: ModuleType
    swaps: dict[str, str]


SUBJECTS = (
    Subject(
        member,
        {"IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING", "KEPT": "GIVEN", "GIVEN": "LENT", "LENT": "GIVEN",
         "CALLED": "LENT"},
    ),
    Subject(core, {"IDLE": "ASKING", "ASKING": "IDLE", "INSIDE": "ASKING"}),
    Subject(
        instance,
        {"WAITING": "ACTIVE", "ACTIVE": "GROWING", "GROWING": "ACTIVE", "LEAVING": "GROWING", "DRAINING": "ENDED",
         "ENDED": "ACTIVE"},
    ),
    Subject(scaling_core, {"ACTIVE": "GROWING", "INSIDE": "IDLE"}),
)  # fmt: skip


def all_mutants() -> list[tuple[Subject, Mutant]]:
    """Every mutant of what excludes and what scales."""
    return [(one, mutant) for one in SUBJECTS for mutant in mutants(one.module, swaps=one.swaps)]


def full_name(subject: Subject, mutant: Mutant) -> str:
    """A name that no mutant of another file has."""
    return f"{subject.module.__name__.split('.')[2]}.{mutant.name}"
