"""What do rules wish? Each is a function of what runs and what was observed: relief, and periodic placement.

A further rule is a function here and its line in `RULES`; what turns it on is a part of `model/control.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft.model import Advise, Control, Deployment, Observed, Placement
from weft.model.wishes import By
from weft.plan.errors import NoPlacement
from weft.plan.foreseeing.relief import reliefs
from weft.plan.observing.believed import believed
from weft.plan.policies.periodic import Better, periodic
from weft.protocol.control.words import BALANCE, PROMISE, Shift


class Desire(NamedTuple):
    """What a rule would change, why, and by which numbers; without shifts it says why it can wish nothing."""

    who: str
    shifts: tuple[Shift, ...]
    reason: str
    by: By = "place"
    numbers: Mapping[str, Any] = {}


Rule = Callable[[Deployment, Sequence[Observed], Placement], Iterator[Desire]]


def relieve(deployment: Deployment, past: Sequence[Observed], running: Placement) -> Iterator[Desire]:
    """What leaves a site before a promise breaks there."""
    relieving = deployment.control.relief
    if relieving is None:
        return
    for found in reliefs(deployment, past, running, relieving.horizon_s, relieving.forecast):
        shifts = tuple(Shift(stream, running.homes[stream], to) for stream, to in found.homes.items())
        yield Desire(PROMISE, shifts, found.reason, "relief", found.numbers)


def periodic_placement(deployment: Deployment, past: Sequence[Observed], running: Placement) -> Iterator[Desire]:
    """Moves that pay by what was measured; for a promise's sake where one is broken."""
    advising = deployment.control.advise
    if advising is None:
        return
    observed = past[-1]
    try:
        found = periodic(believed(deployment, observed), running, advising.price)
    except NoPlacement:
        return  # with what is down no placement is possible, and nothing can be better than what runs
    if found is not None:
        shifts = tuple(Shift(one.stream, one.before, one.after) for one in found.leaves)
        broken = [name for name, query in observed.queries.items() if query.promise_kept is False]
        whose = f"the promise of {', '.join(broken)} is broken; " if broken else ""
        yield Desire(PROMISE if broken else BALANCE, shifts, whose + found.reason(), numbers=_behind(found, advising))


def _behind(found: Better, advising: Advise) -> dict[str, Any]:
    """The numbers behind moves that pay, as the log keeps them."""
    return {
        "objective": {"name": found.objective, "before": found.value_before, "after": found.value_after},
        "price": advising.price,
        "busy": {site: {"before": before, "after": after} for site, (before, after) in found.busy.items()},
        "why": {one.stream: one.why for one in found.leaves if one.why},
    }


class RuleEntry(NamedTuple):
    """A rule, the part of `control` that turns it on (`period_s` is how often it looks), and whether it ever acts."""

    rule: Rule
    part: Callable[[Control], Any]
    acts: bool = True


RULES: Mapping[By, RuleEntry] = {
    "relief": RuleEntry(relieve, lambda control: control.relief),
    "place": RuleEntry(periodic_placement, lambda control: control.advise, acts=False),
}


def acts(deployment: Deployment) -> bool:
    """True if a rule may change something: one that is on and does not only advise, where nobody asks for that."""
    control = deployment.control
    return control.advise is None and any(one.acts and one.part(control) is not None for one in RULES.values())


def periods_s(deployment: Deployment) -> dict[By, float]:
    """How often each rule that is on looks."""
    parts = {name: one.part(deployment.control) for name, one in RULES.items()}
    return {name: part.period_s for name, part in parts.items() if part is not None}


def looks_every_s(deployment: Deployment) -> float | None:
    """How often a run is measured for its rules; None where none is on."""
    return min(periods_s(deployment).values(), default=None)


def due_rules(deployment: Deployment, looked_s: Mapping[str, float], at_s: float) -> list[By]:
    """The rules that look at a moment: the most frequent always, others where their period is over, or nearly."""
    periods, least_s = periods_s(deployment), looks_every_s(deployment)
    return [
        name
        for name, period_s in periods.items()
        if period_s == least_s or name not in looked_s or at_s >= looked_s[name] + 0.9 * period_s
    ]


def desires(
    deployment: Deployment, past: Sequence[Observed], running: Placement, due: Collection[By] = tuple(RULES)
) -> list[Desire]:
    """What rules wish on the last of some observations, all of them complete."""
    return [desire for name, one in RULES.items() if name in due for desire in one.rule(deployment, past, running)]
