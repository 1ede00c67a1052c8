"""Where should it run? Pure functions from a deployment to a placement, and what it would mean."""

from dataclasses import replace
from random import Random

from weft.model import Deployment, Placement
from weft.plan.errors import NoPlacement
from weft.plan.planners import PLANNERS, Planner, budget
from weft.plan.policies.near import near
from weft.plan.stop import Stop, after_seconds, after_steps

__all__ = [
    "HOP_MS", "PLANNERS", "NoPlacement", "Planner", "Stop", "after_seconds", "after_steps", "counting_hops", "near",
    "place",
]  # fmt: skip

# A stream between sites is one more micro-batch on Spark: 0.2 to 0.3 s on the mean, where no calibration says more.
HOP_MS = 250.0


def place(deployment: Deployment, running: Placement | None = None, seed: int = 0) -> Placement:
    """The placement that the deployment's own policy gives, within its budget of steps."""
    planner = PLANNERS[deployment.control.place.policy]
    counted = counting_hops(deployment, batch_ms(deployment))
    return planner(counted, running, Random(seed), after_steps(budget(deployment)))


def batch_ms(deployment: Deployment) -> float:
    """What a hop costs where sites say how their micro-batches fall: half an interval and what a batch costs itself."""
    waits = [
        site.batch.interval_ms / 2 + site.batch.fixed_ms / site.capacity
        for site in deployment.sites
        if site.batch is not None and site.capacity > 0
    ]
    return sum(waits) / len(waits) if waits else 0.0


def counting_hops(deployment: Deployment, hop_ms: float = HOP_MS) -> Deployment:
    """The same, with what a hop costs the body that asks, unless the file says."""
    if deployment.control.place.hop_ms is not None:
        return deployment
    counted = replace(deployment.control.place, hop_ms=hop_ms)
    return replace(deployment, control=replace(deployment.control, place=counted))
