"""Hot-spot relief: which operators leave before a promise breaks, and where do they go? (Synergy §3.4)

Operators leave the site where records would wait longest on the way to results that come too late: those of the
greatest foreseen load first, until every slack is positive. A site takes them that has the least foreseen load of those
where no promise would break. Where one breaks whatever is done, they go where it breaks least, if that is far less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.model import Deployment, Observed, Placement, dataflow
from weft.plan.changing.next_plan import why_impossible
from weft.plan.dataflow.ordering import guards_of, is_ordering
from weft.plan.judging.outlook import Expected, Outlook, outlook
from weft.plan.observing.forecast import AUTO

LEAVING_MAX = 4
SOON_STEPS = 2  # a promise that breaks so soon cannot wait for a second look
FAR_LESS = 0.5
TOLD_MAX = 8


@dataclass(frozen=True, slots=True)
class HotSpot:
    """A promise that is expected to break: when, by how much, and the site where most of the time is lost."""

    query: str
    promised_ms: float
    expected_ms: float
    in_s: float
    site: str
    soon: bool


@dataclass(frozen=True, slots=True)
class Relief:
    """What should leave a site for which others, in words and in numbers; nothing leaves where nothing would help."""

    spot: HotSpot
    homes: Mapping[str, str]
    reason: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A placement that was looked at: what it moves where, and what would come of it."""

    homes: Mapping[str, str]
    placement: Placement
    expected: Expected
    over_ms: float
    """By how much promises would be broken at the horizon, all together."""
    harms: bool
    """Whether it fills a site beyond its quota, or breaks a promise that would be kept."""

    @property
    def keeps(self) -> bool:
        """Whether no promise breaks any more."""
        return not self.harms and self.over_ms <= 0


def relief(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str = AUTO
) -> Relief | None:
    """What relieves the first promise that is expected to break within the horizon; None where none is.

    Unless that is soon, it must have been expected at the look before, too: what one look sees may be chance.
    """
    if not past or any(node.stream not in running.homes for node in dataflow(deployment).nodes):
        return None
    seen = outlook(deployment, past, running, horizon_s, method)
    stays = seen.expected(running)
    spot = hot_spot(seen, running, stays)
    if spot is None or not (spot.soon or _was_seen(deployment, past[:-1], running, horizon_s, method)):
        return None
    return _relieved(seen, running, stays, spot)


def _was_seen(
    deployment: Deployment, past: Sequence[Observed], running: Placement, horizon_s: float, method: str
) -> bool:
    if not past:
        return False
    seen = outlook(deployment, past, running, horizon_s, method)
    return hot_spot(seen, running, seen.expected(running)) is not None


def hot_spot(seen: Outlook, running: Placement, stays: Expected) -> HotSpot | None:
    """The promise that is expected to break first, of those that sites have to do with."""
    found: list[tuple[int, float, HotSpot]] = []
    for query in seen.deployment.queries:
        promised_ms = query.promise.latency_ms
        if promised_ms is None or _hopeless(seen, query.name):
            continue
        latency_ms = stays.latency_ms[query.name]
        step = next((at for at, ms in enumerate(latency_ms) if ms > promised_ms), None)
        homes = {running.homes[node.stream] for node in dataflow(seen.deployment).behind(query.name)}
        if step is None or not homes:
            continue
        site = max(sorted(homes), key=lambda name: stays.waits_ms[name][step])
        in_s = seen.step_s * (step + 1)
        spot = HotSpot(query.name, promised_ms, latency_ms[step], in_s, site, step < SOON_STEPS)
        found.append((step, -latency_ms[-1] / promised_ms, spot))
    return min(found, key=lambda one: one[:2])[2] if found else None


def _hopeless(seen: Outlook, query: str) -> bool:
    """Whether what breaks a promise is nothing that sites have to do with, so that no other site helps."""
    promised_ms = seen.deployment.query(query).promise.latency_ms
    return promised_ms is not None and seen.bias_ms[query] >= promised_ms


