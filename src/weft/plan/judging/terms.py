"""What else should pull operators? Further terms of a score, by name, beside load, correlation, network or latency.

A term is a sum over operators at their sites and over streams between sites, so that a search judges a move by the
operator's own row and streams alone. It comes with `whole`, the obvious version over a placement, which tests compare
with what a search adds up. A file asks for it with a weight: `control: place: terms: {traffic: 0.01}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.dataflow.rates import ideal_rates
from weft.plan.errors import NoPlacement
from weft.plan.judging.potential import crossings
from weft.plan.network.path_tables import Floats


class Pull(NamedTuple):
    """Sizes: m operators, n sites; a stream from x to y costs `kbps * per_kbps[x, y] + per_stream[x, y]`."""

    own: Floats
    per_kbps: Floats
    per_stream: Floats


@dataclass(frozen=True, slots=True)
class Term:
    """One term: its arrays, and its whole value over a placement, both for a weight of 1."""

    name: str
    pull: Callable[[Deployment], Pull]
    whole: Callable[[Deployment, Placement], float]


TERMS: dict[str, Term] = {}


def register(term: Term) -> Term:
    """Makes a term known by its name; files may then weigh it."""
    assert term.name not in TERMS, f"there is a term {term.name} already"
    TERMS[term.name] = term
    return term


def pulls(deployment: Deployment, weights: Mapping[str, float]) -> Pull | None:
    """The sum of all weighed terms, None where there is none."""
    unknown = [name for name in weights if name not in TERMS]
    if unknown:
        raise NoPlacement(f"place.terms: there is no term {unknown[0]}; there are: {', '.join(sorted(TERMS))}")
    found = [(weight, TERMS[name].pull(deployment)) for name, weight in weights.items() if weight > 0]
    if not found:
        return None
    own, per_kbps, per_stream = (
        np.asarray(sum(weight * pull[at] for weight, pull in found), np.float64) for at in range(3)
    )
    return Pull(own, per_kbps, per_stream)


def values(deployment: Deployment, placement: Placement) -> dict[str, float]:
    """What the terms that a deployment weighs come to, unweighted."""
    weights = dict(deployment.control.place.terms)
    return {name: TERMS[name].whole(deployment, placement) for name in weights}


def _size(deployment: Deployment) -> tuple[int, int]:
    return sum(len(query.operators) for query in deployment.queries), len(deployment.sites)


def _traffic(deployment: Deployment) -> Pull:
    m, n = _size(deployment)
    return Pull(np.zeros((m, n)), 1.0 - np.eye(n), np.zeros((n, n)))


def _all_traffic(deployment: Deployment, placement: Placement) -> float:
    streams = crossings(deployment, placement, ideal_rates(deployment))
    return sum(kbps for start, end, kbps in streams if start != end)


def _risk(deployment: Deployment) -> Pull:
    m, n = _size(deployment)
    failing = np.array([site.failure_probability for site in deployment.sites], np.float64)
    return Pull(np.tile(failing, (m, 1)), np.zeros((n, n)), np.zeros((n, n)))


def _all_risk(deployment: Deployment, placement: Placement) -> float:
    return sum(deployment.site(home).failure_probability for home in placement.homes.values())


# What is sent between sites (kbps), and how likely the sites of operators fail, added up over operators.
register(Term("traffic", _traffic, _all_traffic))
register(Term("risk", _risk, _all_risk))
