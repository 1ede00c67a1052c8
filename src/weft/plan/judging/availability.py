"""How likely is a query up? All its operators are needed, of each at least one replica (Synergy §4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

from weft.model import Deployment, Placement, Query, dataflow

EXACT_MAX = 20
SAMPLES = 20_000
WAYS_MAX = 50_000


def up(replicas: Sequence[Sequence[str]], down: set[str]) -> bool:
    """Whether every operator still has a replica."""
    return all(any(site not in down for site in sites) for sites in replicas)


def availability(
    replicas: Sequence[Sequence[str]], failing: Mapping[str, float], rng: Random, samples: int = SAMPLES
) -> float:
    """The probability that all operators are up when sites fail independently: exact for few sites, else sampled."""
    used = sorted({site for sites in replicas for site in sites if failing[site] > 0})
    if len(used) <= EXACT_MAX:
        return _exact(sorted({tuple(sorted(sites)) for sites in replicas}), used, failing)
    hits = sum(up(replicas, {site for site in used if rng.random() < failing[site]}) for _ in range(samples))
    return hits / samples


def availability_of(deployment: Deployment, query: Query, placement: Placement, rng: Random) -> float:
    """How likely a query is up: a replica of every operator behind it, and the sites of its sources and sinks."""
    failing = {site.name: site.failure_probability for site in deployment.sites}
    flow = dataflow(deployment)
    needed = [placement.sites_of(node.stream) for node in flow.behind(query.name)]
    needed += [(flow.sources[name].site,) for name in flow.sources_of(query.name)]
    # A sink that names no site is wherever its operator is.
    needed += [(sink.site,) for sink in query.sinks if sink.site is not None]
    return availability(needed, failing, rng)


def _exact(replicas: Sequence[Sequence[str]], left: Sequence[str], failing: Mapping[str, float]) -> float:
    """Looks at one site up and down in turn; what no longer depends on it falls away."""
    open_ = [sites for sites in replicas if sites]
    if len(open_) < len(replicas):
        return 0.0
    needed = {site for sites in open_ for site in sites}
    at = next((site for site in left if site in needed), None)
    if at is None:
        return 1.0
    rest = [site for site in left if site != at]
    still = [sites for sites in open_ if at not in sites]
    fewer = sorted({tuple(site for site in sites if site != at) for sites in open_})
    chance = failing[at]
    whole = _exact(still, rest, failing)
    return whole if chance == 0 else (1 - chance) * whole + chance * _exact(fewer, rest, failing)


def availability_when(
    replicas: Sequence[Sequence[str]], sites: Sequence[str], failed: int, rng: Random, samples: int = SAMPLES,
    ways_max: int = WAYS_MAX,
) -> float:  # fmt: skip
    """The share of ways for so many of the sites to fail at once that leave the query up (Fig 4.2); sampled if many.

    Ways that differ only in sites the query does not use are counted, not looked at.
    """
    used = sorted({site for one in replicas for site in one})
    others = len(sites) - len(used)
    most = min(failed, len(used))
    if sum(math.comb(len(used), count) for count in range(most + 1)) <= ways_max:
        good = sum(
            math.comb(others, failed - count) * sum(up(replicas, set(down)) for down in combinations(used, count))
            for count in range(max(0, failed - others), most + 1)
        )
        return good / math.comb(len(sites), failed)
    total = 0
    for _ in range(samples):
        total += up(replicas, set(rng.sample(list(sites), failed)))
    return total / samples