def _relieved(seen: Outlook, running: Placement, stays: Expected, spot: HotSpot) -> Relief:
    leaving = _may_leave(seen, running, spot.site)
    sites = [site.name for site in seen.deployment.sites if site.name != spot.site and site.capacity > 0]
    sites.sort(key=lambda name: stays.busy[name][-1])
    tried: list[_Trial] = []
    for stream in leaving:
        found = list(_trials(seen, running, stays, {}, stream, sites))
        tried += found
        keeping = sorted((one for one in found if one.keeps), key=_fullest)
        if keeping:
            return _told(seen, stays, spot, keeping[0], tried, keeping[1:])
    several = _one_by_one(seen, running, stays, leaving, sites)
    tried += several
    if several and several[-1].keeps:
        return _told(seen, stays, spot, several[-1], tried, [])
    harmless = [one for one in tried if not one.harms]
    best = min(harmless, key=lambda one: (one.over_ms, len(one.homes)), default=None)
    if best is not None and best.over_ms <= FAR_LESS * _over_ms(seen, stays):
        return _told(seen, stays, spot, best, tried, [])
    why = (
        f"no site keeps all promises or breaks them far less, of {', '.join(sites) or 'none'}"
        if leaving
        else ("no operator there may leave")
    )
    return Relief(spot, {}, f"{_expected(spot)} at {spot.site}; {why}", _numbers(seen, stays, spot, tried))


def _fullest(trial: _Trial) -> float:
    """How busy the fullest site that takes something is foreseen to be, with what it takes."""
    return max(trial.expected.busy[site][-1] for site in trial.homes.values())


def _may_leave(seen: Outlook, running: Placement, site: str) -> list[str]:
    """The operators at a site that nothing holds there, those of the greatest foreseen load first."""
    load_ms = seen.rates[-1].load_ms
    here = [
        node.stream
        for node in dataflow(seen.deployment).nodes
        if running.homes[node.stream] == site and _is_free(seen, running, node.stream)
    ]
    return sorted((stream for stream in here if load_ms[stream] > 0), key=lambda stream: (-load_ms[stream], stream))


def _is_free(seen: Outlook, running: Placement, stream: str) -> bool:
    operator = dataflow(seen.deployment).node(stream).operator
    return operator.site is None and not is_ordering(operator) and not running.instances.get(stream)


def _one_by_one(
    seen: Outlook, running: Placement, stays: Expected, leaving: Sequence[str], sites: Sequence[str]
) -> list[_Trial]:
    """One operator after another leaves for where that helps most, until all promises are kept."""
    made: list[_Trial] = []
    homes: Mapping[str, str] = {}
    for stream in leaving:
        if stream in homes or len(homes) >= LEAVING_MAX:
            continue
        found = [one for one in _trials(seen, running, stays, homes, stream, sites) if not one.harms]
        best = min(found, key=lambda one: one.over_ms, default=None)
        if best is None or best.over_ms >= (made[-1].over_ms if made else _over_ms(seen, stays)):
            continue
        made.append(best)
        homes = best.homes
        if best.keeps:
            break
    return made


def _trials(
    seen: Outlook, running: Placement, stays: Expected, homes: Mapping[str, str], stream: str, sites: Sequence[str]
) -> Iterator[_Trial]:
    """What would come of an operator at each site to which it may go, beside others that leave already."""
    for site in sites:
        placement = _moved(seen, running, homes, stream, site)
        if placement is None:
            continue
        expected = seen.expected(placement)
        going = {name: to for name, to in placement.homes.items() if running.homes[name] != to}
        filled = [name for name in set(going.values()) if expected.busy[name][-1] > seen.deployment.site(name).quota]
        harms = bool(filled) or any(_breaks(seen, stays, expected, name) for name in seen.bias_ms)
        named = {name: to for name, to in going.items() if not is_ordering(_operator(seen, name))}
        yield _Trial(named, placement, expected, _over_ms(seen, expected), harms)


def _operator(seen: Outlook, stream: str) -> Any:
    return dataflow(seen.deployment).node(stream).operator


def _moved(seen: Outlook, running: Placement, homes: Mapping[str, str], stream: str, site: str) -> Placement | None:
    """The placement with an operator elsewhere; what reads it at its site goes along where it could not stay."""
    flow, before = dataflow(seen.deployment), running.homes[stream]
    after = [one.stream for one in flow.downstream(stream) if running.homes[one.stream] == before]
    for going in ([stream], [stream, *after]):
        if not all(_is_free(seen, running, one) or is_ordering(_operator(seen, one)) for one in going):
            continue
        placement = running
        for name, to in [*homes.items(), *((one, site) for one in going)]:
            placement = placement.put(name, to)
            query, _, own = name.partition(".")
            for guard in guards_of(seen.deployment.query(query), own):
                placement = placement.put(f"{query}.{guard}", to)
        changed = [name for name, to in placement.homes.items() if running.homes[name] != to]
        if not any(
            why_impossible(seen.deployment, placement, one, placement.homes[one], seen.paths) for one in changed
        ):
            return placement
    return None


