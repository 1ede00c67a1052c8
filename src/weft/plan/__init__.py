"""Where should it run? Pure functions from a deployment to a placement, and what it would mean."""

from random import Random

from weft.model import Deployment, Placement
from weft.plan.errors import NoPlacement
from weft.plan.near import near
from weft.plan.planners import PLANNERS, Planner, budget
from weft.plan.stop import Stop, after_seconds, after_steps

__all__ = [
    "PLANNERS", "NoPlacement", "Planner", "Stop", "after_seconds", "after_steps", "near", "place",
]  # fmt: skip


def place(deployment: Deployment, running: Placement | None = None, seed: int = 0) -> Placement:
    """The placement that the deployment's own policy gives, within its budget of steps."""
    planner = PLANNERS[deployment.control.place.policy]
    return planner(deployment, running, Random(seed), after_steps(budget(deployment)))
