"""Why is it there? What a search has to say for each operator: the next best site, and what it would cost there."""

from __future__ import annotations

from typing import NamedTuple

from weft.model import dataflow
from weft.plan.network.path_tables import Ints
from weft.plan.search.as_fast import AsFast, groups, slower
from weft.plan.search.brute_force import beyond, score
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps

# Comparing with every other site takes a whole score each: for small problems only.
COMPARED_MAX = 200
LITTLE = 1e-9


class Other(NamedTuple):
    """An operator elsewhere: what that breaks, how much slower and more it is; least is next best."""

    overloads: bool
    breaks: bool
    slower_ms: float
    sends_kbps: float
    sites: int
    score: float
    site: str


def reasons(given: Problem, homes: Ints) -> list[str]:
    """For each operator: beside its inputs or not, and how much worse the next best site would be."""
    flat = given.flat
    home = [*(int(site) for site in homes), *(int(site) for site in flat.home[len(homes) :])]
    compared = len(homes) * len(given.sites) <= COMPARED_MAX
    judge = AsFast(given, homes) if compared and not flat.potential else None
    found: list[str] = []
    for op in range(len(homes)):
        inputs = [int(node) for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]]]
        beside = all(home[node] == home[op] for node in inputs)
        names = _inputs(given, op)
        near = f"beside its input{'s' if len(names) > 1 else ''} {', '.join(names)}" if beside else ""
        if judge is not None:
            found.append(_said(judge, homes, op, near))
        elif near:
            found.append(near)
        else:
            found.append(_least_potential(given, homes, op) if compared else _found(given))
    return found


def _inputs(given: Problem, op: int) -> tuple[str, ...]:
    return dataflow(given.deployment).node(given.operators[op]).operator.from_


def _found(given: Problem) -> str:
    return f"least {given.deployment.control.place.objective} found for all queries together"


def _said(judge: AsFast, homes: Ints, op: int, near: str) -> str:
    others = [
        _elsewhere(judge, homes, group, site)
        for group in groups(judge, homes, op, judge.given.flat.choices.sum(axis=1) > 1)
        for site in range(len(judge.given.sites))
        if site != homes[op]
    ]
    possible = [one for one in others if one is not None]
    if not possible:
        return near or "the only site that its inputs and readers leave it"
    next_best = min(possible)
    why, how = _why(next_best, judge.hops)
    return f"{near or why}; {how}"


def _why(other: Other, hops: bool) -> tuple[str, str]:
    if other.overloads:
        return "least latency", f"{other.site} would be overloaded"
    if other.breaks:
        return "least latency", f"on {other.site} a promise would be broken"
    if other.slower_ms > 0 or not hops:
        return "least latency", f"on {other.site} it would be {max(other.slower_ms, other.score):.3g} ms more"
    if other.sends_kbps > LITTLE:
        return "least traffic", f"as fast on {other.site}, where {other.sends_kbps:.3g} kbps more would travel"
    if other.sites > 0:
        return "fewest sites", f"as good on {other.site}, which would be one site more"
    return "as good as any", f"{other.site} would do as well"


def _elsewhere(judge: AsFast, homes: Ints, group: tuple[int, ...], site: int) -> Other | None:
    """What it would mean for operators to stand together at another site, None where they may not."""
    given, tried = judge.given, homes.copy()
    tried[list(group)] = site
    if not keeps(given, tried):
        return None
    (excess, broken), (excess_now, broken_now) = (beyond(given.flat, one.tolist()) for one in (tried, homes))
    late = slower(judge.limit_ms, judge.latencies(tried)) or 0.0
    more = score(given.flat, tried.tolist()) - score(given.flat, homes.tolist())
    worse = (excess > excess_now * (1.0 + LITTLE), broken > broken_now * (1.0 + LITTLE))
    if not judge.hops:
        return Other(*worse, 0.0, 0.0, 0, more, given.sites[site])
    sent = judge.sending.whole(tried.tolist()) - judge.sending.whole(homes.tolist())
    return Other(*worse, late, sent, judge.sites(tried) - judge.sites(homes), more, given.sites[site])


def _least_potential(given: Problem, homes: Ints, op: int) -> str:
    whole, others = score(given.flat, homes.tolist()), []
    for site, name in enumerate(given.sites):
        tried = homes.copy()
        tried[op] = site
        if site != homes[op] and keeps(given, tried):
            others.append((score(given.flat, tried.tolist()) - whole, name))
    if not others:
        return "the only site that its inputs and readers leave it"
    more, name = min(others)
    return f"least potential; on {name} it would be {more:.3g} more"
