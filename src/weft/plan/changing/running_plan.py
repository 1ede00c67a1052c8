"""What runs, whole: one plan is in force at a time, and one change makes the next of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.model import Deployment, Placement
from weft.plan.changing.fragments import Fragment, Relays
from weft.plan.network.paths import Paths

Cut = Callable[[Deployment, Placement, Relays], tuple[Fragment, ...]]
"""How a body cuts a placement into fragments, given which operators read which source through a relay already."""


@dataclass(frozen=True, slots=True)
class RunningPlan:
    """The plan in force, or one that may follow it; `number` is that of the change that made it, 0 for the first."""

    number: int
    deployment: Deployment
    placement: Placement
    fragments: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Impossible:
    """A wish that cannot be, in words for whoever asked."""

    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What a body can do: how it cuts, and whether operators may run as several instances.

    `paths` are those of its sites and links, which no wish changes.
    """

    cut: Cut
    paths: Paths
    instances: bool = False


def first_plan(deployment: Deployment, placement: Placement, rules: Rules) -> RunningPlan:
    """The plan that a deployment begins with."""
    return RunningPlan(0, deployment, placement, rules.cut(deployment, placement, {}))
