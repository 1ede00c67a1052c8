"""What is to be placed? A deployment as arrays that a search reads, and the names behind their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.model import Deployment, Placement
from weft.plan.dataflow.rates import Rates
from weft.plan.judging.potential import Series
from weft.plan.network.path_tables import Ints
from weft.plan.search.arrays import Flat
from weft.plan.search.building import ArrayBuilder


@dataclass(frozen=True, slots=True)
class Problem:
    """The arrays and the names behind them."""

    deployment: Deployment
    flat: Flat
    operators: tuple[str, ...]
    sites: tuple[str, ...]
    rank: dict[str, int]

    def homes(self, placement: Placement) -> Ints:
        """A placement as numbers of sites; -1 for what is not placed or stands on a site that is gone."""
        at = [placement.homes.get(stream, "") for stream in self.operators]
        return np.array([self.rank.get(name, -1) for name in at], np.int64)

    def placement(self, homes: Ints, reason: str | Sequence[str]) -> Placement:
        """Numbers of sites as a placement; pinned operators say that they are."""
        pinned = {
            f"{query.name}.{operator.name}"
            for query in self.deployment.queries
            for operator in query.operators
            if operator.site is not None
        }
        said = [reason] * len(self.operators) if isinstance(reason, str) else reason
        return Placement(
            {stream: self.sites[home] for stream, home in zip(self.operators, homes, strict=True)},
            reasons={
                stream: "pinned" if stream in pinned else why for stream, why in zip(self.operators, said, strict=True)
            },
        )


def problem(
    deployment: Deployment,
    objective: str | None = None,
    *,
    rates: Rates | None = None,
    series: Series | None = None,
    running: Placement | None = None,
    price: float = 0.0,
) -> Problem:
    """The arrays of a deployment; rates and series may come from measurements instead of what it declares."""
    builder = ArrayBuilder(deployment, objective, rates, series)
    found = Problem(deployment, builder.build(price), builder.operators, builder.sites, builder.rank)
    if running is None or price == 0.0:
        return found
    return replace(found, flat=found.flat._replace(running=found.homes(running)))
