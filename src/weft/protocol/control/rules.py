"""What do rules wish? Each is a function of what runs and what was observed; so far there is periodic placement.

A further rule is a function here, and its rank in the precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.model import Deployment, Observed, Placement
from weft.plan.errors import NoPlacement
from weft.plan.observing.believed import believed
from weft.plan.policies.periodic import periodic
from weft.protocol.control.words import BALANCE, PROMISE, Shift


class Desire(NamedTuple):
    """What a rule would change, and why."""

    who: str
    shifts: tuple[Shift, ...]
    reason: str


Rule = Callable[[Deployment, Observed, Placement], Iterator[Desire]]


def periodic_placement(deployment: Deployment, observed: Observed, running: Placement) -> Iterator[Desire]:
    """Moves that pay by what was measured; for a promise's sake where one is broken."""
    advising = deployment.control.advise
    if advising is None:
        return
    try:
        found = periodic(believed(deployment, observed), running, advising.price)
    except NoPlacement:
        return  # with what is down no placement is possible, and nothing can be better than what runs
    if found is not None:
        shifts = tuple(Shift(one.stream, one.before, one.after) for one in found.leaves)
        broken = [name for name, query in observed.queries.items() if query.promise_kept is False]
        whose = f"the promise of {', '.join(broken)} is broken; " if broken else ""
        yield Desire(PROMISE if broken else BALANCE, shifts, whose + found.reason())


RULES: tuple[Rule, ...] = (periodic_placement,)


def desires(deployment: Deployment, observed: Observed, running: Placement) -> list[Desire]:
    """What all rules wish on an observation."""
    return [desire for rule in RULES for desire in rule(deployment, observed, running)]
