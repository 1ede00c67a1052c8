"""Where should it run? Pure functions from a deployment to a placement, and what it would mean."""

from collections.abc import Callable
from random import Random

from weft.model import Deployment, Placement
from weft.plan.errors import NoPlacement
from weft.plan.near import near
from weft.plan.stop import Stop, after_steps

Planner = Callable[[Deployment, Placement | None, Random, Stop], Placement]
PLANNERS: dict[str, Planner] = {"near": near}

__all__ = ["PLANNERS", "NoPlacement", "Planner", "Stop", "after_steps", "near", "place"]


def place(deployment: Deployment, running: Placement | None = None, seed: int = 0) -> Placement:
    """The placement that the deployment's own policy gives."""
    planner = PLANNERS[deployment.control.place.policy]
    return planner(deployment, running, Random(seed), after_steps(10_000))
