"""Does a placement keep pins, links and the tree rule?"""

from __future__ import annotations

import numpy as np

from weft.plan.network.path_tables import Ints
from weft.plan.search.problem import Problem


def keeps(given: Problem, homes: Ints) -> bool:
    """Whether homes keep pins, links and the tree rule."""
    flat, m = given.flat, len(given.operators)
    if (homes < 0).any() or not flat.choices[np.arange(m), homes].all():
        return False
    if flat.free:
        return True
    whole = np.concatenate([homes, flat.home[m:]])
    starts = np.repeat(np.arange(len(flat.home)), np.diff(flat.out_at))
    return bool(flat.allowed[whole[starts], whole[flat.out_to]].all())
