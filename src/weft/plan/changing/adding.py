"""What is wished where queries come to what runs? All of them written out, shared among one another, and placed.

What runs stays where it is, and what comes is placed around it. Queries that come together share what they ask alike;
with what runs they share nothing, since that has given its first records away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weft.model import Control, Deployment, Placement, Query, Sharing
from weft.model.wishes import AddQuery, By
from weft.plan import NoPlacement, place
from weft.plan.changing.next_plan import why_taken, why_unread
from weft.plan.changing.running_plan import Impossible
from weft.plan.dataflow.ordering import with_ordering
from weft.plan.dataflow.sharing import are_together, is_on, shared, stands_by_meaning
from weft.plan.dataflow.together import with_together

Seen = Callable[[Deployment], Deployment]
"""A deployment as planners are to see it: with what was measured, and what a hop costs."""


def coming(
    deployment: Deployment, running: Placement, queries: tuple[Query, ...], control: Control,
    reason: str, by: By, seen: Seen = lambda found: found, seed: int = 0,
) -> AddQuery | Impossible:  # fmt: skip
    """The wish for queries, as they were read, to come to a deployment that runs so; `control` is the file's own."""
    taken = why_taken(deployment, queries)
    unread = why_unread(replace(deployment, queries=(*deployment.queries, *queries)), queries)
    why_not = taken or unread
    if why_not is not None:
        return Impossible(why_not)
    names = {query.name for query in queries}
    written = _written(deployment, queries, control)
    whole = replace(deployment, queries=(*deployment.queries, *written))
    stands = stands_by_meaning(whole, names) if is_on(whole) else {}
    alone = shared(replace(whole, sharing=None), stands) if stands else replace(whole, sharing=None)
    if is_on(deployment) and are_together(deployment):
        alone = with_together(alone, names)
    if alone.sharing is not None:
        whole, stands = replace(alone, sharing=deployment.sharing), dict(alone.sharing.stands)
    new = tuple(query for query in whole.queries if query.name in names)
    try:
        planned = place(seen(_pinned(whole, running)), seed=seed)
    except NoPlacement as error:
        return Impossible(str(error))
    streams = [f"{query.name}.{operator.name}" for query in new for operator in query.operators]
    homes = {stream: planned.home(stream) for stream in streams}
    reasons = {stream: planned.reasons.get(stream, reason) for stream in streams}
    return AddQuery(new, homes, reasons, reason, by, Sharing(written, stands) if stands else None)


def _written(deployment: Deployment, queries: tuple[Query, ...], control: Control) -> tuple[Query, ...]:
    """Queries with what puts their records in order, as the file's own have it."""
    whole = replace(deployment, queries=(*deployment.queries, *queries), control=control)
    names = {query.name for query in queries}
    return tuple(query for query in with_ordering(whole).queries if query.name in names)


def _pinned(deployment: Deployment, running: Placement) -> Deployment:
    """A deployment in which all that runs is pinned to where it is."""
    queries = tuple(
        replace(
            query,
            operators=tuple(
                replace(one, site=running.homes.get(f"{query.name}.{one.name}", one.site)) for one in query.operators
            ),
        )
        for query in deployment.queries
    )
    return replace(deployment, queries=queries)
