"""What must a site know to run a fragment? All that is told to it; it knows no fragment otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.plan.changing.fragments import Fragment

Gate = dict[str, int | dict[str, int]]
"""Where each input of a fragment that was started early goes on at the earliest."""


@dataclass(frozen=True, slots=True)
class Task:
    """A fragment, how often it was cut anew, where an early start goes on, and where the streams it reads are written.

    `plan` is the number of the plan that has it so.
    """

    fragment: Fragment
    generation: int = 0
    gate: Gate | None = None
    homes: dict[str, str] = field(default_factory=dict)
    plan: int = 0


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Where a fragment to come goes on: the generation of its checkpoint, and the gate of one started early."""

    fragment: Fragment
    generation: int
    gate: Gate | None = None


def homes_of(fragment: Fragment, fragments: Sequence[Fragment]) -> dict[str, str]:
    """The sites at which the channels that a fragment reads are written, in a cut."""
    written: Mapping[str, str] = {stream: one.site for one in fragments for stream in one.outputs}
    return {stream: written[stream] for stream in fragment.channels if stream in written}
