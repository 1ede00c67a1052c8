"""Who is to hear of delays, and what follows from them? The slack that a site reckons from the words it has heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.model import Deployment
from weft.plan.judging.slack import local_slack, sites_of
from weft.plan.network.paths import Paths
from weft.protocol.feedback.words import DelayPart, DelayWord


def parts_of(deployment: Deployment, homes: Mapping[str, str]) -> dict[str, tuple[DelayPart, ...]]:
    """The queries with a promise of latency that each site takes part in; delays go through the first operator's."""
    found: dict[str, list[DelayPart]] = {site.name: [] for site in deployment.sites}
    for query in deployment.queries:
        sites = sites_of(deployment, query.name, homes) if query.promise.latency_ms is not None else ()
        for site in sites:
            found[site].append(DelayPart(query.name, sites[0], sites))
    return {site: tuple(parts) for site, parts in found.items()}


def slack_at(
    site: str, deployment: Deployment, query: str, words: Sequence[DelayWord], paths: Paths
) -> dict[str, float] | None:
    """The slack in ms of a query's operators at a site, or of all where it runs none; None where too little is known.

    Who tells of an operator runs it: so a site need not be told where others are.
    """
    homes = {name: word.site for word in words for name, _ in word.took_ms}
    visits_ms = {name: float(ms) for word in words for name, ms in word.took_ms}
    delay_ms = max((word.delay_ms for word in words if word.delay_ms is not None), default=None)
    found = local_slack(deployment, query, homes, visits_ms, delay_ms, paths)
    if found is None:
        return None
    return {name: ms for name, ms in found.items() if homes[name] == site} or found
