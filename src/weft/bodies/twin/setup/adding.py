"""What must a record plane hold where queries come in the scenario? All that ever run, those to come held back.

What comes for an operator whose query has not come yet waits for it from the beginning, so that it reads its sources
whole, as live; it is held at its site, and so a stream of another query is read whole, too, which live it is not.
"""

from __future__ import annotations

from dataclasses import replace

from weft.bodies.twin.setup.asking import CannotRun
from weft.model import AddAt, Control, Deployment, Placement
from weft.plan.changing.adding import coming
from weft.plan.changing.running_plan import Impossible


def with_coming(deployment: Deployment, placement: Placement, control: Control) -> tuple[Deployment, Placement]:
    """A deployment and its placement with all queries that the scenario brings; as they are where it brings none."""
    for what in sorted(deployment.scenario, key=lambda happening: happening.at_s):
        if not isinstance(what, AddAt):
            continue
        if control.balance is not None or control.scale is not None or control.advise is not None:
            raise CannotRun("scenario: queries do not come beside `balance`, `scale` or `advise` in the twin yet")
        known = {query.name for query in deployment.queries}
        again = next((query.name for query in what.queries if query.name in known), None)
        if again is not None:
            raise CannotRun(f"scenario: query {again} comes again, which the twin cannot do yet")
        wish = coming(deployment, placement, what.queries, control, "the scenario brings it", "scenario")
        if isinstance(wish, Impossible):
            continue  # it is refused in its turn, in the same words
        deployment = replace(deployment, queries=(*deployment.queries, *wish.queries))
        for stream, site in wish.homes.items():
            placement = placement.put(stream, site, wish.reasons.get(stream, wish.reason))
    return deployment, placement
