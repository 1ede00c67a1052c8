"""Why is it there? What a search has to say for each operator."""

from __future__ import annotations

from weft.model import dataflow
from weft.plan.network.path_tables import Ints
from weft.plan.search.brute_force import beyond, score
from weft.plan.search.problem import Problem
from weft.plan.search.rules import keeps

# Comparing with every other site takes a whole score each: for small problems only.
COMPARED_MAX = 200


def reasons(given: Problem, homes: Ints) -> list[str]:
    """For each operator: beside its inputs, or how much worse the next best site would be."""
    flat = given.flat
    home = [*(int(site) for site in homes), *(int(site) for site in flat.home[len(homes) :])]
    compared = len(homes) * len(given.sites) <= COMPARED_MAX
    whole = score(flat, home[: len(homes)]) if compared else 0.0
    found: list[str] = []
    for op in range(len(homes)):
        inputs = [int(node) for node in flat.in_from[flat.in_at[op] : flat.in_at[op + 1]]]
        if all(home[node] == home[op] for node in inputs):
            names = _inputs(given, op)
            found.append(f"beside its input{'s' if len(names) > 1 else ''} {', '.join(names)}")
        else:
            found.append(_next_best(given, homes, op, whole) if compared else _found(given))
    return found


def _inputs(given: Problem, op: int) -> tuple[str, ...]:
    return dataflow(given.deployment).node(given.operators[op]).operator.from_


def _found(given: Problem) -> str:
    return f"least {given.deployment.control.place.objective} found for all queries together"


def _next_best(given: Problem, homes: Ints, op: int, whole: float) -> str:
    others: list[tuple[float, str]] = []
    for site, name in enumerate(given.sites):
        tried = homes.copy()
        tried[op] = site
        if site != homes[op] and keeps(given, tried):
            others.append((score(given.flat, tried.tolist()) - whole, name))
    if not others:
        return "the only site that its inputs and readers leave it"
    more, name = min(others)
    if given.flat.potential:
        return f"least potential; on {name} it would be {more:.3g} more"
    tried = homes.copy()
    tried[op] = given.rank[name]
    (excess, broken), (excess_now, broken_now) = (beyond(given.flat, one.tolist()) for one in (tried, homes))
    if excess > excess_now * (1.0 + 1e-9):
        return f"least latency; {name} would be overloaded"
    if broken > broken_now * (1.0 + 1e-9):
        return f"least latency; on {name} a promise would be broken"
    return f"least latency; on {name} it would be {more:.3g} ms more"
