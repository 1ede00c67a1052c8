"""Policy `near`: each operator as close to its inputs as capacity, pins, links and the tree rule allow."""

from __future__ import annotations

from random import Random

from weft.model import Deployment, Placement
from weft.plan.search.nearest import nearest
from weft.plan.stop import Stop


def near(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
    """The nearest placement; the simplest planner neither searches nor remembers."""
    del running, rng, stop
    return nearest(deployment)
