"""Periodic placement: what should move now, of what runs already? (Potential §4.2)

The published share theta is the file's `keep`: the lightest of the operators stay where they run. Each other that
leaves costs a price, in the unit of the objective, so that what is gained must be worth the pause of a move. Ordering
operators go with what they guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.dataflow.ordering import guards_of, is_ordering
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.judging.potential import potential
from weft.plan.judging.projection import latency_objective
from weft.plan.planners import PLANNERS, budget
from weft.plan.search.brute_force import score
from weft.plan.search.problem import Problem, problem
from weft.plan.stop import after_steps


@dataclass(frozen=True, slots=True)
class Leave:
    """The operator of a stream that should run elsewhere, and why there."""

    stream: str
    before: str
    after: str
    why: str


@dataclass(frozen=True, slots=True)
class Better:
    """A placement that is worth its moves: what leaves, and the objective before and after; None is without bound."""

    leaves: tuple[Leave, ...]
    objective: str
    value_before: float | None
    value_after: float | None
    busy: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """How busy the sites are that something leaves or joins, before and after; None is without bound."""

    def reason(self) -> str:
        """What is gained, as text."""
        unit = " ms" if self.objective == "latency" else ""
        before, after = ("without bound" if one is None else f"{one:.4g}{unit}" for one in self._values())
        return f"{self.objective} {after} instead of {before}"

    def _values(self) -> tuple[float | None, float | None]:
        return self.value_before, self.value_after


def periodic(deployment: Deployment, running: Placement, price: float, seed: int = 0) -> Better | None:
    """What the deployment's own policy would move now, None where nothing is worth its price."""
    policy = deployment.control.place.policy
    rng, stop = Random(seed), after_steps(budget(deployment))
    if policy == "refine":
        from weft.plan.policies.refine import refine

        found = refine(deployment, running, rng, stop, price=price)
    else:
        found = PLANNERS[policy](deployment, running, rng, stop)
    found = _with_guards(deployment, running, found)
    leaves = tuple(_leaves(deployment, running, found))
    if any(deployment.site(leave.after).capacity <= 0 for leave in leaves):
        return None  # what would have to run cannot run anywhere
    if not leaves or not _pays(problem(deployment), running, found, price * len(leaves)):
        return None
    before, after = (_value(deployment, placement) for placement in (running, found))
    known = {site.name for site in deployment.sites}
    touched = [site for one in leaves for site in (one.before, one.after) if site in known]
    busy = {site: _busy(deployment, site, running, found) for site in touched}
    return Better(leaves, deployment.control.place.objective, before, after, busy)


def _busy(deployment: Deployment, site: str, *placements: Placement) -> tuple[float | None, float | None]:
    """The share of its capacity that a site is asked for, by each of two placements."""
    load_ms, room_ms = ideal_rates(deployment).load_ms, 1000.0 * deployment.site(site).capacity
    before, after = (sum(load_ms.get(stream, 0.0) for stream in one.on(site)) for one in placements)
    return (round(before / room_ms, 4), round(after / room_ms, 4)) if room_ms > 0 else (None, None)


def _with_guards(deployment: Deployment, running: Placement, found: Placement) -> Placement:
    """The placement found, with ordering operators where they are, or where what they guard goes."""
    for query in deployment.queries:
        for operator in query.operators:
            stream = f"{query.name}.{operator.name}"
            home = found.home(stream)
            for name in guards_of(query, operator.name):
                guard = f"{query.name}.{name}"
                stays = running.home(guard) if home == running.home(stream) else home
                found = found.put(guard, stays, found.reasons.get(guard, ""))
    return found


def _leaves(deployment: Deployment, running: Placement, found: Placement) -> list[Leave]:
    leaves = []
    for query in deployment.queries:
        for operator in query.operators:
            stream = f"{query.name}.{operator.name}"
            before, after = running.home(stream), found.home(stream)
            if before != after and not is_ordering(operator):
                leaves.append(Leave(stream, before, after, found.reasons.get(stream, "")))
    return leaves


def _pays(given: Problem, running: Placement, found: Placement, price: float) -> bool:
    """True if the gain, by what the search minimises, is above the price; what stands nowhere gains in any case."""
    before, after = given.homes(running), given.homes(found)
    if np.any(before < 0):
        return True
    gained = score(given.flat, before.tolist()) - score(given.flat, after.tolist())
    return gained > max(price, 0.0)


def _value(deployment: Deployment, placement: Placement) -> float | None:
    """What is minimised, as people are told it; None where it has no bound, or an operator stands nowhere."""
    sites = {site.name for site in deployment.sites}
    if not sites.issuperset(placement.homes.values()):
        return None
    if deployment.control.place.objective == "potential":
        return potential(deployment, placement).total
    return latency_objective(deployment, placement)
