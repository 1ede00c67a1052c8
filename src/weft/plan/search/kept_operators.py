"""What stays where it runs? Potential §4.2: the lightest share of the operators."""

from __future__ import annotations

import numpy as np

from weft.model import Placement
from weft.plan.network.path_tables import Ints
from weft.plan.search.problem import Problem


def kept(given: Problem, running: Placement | None) -> Ints:
    """The homes of the lightest `keep` of the operators, as far as they still may stand there; -1 for all others."""
    m = len(given.operators)
    stays = np.full(m, -1, np.int64)
    keep = given.deployment.control.place.keep
    if running is None or keep <= 0.0:
        return stays
    homes = given.homes(running)
    order = np.argsort(-given.flat.load_ms, kind="stable")
    for op in order[m - min(m, int(keep * m + 1e-9)) :]:
        if homes[op] >= 0 and given.flat.choices[op, homes[op]]:
            stays[op] = homes[op]
    return stays
