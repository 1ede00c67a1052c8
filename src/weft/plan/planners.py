"""Which planners are there? All of one shape; what is compiled is loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from random import Random

from weft.model import Deployment, Placement
from weft.plan.policies.near import near
from weft.plan.stop import Stop

Planner = Callable[[Deployment, Placement | None, Random, Stop], Placement]


def _later(module: str, name: str) -> Planner:
    """A planner whose module is read on the first call: numpy and numba take longer to load than `near` to plan."""

    def planner(deployment: Deployment, running: Placement | None, rng: Random, stop: Stop) -> Placement:
        found: Planner = getattr(import_module(f"weft.plan.{module}"), name)
        return found(deployment, running, rng, stop)

    return planner


PLANNERS: dict[str, Planner] = {
    "near": near,
    "greedy": _later("policies.greedy", "greedy"),
    "dp": _later("policies.greedy", "dp"),
    "xzh": _later("policies.rivals.xzh", "xzh"),
    "cuckoo": _later("policies.rivals.cuckoo", "cuckoo"),
    "refine": _later("policies.refine", "refine"),
    "random": _later("policies.rivals.simple", "random"),
    "latency": _later("policies.rivals.simple", "latency"),
    "partition": _later("policies.rivals.simple", "partition"),
    "tree": _later("policies.rivals.simple", "tree"),
    "collocated": _later("policies.rivals.simple", "collocated"),
    "exact": _later("policies.exact", "exact"),
}


def budget(deployment: Deployment) -> int:
    """Steps that a search may take unless told otherwise: more for more operators, within a second or a few."""
    operators = sum(len(query.operators) for query in deployment.queries)
    return max(100_000, min(2_000_000, 500 * operators))
