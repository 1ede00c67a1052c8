"""What would come of an operator elsewhere? Placements that relief tries, and whether they keep what was promised."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.model import Operator, Placement, dataflow
from weft.plan.changing.next_plan import why_impossible
from weft.plan.dataflow.ordering import guards_of, is_ordering
from weft.plan.foreseeing.outlook import Expected, Outlook


@dataclass(frozen=True, slots=True)
class Trial:
    """A placement that was looked at: what it moves where, and what would come of it."""

    homes: Mapping[str, str]
    placement: Placement
    expected: Expected
    over_ms: float
    """By how much promises would be broken at the horizon, of those that the site has to do with or that are harmed."""
    harms: bool
    """Whether it fills a site beyond its quota, or breaks a promise that would be kept."""

    @property
    def keeps(self) -> bool:
        """Whether no promise breaks any more that the site has to do with."""
        return not self.harms and self.over_ms <= 0


def trials(
    seen: Outlook, running: Placement, stays: Expected, homes: Mapping[str, str], stream: str, sites: Sequence[str],
    own: Collection[str],
) -> Iterator[Trial]:  # fmt: skip
    """What would come of an operator at each site to which it may go, beside others that leave already.

    `own` are the queries that the site has to do with which it leaves.
    """
    for site in sites:
        for placement in _moved(seen, running, homes, stream, site):
            one = _trial(seen, running, placement, seen.expected(placement, stays), stays, own)
            yield one
            if one.keeps:
                break


def _trial(
    seen: Outlook, running: Placement, placement: Placement, expected: Expected, stays: Expected, own: Collection[str]
) -> Trial:  # fmt: skip
    going = {name: to for name, to in placement.homes.items() if running.homes[name] != to}
    filled = [name for name in set(going.values()) if expected.busy[name][-1] > seen.deployment.site(name).quota]
    harms = bool(filled) or any(_breaks(seen, stays, expected, name) for name in seen.bias_ms)
    named = {name: to for name, to in going.items() if not is_ordering(_operator(seen, name))}
    return Trial(named, placement, expected, over_ms(seen, expected, stays, own), harms)


def _moved(
    seen: Outlook, running: Placement, homes: Mapping[str, str], stream: str, site: str
) -> list[Placement]:  # fmt: skip
    """The placements with an operator elsewhere: alone, and with what reads it at its site.

    First that with fewer streams between sites: each of them is a hop, and a fragment more at either end.
    """
    flow, before = dataflow(seen.deployment), running.homes[stream]
    after = [one.stream for one in flow.downstream(stream) if running.homes[one.stream] == before]
    found: list[Placement] = []
    for going in ([stream], [stream, *after])[: 1 + bool(after)]:
        if not all(is_free(seen, running, one) or is_ordering(_operator(seen, one)) for one in going):
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
            found.append(placement)
    return sorted(found, key=lambda one: _hops(seen, one))


def _hops(seen: Outlook, placement: Placement) -> int:
    """How many inputs of operators come from other sites."""
    flow = dataflow(seen.deployment)
    sources = {source.name: source.site for source in seen.deployment.sources}
    homes = {**sources, **placement.homes}
    return sum(homes[name] != homes[node.stream] for node in flow.nodes for name in node.inputs)


def is_free(seen: Outlook, running: Placement, stream: str) -> bool:
    """Whether nothing holds an operator where it is: no pin, no further instances, nothing that it guards."""
    operator = dataflow(seen.deployment).node(stream).operator
    return operator.site is None and not is_ordering(operator) and not running.instances.get(stream)


def _operator(seen: Outlook, stream: str) -> Operator:
    return dataflow(seen.deployment).node(stream).operator


def _breaks(seen: Outlook, stays: Expected, then: Expected, query: str) -> bool:
    """Whether a promise that would be kept would break, at any time."""
    promised_ms = seen.deployment.query(query).promise.latency_ms
    assert promised_ms is not None, "only promised latencies are expected"
    return max(then.latency_ms[query]) > promised_ms >= max(stays.latency_ms[query])


def queries_at(seen: Outlook, running: Placement, site: str) -> set[str]:
    """The queries with a promise on whose way something runs at a site."""
    flow = dataflow(seen.deployment)
    return {name for name in seen.bias_ms if any(running.homes[node.stream] == site for node in flow.behind(name))}


def over_ms(seen: Outlook, then: Expected, stays: Expected, own: Collection[str]) -> float:
    """By how much promises of some queries would be broken at the horizon, and more than now those of others.

    What is late elsewhere is another move's to help; what no site can help is left out.
    """
    found = 0.0
    for name in seen.bias_ms:
        if not hopeless(seen, name):
            over = _over_ms(seen, then, name)
            found += over if name in own else max(0.0, over - _over_ms(seen, stays, name))
    return found


def keeps_all(seen: Outlook, then: Expected) -> bool:
    """Whether no promise breaks anywhere, but for those that no site can help."""
    return not any(_over_ms(seen, then, name) > 0 and not hopeless(seen, name) for name in seen.bias_ms)


def _over_ms(seen: Outlook, then: Expected, query: str) -> float:
    return max(0.0, then.latency_ms[query][-1] - (seen.deployment.query(query).promise.latency_ms or math.inf))


def hopeless(seen: Outlook, query: str) -> bool:
    """Whether what breaks a promise is nothing that sites have to do with, so that no other site helps."""
    promised_ms = seen.deployment.query(query).promise.latency_ms
    return promised_ms is not None and seen.bias_ms[query] >= promised_ms


def fullest(trial: Trial) -> float:
    """How busy the fullest site that takes something is foreseen to be, with what it takes."""
    return max(trial.expected.busy[site][-1] for site in trial.homes.values())