def _breaks(seen: Outlook, stays: Expected, then: Expected, query: str) -> bool:
    """Whether a promise that would be kept would break, at any time."""
    promised_ms = seen.deployment.query(query).promise.latency_ms
    assert promised_ms is not None, "only promised latencies are expected"
    return max(then.latency_ms[query]) > promised_ms >= max(stays.latency_ms[query])


def _over_ms(seen: Outlook, then: Expected) -> float:
    """By how much promises would be broken at the horizon, all together; those that no site can help left out."""
    promised = {name: seen.deployment.query(name).promise.latency_ms or math.inf for name in seen.bias_ms}
    return sum(max(0.0, then.latency_ms[name][-1] - promised[name]) for name in promised if not _hopeless(seen, name))


def _told(
    seen: Outlook, stays: Expected, spot: HotSpot, chosen: _Trial, tried: Sequence[_Trial], others: Sequence[_Trial]
) -> Relief:
    names = list(chosen.homes)
    who = f"{names[0]} leaves" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} leave"
    sites = " and ".join(dict.fromkeys(chosen.homes.values()))
    if chosen.keeps:
        keep = "keep" if " and " in sites else "keeps"
        then = f"{sites} {keep} all promises; " + (f"next best {_goes(others[0])}" if others else "no other site does")
    else:
        after_ms = chosen.expected.latency_ms[spot.query][-1]
        then = f"{_time(after_ms)} at {sites}, and nowhere less, against {_time(stays.latency_ms[spot.query][-1])} here"
    reason = f"{who} {spot.site}: {_expected(spot)}; {then}"
    return Relief(spot, chosen.homes, reason, _numbers(seen, stays, spot, tried, chosen))


def _goes(one: _Trial) -> str:
    return " and ".join(dict.fromkeys(one.homes.values()))


def _expected(spot: HotSpot) -> str:
    return f"{_time(spot.expected_ms)} expected in {spot.in_s:g} s against a promise of {_time(spot.promised_ms)}"


def _time(ms: float) -> str:
    if not math.isfinite(ms):
        return "no end"
    return f"{ms / 1000:.3g} s" if ms >= 1000 else f"{ms:.3g} ms"


def _numbers(
    seen: Outlook, stays: Expected, spot: HotSpot, tried: Sequence[_Trial], chosen: _Trial | None = None
) -> dict[str, Any]:
    """The numbers behind a decision, as the log keeps them."""
    step = min(seen.steps - 1, max(0, round(spot.in_s / seen.step_s) - 1))
    slack = seen.slack_ms(stays.waits_ms, spot.query, step)
    told = sorted(tried, key=lambda one: (one is not chosen, not one.keeps, one.over_ms))[:TOLD_MAX]
    return {
        "query": spot.query,
        "promised_ms": spot.promised_ms,
        "expected_ms": _number(spot.expected_ms),
        "in_s": round(spot.in_s, 3),
        "site": spot.site,
        "utilisation": {name: _number(used[-1]) for name, used in stays.busy.items()},
        "slack_ms": {stream: _number(left) for stream, left in slack.items()},
        "bias_ms": _number(seen.bias_ms[spot.query]),
        "sources": {
            name: {"at_horizon_per_s": _number(one.per_s[-1]), "by": one.method} for name, one in seen.forecasts.items()
        },
        "tried": [
            {
                "homes": dict(one.homes),
                "latency_ms": _number(one.expected.latency_ms[spot.query][-1]),
                "utilisation": {to: _number(one.expected.busy[to][-1]) for to in dict.fromkeys(one.homes.values())},
                "keeps": one.keeps,
            }
            for one in told
        ],
    }


def _number(value: float) -> float | None:
    """As JSON has it: without bound is none."""
    return round(value, 4) if math.isfinite(value) else None
