"""Hot-spot relief: which operators leave before a promise breaks, and where do they go? (Synergy §3.4)

Operators leave the site where records would wait longest on the way to results that come too late: those of the
greatest foreseen load first, until every slack is positive. A site takes them that has the least foreseen load of those
where no promise would break. Where one breaks whatever is done, they go where it breaks least, if that is far less.

Nobody leaves before it must: what is foreseen for the end of the horizon is mostly a rise that was drawn out, and rises
end. So it is waited until work is about to pile up at the site, which is when a promise begins to be lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from weft.model import Deployment, Observed, Placement, dataflow
from weft.plan.foreseeing.outlook import Expected, Outlook, outlook
from weft.plan.foreseeing.telling import HotSpot, Relief, expectation, numbers, told
from weft.plan.foreseeing.trials import Trial, fullest, hopeless, is_free, over_ms, queries_at, trials
from weft.plan.observing.forecast import AUTO

LEAVING_MAX = 4
SPOTS_MAX = 4  # in one look; the others are there at the next
TRIED_MAX, SITES_MAX = 8, 16  # operators and sites that are tried, so that a look ends in seconds in any deployment
SOON_STEPS = 2  # a promise that breaks so soon cannot wait for a second look
FAR_LESS = 0.5
FULL = 1.0  # where a site is asked for more than this of what it can do, work piles up


def reliefs(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str = AUTO
) -> list[Relief]:
    """What relieves the promises that are expected to break within the horizon, the first ones first; one for a site.

    Unless that is soon, it must have been expected at the look before, too, for what one look sees may be chance, and
    work must be about to pile up.
    """
    if not past or any(node.stream not in running.homes for node in dataflow(deployment).nodes):
        return []
    seen = outlook(deployment, past, running, horizon_s, method)
    stays = seen.expected(running)
    spots = [one for one in hot_spots(seen, running, stays) if one.soon or _piles_up(stays, one.site)]
    known = None if all(one.soon for one in spots) else _seen_before(deployment, past[:-1], running, horizon_s, method)
    due = [one for one in spots if one.soon or (known is not None and one.query in known)]
    return [_relieved(seen, running, stays, spot) for spot in due[:SPOTS_MAX]]


def _piles_up(stays: Expected, site: str) -> bool:
    """Whether a site is asked for more than it can do within the next steps."""
    return max(stays.busy[site][:SOON_STEPS]) >= FULL


def _seen_before(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str
) -> set[str]:
    """The queries whose promises were expected to break at the look before."""
    if not past:
        return set()
    seen = outlook(deployment, past, running, horizon_s, method)
    return {one.query for one in hot_spots(seen, running, seen.expected(running))}


def hot_spots(seen: Outlook, running: Placement, stays: Expected) -> list[HotSpot]:
    """The promises that are expected to break, of those that sites have to do with, and where: each site once.

    A promise may be lost at several sites: where records wait longest, and wherever work piles up.
    """
    found: list[tuple[tuple[int, float, float], HotSpot]] = []
    for query in seen.deployment.queries:
        promised_ms = query.promise.latency_ms
        if promised_ms is None or hopeless(seen, query.name):
            continue
        latency_ms = stays.latency_ms[query.name]
        step = next((at for at, ms in enumerate(latency_ms) if ms > promised_ms), None)
        homes = sorted({running.homes[node.stream] for node in dataflow(seen.deployment).behind(query.name)})
        if step is None or not homes:
            continue
        in_s = seen.step_s * (step + 1)
        waits = {site: stays.waits[site][step].total_ms for site in homes}
        slowest = max(homes, key=lambda site: waits[site])
        for site in homes:
            if site == slowest or _piles_up(stays, site):
                spot = HotSpot(query.name, promised_ms, latency_ms[step], in_s, site, step < SOON_STEPS)
                found.append(((step, -latency_ms[-1] / promised_ms, -waits[site]), spot))
    first: dict[str, HotSpot] = {}
    for _, spot in sorted(found, key=lambda one: one[0]):
        first.setdefault(spot.site, spot)
    return list(first.values())


def _relieved(seen: Outlook, running: Placement, stays: Expected, spot: HotSpot) -> Relief:
    leaving = _may_leave(seen, running, spot.site)[:TRIED_MAX]
    sites = _may_take(seen, stays, spot.site)[:SITES_MAX]
    own = queries_at(seen, running, spot.site)
    tried: list[Trial] = []
    for stream in leaving:
        found = list(trials(seen, running, stays, {}, stream, sites, own))
        tried += found
        keeping = sorted((one for one in found if one.keeps), key=fullest)
        if keeping:
            return told(seen, stays, spot, keeping[0], tried, keeping[1:])
    several = _one_by_one(seen, running, stays, leaving, sites, own)
    tried += several
    if several and several[-1].keeps:
        return told(seen, stays, spot, several[-1], tried, [])
    harmless = [one for one in tried if not one.harms]
    best = min(harmless, key=lambda one: (one.over_ms, len(one.homes)), default=None)
    before_ms = over_ms(seen, stays, stays, own)
    if best is not None and best.over_ms < before_ms and best.over_ms <= FAR_LESS * before_ms:
        return told(seen, stays, spot, best, tried, [])
    why = f"no site keeps all promises or breaks them far less, of {', '.join(sites) or 'none'}"
    why = why if leaving else "no operator there may leave"
    return Relief(spot, {}, f"{expectation(spot)} at {spot.site}; {why}", numbers(seen, stays, spot, tried))


def _may_take(seen: Outlook, stays: Expected, site: str) -> list[str]:
    """The other sites that are up and can be reached, those of the least foreseen load first, then the nearest."""
    found = []
    for other in seen.deployment.sites:
        path = seen.paths.between(site, other.name)
        if other.name != site and other.capacity > 0 and path is not None:
            found.append((stays.busy[other.name][-1], path.delay_ms, other.name))
    return [name for _, _, name in sorted(found)]


def _may_leave(seen: Outlook, running: Placement, site: str) -> list[str]:
    """The operators at a site that nothing holds there, those of the greatest foreseen load first."""
    load_ms = seen.rates[-1].load_ms
    here = [
        node.stream
        for node in dataflow(seen.deployment).nodes
        if running.homes[node.stream] == site and is_free(seen, running, node.stream)
    ]
    return sorted((stream for stream in here if load_ms[stream] > 0), key=lambda stream: (-load_ms[stream], stream))


def _one_by_one(
    seen: Outlook, running: Placement, stays: Expected, leaving: Sequence[str], sites: Sequence[str],
    own: Collection[str],
) -> list[Trial]:  # fmt: skip
    """One operator after another leaves for where that helps most, until all promises are kept."""
    made: list[Trial] = []
    homes: Mapping[str, str] = {}
    for stream in leaving:
        if stream in homes or len(homes) >= LEAVING_MAX:
            continue
        found = [one for one in trials(seen, running, stays, homes, stream, sites, own) if not one.harms]
        best = min(found, key=lambda one: one.over_ms, default=None)
        if best is None or best.over_ms >= (made[-1].over_ms if made else over_ms(seen, stays, stays, own)):
            continue
        made.append(best)
        homes = best.homes
        if best.keeps:
            break
    return made
